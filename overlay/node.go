package overlay

import (
	"slices"
	"time"
)

// A Node is a member of the network as its source describes it. Nothing is parsed, so that one bad string cannot cost the
// source its other nodes; [Plan] parses and reports.
type Node struct {
	Name      string    // unique in the network
	UID       string    // identity: a node deleted and created again under its old name has another one
	Created   time.Time // the older node wins a conflict
	PodCIDRs  []string  // prefixes of its pods, such as "10.1.2.0/24"; any number of either family
	Addresses []string  // its addresses on the network between the nodes, the preferred one first
}

// Equal reports whether n and o are the same in every field. Creation times are compared as instants.
func (n Node) Equal(o Node) bool {
	return n.Name == o.Name && n.UID == o.UID && n.Created.Equal(o.Created) &&
		slices.Equal(n.PodCIDRs, o.PodCIDRs) && slices.Equal(n.Addresses, o.Addresses)
}

func (n Node) clone() Node {
	n.PodCIDRs, n.Addresses = slices.Clone(n.PodCIDRs), slices.Clone(n.Addresses)
	return n
}
