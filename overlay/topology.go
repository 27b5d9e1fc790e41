package overlay

import "net/netip"

// Local is what a node knows about itself.
type Local struct {
	NodeName   string         // its name in the source
	Underlay   []netip.Prefix // own addresses with their subnets; a peer in one of these subnets is on link
	HostRoutes []netip.Prefix // destinations that the host routes elsewhere; Pod CIDRs must not overlap them
}

// Policy is how the network is to be built. The zero value tunnels to every peer.
type Policy struct {
	// DirectOnLink sends packets for peers in one of Local.Underlay's subnets without encapsulation.
	DirectOnLink bool
}

// A Topology is the network as one node sees it.
type Topology struct {
	Self     *Peer     // nil: the own node is absent or unusable, Problems say why
	Peers    []Peer    // the other usable nodes, sorted by name
	Problems []Problem // sorted by node, kind and message
}

// Plan turns nodes into a topology. It is pure: the same set of nodes in any order gives the same topology.
func Plan(nodes []Node, local Local, policy Policy) Topology { return Topology{} }
