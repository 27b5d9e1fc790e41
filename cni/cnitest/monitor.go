package cnitest

import "fmt"

// Monitor records what the kernel announces about a namespace: links, addresses, routes,
// rules, neighbours, FDB entries, next hops, queueing disciplines, per-interface
// settings, nftables. What comes and goes by itself is left out: neighbours and FDB
// entries that the kernel learns and ages, and the settings of bridge ports, which it tells
// again some time after a port joined. So a node on which nobody writes announces nothing,
// whatever traffic passes. The reverse does not hold: the kernel is silent about
// a request that changes nothing, such as replacing an IPv4 route by itself.
//
// The kernel queues announcements while they happen, so nothing runs in the background
// and a Monitor that is not read costs memory only. Use one Monitor from one goroutine.
type Monitor struct {
	name    string
	sockets []int
}

// Change is one announcement.
type Change struct {
	What string // "new route ipv4 10.1.2.0/24 dev 4"
	Port uint32 // the netlink port ID of the socket that asked for it; 0: the kernel did, or does not say
}

func (c Change) String() string {
	if c.Port == 0 {
		return c.What
	}
	return fmt.Sprintf("%s (asked for by netlink port %d)", c.What, c.Port)
}
