package overlay

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Local is what a node knows about itself.
type Local struct {
	// NodeName is the own name in the source.
	NodeName string
	// Underlay holds the own addresses with their subnets, such as 192.0.2.7/24. Optional; when given, the own node's address
	// must be among them, Pod CIDRs must not overlap the subnets, and a peer in one of the subnets is on link.
	Underlay []netip.Prefix
	// HostRoutes are other destinations that the host must keep reaching its own way: connected subnets, service ranges. Pod
	// CIDRs must not overlap them. Leave out what the overlay or the plugins route themselves; default routes are ignored.
	HostRoutes []netip.Prefix
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

// Equal reports whether t and o are the same in everything.
func (t Topology) Equal(o Topology) bool {
	return (t.Self == nil) == (o.Self == nil) && (t.Self == nil || t.Self.Equal(*o.Self)) &&
		slices.EqualFunc(t.Peers, o.Peers, Peer.Equal) && slices.Equal(t.Problems, o.Problems)
}

// String prints the own node, each peer and each problem on a line of its own.
func (t Topology) String() string {
	var b strings.Builder
	if t.Self != nil {
		fmt.Fprintf(&b, "self %v\n", t.Self)
	}
	for _, p := range t.Peers {
		fmt.Fprintf(&b, "peer %v\n", p)
	}
	for _, p := range t.Problems {
		fmt.Fprintf(&b, "problem: %v\n", p)
	}
	return b.String()
}

// Plan turns nodes into a topology. It is pure, and the same set of nodes in any order gives the same topology.
//
// Conflicts between nodes are decided alike on every node of the network, whatever its local facts: the node that was
// created first wins, then the one with the lower UID; one without a creation time comes last. Of two nodes with one
// address, name, UID or tunnel address the loser is left out. Of overlapping Pod CIDRs only the losing one is dropped: the
// families are independent, and a node with any Pod CIDR left is a peer. A node that is left out is in nobody's way.
//
// Local facts are applied afterwards and concern this host only: a Pod CIDR that overlaps one of the host's own
// destinations is dropped here, and is not given to the loser of a conflict instead.
//
// The address used for a node is the first of its Addresses that is an IPv4 unicast address.
func Plan(nodes []Node, local Local, policy Policy) Topology {
	return plan(nodes, local, policy, TunnelMAC)
}

func plan(nodes []Node, local Local, policy Policy, mac func(uid string) MAC) Topology {
	cs, special := make([]*candidate, 0, len(nodes)), special()
	for _, n := range nodes {
		cs = append(cs, parse(n, mac, special))
	}
	var t Topology
	found, taken := false, local.destinations()
	for _, c := range admit(cs) {
		self := c.Name == local.NodeName
		found = found || self
		if !c.out {
			local.limit(c, self, taken)
		}
		t.Problems = append(t.Problems, c.problems...)
		switch {
		case c.out:
		case self:
			t.Self = &c.Peer
		default:
			c.Path = policy.path(c.Underlay, local)
			t.Peers = append(t.Peers, c.Peer)
		}
	}
	if !found {
		t.Problems = append(t.Problems, unknownSelf(local.NodeName, nodes))
	}
	slices.SortFunc(t.Peers, func(a, b Peer) int { return strings.Compare(a.Name, b.Name) })
	t.Problems = sortProblems(t.Problems)
	return t
}

// unknownSelf is the problem that no node has the own name. It names a few that there are, to show a slip.
func unknownSelf(name string, nodes []Node) Problem {
	p := Problem{Node: name, Kind: NotHere, Value: name}
	if name == "" {
		p.Message = `node "": the own name is empty; give the name that this node has among the nodes`
		return p
	}
	var known []string
	for _, n := range nodes {
		if n.Name != "" {
			known = append(known, strconv.Quote(n.Name))
		}
	}
	slices.Sort(known)
	known = slices.Compact(known)
	const few = 3
	which, way := "which are "+strings.Join(known[:min(few, len(known))], ", "), "correct the name, or add the node"
	if len(known) > few {
		which += fmt.Sprintf(" and %d more", len(known)-few)
	} else if len(known) == 0 {
		which, way = "of which there are none", "add the node"
	}
	p.Message = fmt.Sprintf("node %q: is not among the nodes, %s; %s", name, which, way)
	return p
}

// limit drops what this host cannot use of a node that the network can.
func (l Local) limit(c *candidate, self bool, taken []netip.Prefix) {
	if self && len(l.Underlay) > 0 && !slices.ContainsFunc(l.Underlay, func(p netip.Prefix) bool { return p.Addr() == c.Underlay }) {
		c.reject(problem(c.Name, NotHere, "address", c.Underlay.String(),
			"is not on this host, which has %v; correct the node's addresses", l.Underlay))
	}
	c.PodCIDRs = slices.DeleteFunc(c.PodCIDRs, func(p netip.Prefix) bool {
		i := slices.IndexFunc(taken, p.Overlaps)
		if i >= 0 {
			c.problems = append(c.problems, problem(c.Name, HostOverlap, "pod CIDR", p.String(),
				"overlaps %s, which this host reaches otherwise; assign the node another one", taken[i]))
		}
		return i >= 0
	})
	c.out = c.out || len(c.PodCIDRs) == 0
}

// destinations returns what no Pod CIDR may overlap on this host.
func (l Local) destinations() []netip.Prefix {
	var taken []netip.Prefix
	for _, p := range slices.Concat(l.Underlay, l.HostRoutes) {
		if p.Bits() > 0 {
			taken = append(taken, p.Masked())
		}
	}
	return taken
}

// path decides how packets reach a peer.
func (p Policy) path(peer netip.Addr, l Local) Path {
	onLink := func(s netip.Prefix) bool { return s.Masked().Contains(peer) }
	if p.DirectOnLink && slices.ContainsFunc(l.Underlay, onLink) {
		return Direct
	}
	return Tunnel
}
