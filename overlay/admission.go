package overlay

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
)

// An admission lets candidates in, the oldest first, so that in a conflict the older node wins on every node of the network
// and a newcomer never takes over. A candidate that is not let in leaves no trace and can be in nobody's way.
type admission struct {
	names, uids map[string]string // to the name of the node that has it
	macs        map[MAC]string
	pods        *prefixSet
	underlays   *prefixSet
}

// admit decides on all candidates and returns them in order of age; those with out set are no peers.
func admit(cs []*candidate) []*candidate {
	slices.SortFunc(cs, byAge)
	lengths := podLengths(cs)
	a := &admission{
		names: map[string]string{}, uids: map[string]string{}, macs: map[MAC]string{},
		pods: newPrefixSet(lengths), underlays: newPrefixSet(lengths),
	}
	for _, c := range cs {
		a.identity(c)
		a.address(c)
		a.podCIDRs(c)
		if c.out = c.out || len(c.PodCIDRs) == 0; !c.out {
			a.add(c)
		}
	}
	return cs
}

// byAge orders by creation time, then UID, then name. A node without a creation time counts as the youngest. The remaining
// fields are compared so that the order of the input never matters.
func byAge(a, b *candidate) int {
	x, y := a.node, b.node
	if x.Created.IsZero() != y.Created.IsZero() {
		if x.Created.IsZero() {
			return 1
		}
		return -1
	}
	return cmp.Or(x.Created.Compare(y.Created), cmp.Compare(x.UID, y.UID), cmp.Compare(x.Name, y.Name),
		slices.Compare(x.Addresses, y.Addresses), slices.Compare(x.PodCIDRs, y.PodCIDRs))
}

// podLengths returns the lengths of all Pod CIDRs, and that of a single IPv4 address, by family.
func podLengths(cs []*candidate) map[bool][]int {
	lengths := map[bool][]int{true: {32}}
	for _, c := range cs {
		for _, p := range c.PodCIDRs {
			if is4 := p.Addr().Is4(); !slices.Contains(lengths[is4], p.Bits()) {
				lengths[is4] = append(lengths[is4], p.Bits())
			}
		}
	}
	return lengths
}

func (a *admission) identity(c *candidate) {
	if other, ok := a.names[c.Name]; ok {
		c.reject(problem(c.Name, BadName, "UID", c.UID, "an older node has the same name; rename one").with(other))
	}
	if other, ok := a.uids[c.UID]; ok {
		c.reject(problem(c.Name, BadUID, "UID", c.UID, "the older node %q has the same; recreate one of them", other).with(other))
	} else if other, ok := a.macs[c.MAC]; ok && c.UID != "" {
		c.reject(problem(c.Name, MACCollision, "UID", c.UID,
			"gives the tunnel address %s, which the older node %q has; recreate one of them", c.MAC, other).with(other))
	}
}

func (a *admission) address(c *candidate) {
	if !c.Underlay.IsValid() {
		return
	}
	p := hostPrefix(c.Underlay)
	if other, ok := a.underlays.exact[p]; ok {
		c.reject(problem(c.Name, DuplicateAddress, "address", c.Underlay.String(),
			"the older node %q has the same; give each node its own, or put the distinct one first", other).with(other))
	}
	if other, ok := a.pods.overlap(p); ok {
		c.reject(problem(c.Name, AddressInPods, "address", c.Underlay.String(),
			"lies in a pod CIDR of the older node %q; use ranges for pods that no node is in", other).with(other))
	}
}

// podCIDRs drops the Pod CIDRs that are in conflict; the others, such as those of the other family, stay.
func (a *admission) podCIDRs(c *candidate) {
	var kept []netip.Prefix
	for _, p := range c.PodCIDRs {
		other, kind := a.conflict(c, kept, p)
		if kind == "" {
			kept = append(kept, p)
			continue
		}
		what := "overlaps one"
		if kind == PodCIDROnNode {
			what = "contains the address"
		}
		whose := fmt.Sprintf("of the older node %q", other)
		if other == c.Name {
			whose = "of the node itself"
		}
		c.problems = append(c.problems, problem(c.Name, kind, "pod CIDR", p.String(),
			"%s %s; assign the node another one", what, whose).with(other))
	}
	c.PodCIDRs = kept
}

// conflict returns what p is in conflict with: an older node, or c itself, of which kept are the Pod CIDRs so far.
func (a *admission) conflict(c *candidate, kept []netip.Prefix, p netip.Prefix) (other, kind string) {
	if other, ok := a.pods.overlap(p); ok {
		return other, PodCIDROverlap
	}
	if other, ok := a.underlays.overlap(p); ok {
		return other, PodCIDROnNode
	}
	switch {
	case slices.ContainsFunc(kept, p.Overlaps):
		return c.Name, PodCIDROverlap
	case p.Contains(c.Underlay):
		return c.Name, PodCIDROnNode
	}
	return "", ""
}

func (a *admission) add(c *candidate) {
	a.names[c.Name], a.uids[c.UID], a.macs[c.MAC] = c.Name, c.Name, c.Name
	a.underlays.add(hostPrefix(c.Underlay), c.Name)
	for _, p := range c.PodCIDRs {
		a.pods.add(p, c.Name)
	}
}
