package overlay

import (
	"fmt"
	"net/netip"
	"slices"
)

// Path is how packets reach a peer.
type Path int

// The paths.
const (
	Tunnel Path = iota // encapsulated
	Direct             // routed to the peer's underlay address, which must be on link
)

// String returns "tunnel" or "direct".
func (p Path) String() string {
	if p == Direct {
		return "direct"
	}
	return "tunnel"
}

// A Peer is a usable node: what a backend needs to reach its pods.
type Peer struct {
	Name     string
	UID      string
	MAC      MAC            // of its tunnel interface, TunnelMAC(UID)
	Underlay netip.Addr     // where its packets are sent; IPv4
	PodCIDRs []netip.Prefix // at least one, masked, IPv4 before IPv6, each in address order
	Path     Path
}

// Equal reports whether p and o are the same in every field.
func (p Peer) Equal(o Peer) bool {
	return p.Name == o.Name && p.UID == o.UID && p.MAC == o.MAC && p.Underlay == o.Underlay && p.Path == o.Path &&
		slices.Equal(p.PodCIDRs, o.PodCIDRs)
}

// String prints the fields that matter to people.
func (p Peer) String() string {
	return fmt.Sprintf("%s at %v by %v, MAC %v, pods %v", p.Name, p.Underlay, p.Path, p.MAC, p.PodCIDRs)
}
