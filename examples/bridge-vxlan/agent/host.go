package main

import (
	"cmp"
	"errors"
	"net/netip"
	"slices"

	"github.com/cnikit/cnikit/cni/netif"
	"github.com/cnikit/cnikit/overlay"
)

// lookAround tells the planner what this host reaches its own way, so that no node's
// Pod CIDR takes that over. It is called at the start, and then by the engine's rounds
// that looked at the kernel, so at the latest after a resync.
func (a *agent) lookAround() {
	routes, err := a.hostRoutes()
	if err != nil {
		a.log.Warn("routes of this host are not known", "error", err)
		return
	}
	if a.looked && slices.Equal(routes, a.hostHas) {
		return
	}
	a.looked, a.hostHas = true, routes
	a.tracker.SetLocal(overlay.Local{NodeName: a.opts.node, HostRoutes: routes})
}

// hostRoutes are the destinations in the main table that are neither the network's own
// nor another overlay's, nor the default. They are sorted.
func (a *agent) hostRoutes() ([]netip.Prefix, error) {
	host, err := netif.Current()
	if err != nil {
		return nil, err
	}
	defer host.Close()
	links, err := host.Links()
	if err != nil {
		return nil, err
	}
	var found []netip.Prefix
	for _, link := range links {
		// A bridge's port has no routes, and a node has one for each pod; to ask for those
		// of one link has the kernel walk all.
		if link.Name == a.opts.bridge || link.Kind == "vxlan" || link.Master != 0 {
			continue
		}
		routes, err := host.Routes(link.Name)
		if errors.Is(err, netif.ErrNotFound) {
			continue // gone since the listing
		}
		if err != nil {
			return nil, err
		}
		for _, r := range routes {
			if ownWay(r.Dst) {
				found = append(found, r.Dst)
			}
		}
	}
	slices.SortFunc(found, func(a, b netip.Prefix) int {
		return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
	})
	return slices.Compact(found), nil
}

// ownWay leaves out what every host has.
func ownWay(dst netip.Prefix) bool {
	return dst.Bits() > 0 && !dst.Addr().IsLinkLocalUnicast() && !dst.Addr().IsMulticast() && !dst.Addr().IsLoopback()
}
