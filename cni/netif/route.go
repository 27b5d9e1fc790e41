package netif

import "net/netip"

// Route is a route of a container.
type Route struct {
	Dst      netip.Prefix
	Via      netip.Addr // the zero Addr: Dst is on the link
	MTU      int        // bytes; 0: that of the interface
	AdvMSS   int        // bytes; 0: from the MTU
	Priority int        // lower wins; 0: the kernel's default for the family
	Table    *int       // nil: main
	Scope    *int       // IPv4 only; nil: link without Via, else global
}
