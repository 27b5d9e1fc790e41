package netif

import (
	"errors"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnikit/cnikit/internal/nl"
)

// AddRoutes adds routes through the interface, which must be switched on and have its
// addresses. A gateway outside the subnets of those addresses is taken to be on the
// link. A route that the interface has stays; one that another interface has is an
// error of type [*RouteConflict]. When AddRoutes fails, the routes that it added are
// gone again.
func (n *Namespace) AddRoutes(name string, routes ...Route) error {
	link, err := n.find(name)
	if err != nil {
		return err
	}
	subnets, err := n.addresses(link)
	if err != nil {
		return err
	}
	var added []*netlink.Route
	for _, route := range routes {
		r := kernelRoute(route, link.Attrs().Index, subnets)
		err := n.conn.AddRoute(r)
		if errors.Is(err, nl.ErrExists) {
			if err = n.explainRoute(route, r); err == nil {
				continue
			}
		}
		if err != nil {
			return errors.Join(err, n.delRoutes(added))
		}
		added = append(added, r)
	}
	return nil
}

func (n *Namespace) delRoutes(routes []*netlink.Route) error {
	var errs []error
	for _, r := range routes {
		errs = append(errs, n.conn.DelRoute(r))
	}
	return errors.Join(errs...)
}

// explainRoute is nil when the route that is there belongs to the same interface.
func (n *Namespace) explainRoute(route Route, wanted *netlink.Route) error {
	all, err := n.routes(familyOf(route.Dst))
	if err != nil {
		return err
	}
	conflict := &RouteConflict{Route: route}
	for _, r := range all {
		if routeDst(r) != route.Dst.Masked() || r.Table != wanted.Table {
			continue
		}
		if r.LinkIndex == wanted.LinkIndex {
			return nil
		}
		if other, err := n.LinkByIndex(r.LinkIndex); err == nil {
			conflict.Link = other.Name
		}
	}
	return conflict
}

// routes returns the routes of all tables.
func (n *Namespace) routes(family int) ([]netlink.Route, error) {
	return n.conn.Routes(&netlink.Route{Table: unix.RT_TABLE_UNSPEC}, netlink.RT_FILTER_TABLE, family)
}

func kernelRoute(route Route, index int, subnets []netip.Prefix) *netlink.Route {
	r := &netlink.Route{
		LinkIndex: index,
		Dst:       ipNet(route.Dst.Masked()),
		MTU:       route.MTU,
		AdvMSS:    route.AdvMSS,
		Priority:  route.Priority,
		Table:     unix.RT_TABLE_MAIN,
	}
	if route.Table != nil {
		r.Table = *route.Table
	}
	switch {
	case route.Via.IsValid():
		r.Gw = route.Via.AsSlice()
		if !onLink(route.Via, subnets) {
			r.SetFlag(netlink.FLAG_ONLINK)
		}
	case route.Dst.Addr().Is4():
		r.Scope = netlink.SCOPE_LINK
	}
	if route.Scope != nil {
		r.Scope = netlink.Scope(*route.Scope)
	}
	return r
}

// onLink is true for an IPv6 link-local gateway: every interface has that subnet. An
// IPv4 interface has the link-local one only when it was given such an address.
func onLink(addr netip.Addr, subnets []netip.Prefix) bool {
	if addr.Is6() && addr.IsLinkLocalUnicast() {
		return true
	}
	for _, subnet := range subnets {
		if subnet.Contains(addr) {
			return true
		}
	}
	return false
}

// routeDst is the destination of a route; the kernel gives a default route none.
func routeDst(r netlink.Route) netip.Prefix {
	if p, ok := prefixOf(r.Dst); ok {
		return p
	}
	if r.Family == unix.AF_INET6 {
		return netip.PrefixFrom(netip.IPv6Unspecified(), 0)
	}
	return netip.PrefixFrom(netip.IPv4Unspecified(), 0)
}

func familyOf(p netip.Prefix) int {
	if p.Addr().Is6() {
		return unix.AF_INET6
	}
	return unix.AF_INET
}
