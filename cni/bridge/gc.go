package bridge

import (
	"context"
	"errors"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/cni/netif"
)

// gc deletes the links of this network whose attachments are not valid, then lets the
// IPAM plugin do the same with addresses. It goes on past errors.
func gc(ctx context.Context, r *cni.Request[Config]) error {
	err := deleteStale(r)
	if r.Config.IPAM.Type != "" {
		err = errors.Join(err, r.Delegate(r.Config.IPAM.Type).GC(ctx))
	}
	return err
}

func deleteStale(r *cni.Request[Config]) error {
	node, err := netif.Current()
	if err != nil {
		return err
	}
	defer node.Close()
	links, err := node.Links()
	if err != nil {
		return err
	}
	valid := map[cni.Attachment]bool{}
	for _, a := range r.Valid {
		valid[a] = true
	}
	var errs []error
	for _, link := range links {
		if !stale(link, r.Network, valid) {
			continue
		}
		r.Log.Info("deleting the interface of a stale attachment", "interface", link.Name, "alias", link.Alias)
		errs = append(errs, node.DeleteLink(link.Name))
	}
	return errors.Join(errs...)
}

func stale(link netif.Link, network string, valid map[cni.Attachment]bool) bool {
	o, ok := parseOwner(link.Alias)
	return ok && link.Kind == "veth" && o.network == network && !valid[o.Attachment]
}
