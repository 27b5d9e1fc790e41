package overlay

import "time"

// A Node is a member of the network as its source describes it. Nothing is parsed, so that one bad string cannot cost the
// source its other nodes; [Plan] parses and reports.
type Node struct {
	Name      string    // unique in the network
	UID       string    // identity: a node deleted and created again under its old name has another one
	Created   time.Time // the older node wins a conflict
	PodCIDRs  []string  // prefixes of its pods, such as "10.1.2.0/24"; any number of either family
	Addresses []string  // its addresses on the network between the nodes, the preferred one first
}
