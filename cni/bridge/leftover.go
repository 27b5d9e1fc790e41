package bridge

import (
	"errors"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/cni/netif"
)

// removeLeftover deletes the node's end of an earlier attachment of the same container
// and interface that was never completed.
func (a *attachment) removeLeftover() error {
	old, err := a.node.Link(a.host)
	if errors.Is(err, netif.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := a.checkLeftover(old); err != nil {
		return err
	}
	a.r.Log.Warn("replacing the leftover of an earlier attachment", "interface", a.host, "alias", old.Alias)
	return a.node.DeleteLink(a.host)
}

// checkHostEnd refuses what removeLeftover would, before the IPAM plugin is asked: taking
// that back would release the address of the attachment that is there.
func (a *attachment) checkHostEnd() error {
	old, err := a.node.Link(a.host)
	if errors.Is(err, netif.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return a.checkLeftover(old)
}

// checkLeftover refuses to replace what something else made, and an attachment in use:
// its end was switched on, which an ADD does last. One without a mark is ours, of an ADD
// that was killed before it could set it.
func (a *attachment) checkLeftover(old netif.Link) error {
	own := a.owner.alias()
	switch other, parsed := parseOwner(old.Alias); {
	case old.Kind != "veth":
		return a.inUse("the node has a %s named %s, which is the name for this attachment; rename or remove it", old.Kind, old.Name)
	case old.Alias != "" && old.Alias != own && parsed:
		return a.inUse("the network %q has this attachment, through the node's %s; DEL it there first", other.network, old.Name)
	case old.Alias != "" && old.Alias != own:
		return a.inUse("the node's %s, which is the name for this attachment, belongs to something else: its alias is %q", old.Name, old.Alias)
	case old.Up || old.Carrier:
		return a.inUse("this attachment is in use through the node's %s, with another network namespace or interface name; DEL it first", old.Name)
	}
	return nil
}

func (a *attachment) inUse(format string, args ...any) error {
	args = append([]any{a.r.ContainerID, a.r.IfName}, args...)
	return cni.Errorf(cni.CodeInvalidEnvironment, "CNI_CONTAINERID=%s, CNI_IFNAME=%s: "+format, args...)
}
