package overlay

import (
	"cmp"
	"fmt"
	"slices"
)

// The kinds of problems.
const (
	BadName          = "bad-name"          // no name, or that of another node
	BadUID           = "bad-uid"           // no UID, or that of another node
	NoAddress        = "no-address"        // no usable address
	DuplicateAddress = "duplicate-address" // another node has the address
	AddressInPods    = "address-in-pods"   // the address lies in a Pod CIDR of another node
	MACCollision     = "mac-collision"     // the tunnel addresses derived from two UIDs are equal
	NoPodCIDR        = "no-pod-cidr"       // no Pod CIDR at all
	BadPodCIDR       = "bad-pod-cidr"      // not a prefix that pods can have
	PodCIDROverlap   = "pod-cidr-overlap"  // another node has the Pod CIDR, a part of it or more
	PodCIDROnNode    = "pod-cidr-on-node"  // the Pod CIDR contains the address of a node
	HostOverlap      = "host-overlap"      // the Pod CIDR overlaps a destination of this host; only here
	NotHere          = "not-here"          // the own node is unknown, or its address is not on this host; only here
)

// A Problem is why a node, or one of its Pod CIDRs, was not used.
type Problem struct {
	Node    string `json:"node"`            // the node that loses by it
	Kind    string `json:"kind"`            // one of the constants
	Value   string `json:"value"`           // what is wrong
	Other   string `json:"other,omitempty"` // the node that has it, in a conflict
	Message string `json:"message"`         // node, value, reason and way out, in one line
}

// String returns the message.
func (p Problem) String() string { return p.Message }

// problem makes a problem; what names the value, and reason says what is wrong and what to do about it.
func problem(node, kind, what, value, reason string, args ...any) Problem {
	return Problem{
		Node: node, Kind: kind, Value: value,
		Message: fmt.Sprintf("node %q: %s %q: %s", node, what, value, fmt.Sprintf(reason, args...)),
	}
}

// with names the other party of a conflict.
func (p Problem) with(other string) Problem {
	p.Other = other
	return p
}

// sortProblems orders by node, kind and text, and drops repetitions.
func sortProblems(ps []Problem) []Problem {
	slices.SortFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Message, b.Message),
			cmp.Compare(a.Value, b.Value), cmp.Compare(a.Other, b.Other))
	})
	return slices.Compact(ps)
}
