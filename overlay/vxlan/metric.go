package vxlan

import (
	"hash/fnv"
	"net/netip"
)

const (
	metricBase = 1 << 24 // of IPv4 routes; the highest is metricBase<<1 - 1
	metricIPv6 = 1024    // what the kernel gives IPv6 routes anyway
)

// Metric is the metric of the route to a Pod CIDR. For IPv4 it is a hash of the
// prefix in the range 16777216 to 33554431, for IPv6 it is always 1024.
//
// The kernel looks IPv4 next hops up in a hash over device, protocol, scope, source
// and metric, without the gateway: with one metric, N routes over one device take N²
// steps to add. A metric per destination spreads them. Since the destinations differ,
// the metrics never compete; and since the metric depends on nothing but the prefix,
// a Pod CIDR that moves to another node is one atomic replacement. A foreign route
// for the same prefix with an ordinary metric wins.
func Metric(prefix netip.Prefix) int {
	if !prefix.Addr().Is4() {
		return metricIPv6
	}
	h := fnv.New32a()
	addr := prefix.Masked().Addr().As4()
	_, _ = h.Write(append(addr[:], byte(prefix.Bits())))
	sum := h.Sum32()
	return metricBase | int((sum>>24^sum)&(metricBase-1))
}
