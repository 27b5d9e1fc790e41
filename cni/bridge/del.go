package bridge

import (
	"context"
	"errors"
	"io/fs"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/cni/netif"
)

// del deletes the link, then gives the address back: never an address that is still in
// use, but always when the container can no longer use it.
func del(ctx context.Context, r *cni.Request[Config]) error {
	cut, err := unplug(r)
	if r.Config.IPAM.Type == "" || !cut && !r.NetNS.Gone {
		return err
	}
	return errors.Join(err, r.Delegate(r.Config.IPAM.Type).Del(ctx))
}

// unplug deletes the pair by the node's end, or else by the container's. It reports
// whether the node's end is known to be gone, whatever the error.
func unplug(r *cni.Request[Config]) (cut bool, err error) {
	node, err := netif.Current()
	if err != nil {
		return false, err
	}
	defer node.Close()
	if err := deleteHostEnd(node, r); err != nil {
		return false, err
	}
	if r.NetNS.Gone {
		return true, nil
	}
	return true, deleteContainerEnd(node, r)
}

// deleteHostEnd deletes the interface with the name for this attachment, if it is ours.
// One without a mark is: an ADD was killed before it could set it.
func deleteHostEnd(node *netif.Namespace, r *cni.Request[Config]) error {
	host, err := node.Link(netif.HostName(r.ContainerID, r.IfName))
	if errors.Is(err, netif.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if host.Kind != "veth" || host.Alias != "" && host.Alias != ownerOf(r).alias() {
		r.Log.Info("leaving an interface that belongs to something else", "interface", host.Name, "kind", host.Kind, "alias", host.Alias)
		return nil
	}
	return node.DeleteLink(host.Name)
}

// deleteContainerEnd finds a pair whose node's end was renamed: it still has our mark.
func deleteContainerEnd(node *netif.Namespace, r *cni.Request[Config]) error {
	pod, err := netif.Open(r.NetNS.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer pod.Close()
	link, err := pod.Link(r.IfName)
	if errors.Is(err, netif.ErrNotFound) || err == nil && link.Kind != "veth" {
		return nil
	}
	if err != nil {
		return err
	}
	host, err := node.LinkByIndex(link.Peer)
	if errors.Is(err, netif.ErrNotFound) {
		return nil
	}
	if err != nil || host.Peer != link.Index || host.Alias != ownerOf(r).alias() {
		return err
	}
	return node.DeleteLink(host.Name)
}
