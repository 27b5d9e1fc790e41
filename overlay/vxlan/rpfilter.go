package vxlan

import (
	"net/netip"
	"slices"
)

// StrictFilters returns the links, of underlay and tunnel, on which the kernel filters
// strictly by reverse path (RFC 3704), and so drops packets between IPv4 pods and the
// addresses of other nodes. It is empty where there are no IPv4 pods, and what cannot
// be read counts as good. It may ask the kernel.
//
// A pod's packet to the address of another node leaves by the underlay, with the
// address of the pod, and the answer takes the tunnel: nodes route each other's Pod
// CIDRs into it, not each other's addresses. So both ends receive what they would send
// by another link. Pods of different nodes use the tunnel both ways and lose nothing.
//
// The settings stay as they are, for they protect the node. A
// net.ipv4.conf.LINK.rp_filter of 2 is a loose filter, which is enough; of that and
// net.ipv4.conf.all.rp_filter the kernel takes the greater one. IPv6 has no such
// setting.
func (b *Backend) StrictFilters() []string {
	b.mu.Lock()
	self := b.self
	b.mu.Unlock()
	if self == nil || !slices.ContainsFunc(self.PodCIDRs, func(p netip.Prefix) bool { return p.Addr().Is4() }) {
		return nil
	}
	return b.kernel.strictFilters()
}
