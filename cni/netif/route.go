package netif

import (
	"fmt"
	"net/netip"
	"strings"
)

// Defaults of the kernel: see rtnetlink(7), and IP6_RT_PRIO_USER.
const (
	mainTable    = 254
	ipv6Priority = 1024
	globalScope  = 0
	linkScope    = 253
)

// Route is a route of a container. A field that is zero, or nil, stands for its default.
type Route struct {
	Dst      netip.Prefix
	Via      netip.Addr // the zero Addr: Dst is on the link
	MTU      int        // bytes; 0: that of the interface
	AdvMSS   int        // bytes; 0: from the MTU
	Priority int        // lower wins; 0: the kernel's default for the family (IPv4 0, IPv6 1024)
	Table    *int       // nil or 0: main
	Scope    *int       // nil: link without Via, else global; IPv6 has none and ignores it
}

// Equal reports whether the two are one route to the kernel: a default that is left out
// equals one that is written down.
func (r Route) Equal(other Route) bool { return r.explicit() == other.explicit() }

// String renders the route as ip-route(8) does, without defaults.
func (r Route) String() string {
	var b strings.Builder
	b.WriteString(r.Dst.String())
	if r.Via.IsValid() {
		fmt.Fprintf(&b, " via %s", r.Via)
	}
	has, usual := r.explicit(), Route{Dst: r.Dst, Via: r.Via}.explicit()
	for _, field := range []struct {
		name       string
		has, usual int
	}{
		{"mtu", has.mtu, usual.mtu},
		{"advmss", has.advMSS, usual.advMSS},
		{"metric", has.priority, usual.priority},
		{"table", has.table, usual.table},
		{"scope", has.scope, usual.scope},
	} {
		if field.has != field.usual {
			fmt.Fprintf(&b, " %s %d", field.name, field.has)
		}
	}
	return b.String()
}

// explicitRoute is a route with its defaults written down; it is comparable.
type explicitRoute struct {
	dst                                 netip.Prefix
	via                                 netip.Addr
	mtu, advMSS, priority, table, scope int
}

func (r Route) explicit() explicitRoute {
	e := explicitRoute{dst: r.Dst, via: r.Via, mtu: r.MTU, advMSS: r.AdvMSS, priority: r.Priority, table: mainTable}
	if r.Table != nil && *r.Table != 0 {
		e.table = *r.Table
	}
	if r.Dst.Addr().Is6() {
		if e.priority == 0 {
			e.priority = ipv6Priority
		}
		return e
	}
	switch {
	case r.Scope != nil:
		e.scope = *r.Scope
	case r.Via.IsValid():
		e.scope = globalScope
	default:
		e.scope = linkScope
	}
	return e
}
