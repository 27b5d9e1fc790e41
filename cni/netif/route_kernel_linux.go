package netif

import (
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// kernelRoute is the route as the kernel gets it, complete enough to delete this one and
// no other.
func kernelRoute(route Route, index int, subnets []netip.Prefix) *netlink.Route {
	e := route.explicit()
	r := &netlink.Route{
		LinkIndex: index,
		Dst:       ipNet(route.Dst),
		MTU:       route.MTU,
		AdvMSS:    route.AdvMSS,
		Priority:  e.priority,
		Table:     e.table,
		Scope:     netlink.Scope(e.scope),
		Protocol:  unix.RTPROT_BOOT,
		Type:      unix.RTN_UNICAST,
	}
	if route.Via.IsValid() {
		r.Gw = route.Via.AsSlice()
		if !onLink(route.Via, subnets) {
			r.SetFlag(netlink.FLAG_ONLINK)
		}
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

// routeOf is the reverse of kernelRoute, with defaults left out.
func routeOf(h *netlink.Route) Route {
	route := Route{Dst: routeDst(*h), MTU: h.MTU, AdvMSS: h.AdvMSS, Priority: h.Priority}
	gateway := h.Gw
	if via, ok := h.Via.(*netlink.Via); ok { // of the other family
		gateway = via.Addr
	}
	route.Via, _ = netip.AddrFromSlice(gateway)
	usual := route.explicit()
	if h.Table != usual.table {
		route.Table = &h.Table
	}
	if scope := int(h.Scope); route.Dst.Addr().Is4() && scope != usual.scope {
		route.Scope = &scope
	}
	if route.Dst.Addr().Is6() && route.Priority == ipv6Priority {
		route.Priority = 0
	}
	return route
}

// isRoute reports whether h is the route through that interface.
func isRoute(h *netlink.Route, index int, route Route) bool {
	return h.LinkIndex == index && plain(h) && routeOf(h).Equal(route)
}

// plain is false for what a [Route] cannot express.
func plain(h *netlink.Route) bool { return kind(h) == "" && h.Tos == 0 }

// kind is empty for a route through one interface.
func kind(h *netlink.Route) string {
	if len(h.MultiPath) > 0 {
		return "multipath"
	}
	switch h.Type {
	case unix.RTN_UNICAST:
		return ""
	case unix.RTN_LOCAL:
		return "local"
	case unix.RTN_BLACKHOLE:
		return "blackhole"
	case unix.RTN_UNREACHABLE:
		return "unreachable"
	case unix.RTN_PROHIBIT:
		return "prohibit"
	case unix.RTN_THROW:
		return "throw"
	}
	return fmt.Sprintf("type %d", h.Type)
}

// inTheWay reports whether h keeps the kernel from adding r, or from ever using it.
func inTheWay(h, r *netlink.Route, route Route) bool {
	if routeDst(*h) != route.Dst || h.Table != r.Table || h.Tos != 0 {
		return false
	}
	return h.Priority == r.Priority || hides(h, r, route)
}

// hides is about the routes that the kernel makes for IPv6 subnets, which win against
// all others by their priority of 256. Those of IPv4 have priority 0 and exclude others.
// Every interface has the link-local subnet.
func hides(h, r *netlink.Route, route Route) bool {
	if route.Dst.Addr().Is4() || h.Protocol != unix.RTPROT_KERNEL || route.Priority != 0 || route.Dst.Addr().IsLinkLocalUnicast() {
		return false
	}
	return h.LinkIndex != r.LinkIndex || r.Gw != nil
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
