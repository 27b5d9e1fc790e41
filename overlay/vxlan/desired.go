package vxlan

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/cnikit/cnikit/overlay"
)

// desired is what a topology asks of the kernel.
type desired struct {
	devices   map[string]device
	addresses map[netip.Prefix]address
	sysctls   map[string]string
	neighbors map[netip.Addr]neighbor
	fdb       map[fdbKey]fdbEntry
	routes    map[routeKey]route
}

// desire works out what to have in the kernel. It is pure. A peer that cannot be used
// is left out and named in the error; the rest stands.
func desire(c Config, self overlay.Peer, peers []overlay.Peer) (desired, error) {
	d := desired{
		devices:   map[string]device{c.Device: {VNI: c.VNI, Port: c.Port, Local: self.Underlay, MAC: self.MAC, MTU: c.MTU}},
		addresses: map[netip.Prefix]address{},
		sysctls:   map[string]string{},
		neighbors: make(map[netip.Addr]neighbor, len(peers)),
		fdb:       make(map[fdbKey]fdbEntry, len(peers)),
		routes:    make(map[routeKey]route, len(peers)),
	}
	for _, cidr := range self.PodCIDRs {
		d.addresses[tunnelPrefix(cidr)] = address{}
		if !c.SkipForwarding {
			d.sysctls[forwarding(cidr.Addr())] = "1"
		}
	}
	var errs []error
	for _, p := range peers {
		if err := d.peer(self, p); err != nil {
			errs = append(errs, fmt.Errorf("peer %q: %w", p.Name, err))
		}
	}
	return d, errors.Join(errs...)
}

// peer adds the state of one peer.
func (d *desired) peer(self, p overlay.Peer) error {
	if err := d.check(self, p); err != nil {
		return err
	}
	var errs []error
	for _, cidr := range p.PodCIDRs {
		src, ok := source(self, cidr.Addr())
		if !ok {
			continue // no pods of this family here
		}
		key, via := routeKey{Prefix: cidr, Metric: Metric(cidr)}, cidr.Addr()
		if d.taken(key, via) {
			errs = append(errs, fmt.Errorf("pod CIDR %v: another node has it; give each node its own", cidr))
			continue
		}
		if p.Path == overlay.Direct && cidr.Addr().Is4() {
			d.routes[key] = route{Via: p.Underlay, Src: src, Path: overlay.Direct}
			continue
		}
		d.routes[key] = route{Via: via, Src: src, Path: overlay.Tunnel}
		d.neighbors[via] = neighbor{MAC: p.MAC}
		d.fdb[fdbKey{MAC: p.MAC}] = fdbEntry{Dst: p.Underlay}
	}
	return errors.Join(errs...)
}

// check refuses a peer that would break others in the kernel. [overlay.Plan] does not
// let one through.
func (d *desired) check(self, p overlay.Peer) error {
	switch {
	case !p.Underlay.Is4():
		return fmt.Errorf("underlay address %v: not IPv4, which this backend needs; give the node an IPv4 address", p.Underlay)
	case p.Underlay == self.Underlay:
		return fmt.Errorf("underlay address %v: it is our own; give each node its own", p.Underlay)
	case p.MAC == overlay.MAC{} || p.MAC[0]&1 != 0:
		return fmt.Errorf("tunnel MAC address %v: not a unicast address; derive it by overlay.TunnelMAC", p.MAC)
	case p.MAC == self.MAC:
		return fmt.Errorf("tunnel MAC address %v: it is our own; the nodes must have different UIDs", p.MAC)
	}
	if other, taken := d.fdb[fdbKey{MAC: p.MAC}]; taken && other.Dst != p.Underlay {
		return fmt.Errorf("tunnel MAC address %v: the peer at %v has it; the nodes must have different UIDs", p.MAC, other.Dst)
	}
	for _, cidr := range p.PodCIDRs {
		if !cidr.IsValid() || cidr != cidr.Masked() {
			return fmt.Errorf("pod CIDR %v: not a network; clear the bits beyond its length", cidr)
		}
	}
	return nil
}

// taken reports whether a Pod CIDR, or its tunnel address, is another node's or ours.
func (d *desired) taken(key routeKey, via netip.Addr) bool {
	_, route := d.routes[key]
	_, neighbor := d.neighbors[via]
	_, own := d.addresses[tunnelPrefix(key.Prefix)]
	return route || neighbor || own
}

// tunnelPrefix is the tunnel address in a Pod CIDR, its network address, as a host
// prefix.
func tunnelPrefix(cidr netip.Prefix) netip.Prefix {
	addr := cidr.Masked().Addr()
	return netip.PrefixFrom(addr, addr.BitLen())
}

// source is our tunnel address of the family of addr.
func source(self overlay.Peer, addr netip.Addr) (netip.Addr, bool) {
	for _, cidr := range self.PodCIDRs {
		if cidr.Addr().Is4() == addr.Is4() {
			return cidr.Masked().Addr(), true
		}
	}
	return netip.Addr{}, false
}

// forwarding is the sysctl that lets the kernel forward the family of addr.
func forwarding(addr netip.Addr) string {
	if addr.Is4() {
		return "net/ipv4/ip_forward"
	}
	return "net/ipv6/conf/all/forwarding"
}
