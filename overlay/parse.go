package overlay

import (
	"net/netip"
	"slices"
	"strings"
)

// parseUnderlay returns the first of the addresses that is an IPv4 unicast address, which is where the node's packets are
// sent. Addresses that do not parse, IPv6 and IPv4-mapped addresses, loopback, link-local and multicast are passed over.
func parseUnderlay(addresses []string) (netip.Addr, bool) {
	for _, s := range addresses {
		if a, err := netip.ParseAddr(s); err == nil && a.Is4() && a.IsGlobalUnicast() {
			return a, true
		}
	}
	return netip.Addr{}, false
}

// noAddress is the problem that none of the addresses can be used. One written as a prefix is what was meant, most likely.
func noAddress(n Node) Problem {
	for _, s := range n.Addresses {
		bare, _, found := strings.Cut(s, "/")
		if _, ok := parseUnderlay([]string{bare}); found && ok {
			return problem(n.Name, NoAddress, "address", s, "has a prefix length; write %s", bare)
		}
	}
	return problem(n.Name, NoAddress, "addresses", strings.Join(n.Addresses, ", "),
		"none is an IPv4 unicast address; give the node one that the others reach")
}

// special returns the ranges that no Pod CIDR may touch. They also keep out absurdly large prefixes: any IPv4 prefix shorter
// than /4 covers one of them.
func special() []netip.Prefix {
	var ps []netip.Prefix
	for _, s := range []string{
		"0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "240.0.0.0/4", "::/127", "fe80::/10", "ff00::/8",
	} {
		ps = append(ps, netip.MustParsePrefix(s))
	}
	return ps
}

// parsePodCIDR parses a Pod CIDR, which must not overlap the special ranges. A problem is given by its reason and way out.
func parsePodCIDR(s string, special []netip.Prefix) (p netip.Prefix, reason string) {
	p, err := netip.ParsePrefix(s)
	switch {
	case err != nil:
		return p, "is no prefix; write an address and a length, such as 10.1.2.0/24"
	case p.Addr().Is4In6():
		return p, "is an IPv4 prefix in IPv6 form; write it as IPv4"
	case p != p.Masked():
		return p, "has host bits set; write " + p.Masked().String() + " if that is meant"
	case p.Addr().BitLen()-p.Bits() < 2:
		return p, "is too small for a tunnel address, a gateway and a pod; use at least four addresses"
	}
	if i := slices.IndexFunc(special, p.Overlaps); i >= 0 {
		return p, "overlaps " + special[i].String() + ", which has another use; choose a private range"
	}
	return p, ""
}

// A candidate is a parsed node, on its way to become a peer.
type candidate struct {
	Peer
	node     Node
	problems []Problem
	out      bool // cannot be a peer, whatever its Pod CIDRs
}

// reject notes a problem that keeps the whole node out.
func (c *candidate) reject(p Problem) {
	c.problems = append(c.problems, p)
	c.out = true
}

// parse does what can be done without knowing the other nodes.
func parse(n Node, mac func(uid string) MAC, special []netip.Prefix) *candidate {
	c := &candidate{Peer: Peer{Name: n.Name, UID: n.UID}, node: n}
	if n.Name == "" {
		c.reject(problem("", BadName, "UID", n.UID, "has no name; give every node one"))
	}
	if n.UID == "" {
		c.reject(problem(n.Name, BadUID, "UID", "", "is missing; give every node an identity that changes when it is recreated"))
	} else {
		c.MAC = mac(n.UID)
	}
	var ok bool
	if c.Underlay, ok = parseUnderlay(n.Addresses); !ok {
		c.reject(noAddress(n))
	}
	if len(n.PodCIDRs) == 0 {
		c.reject(problem(n.Name, NoPodCIDR, "pod CIDRs", "", "are missing; assign one to the node"))
	}
	for _, s := range n.PodCIDRs {
		p, reason := parsePodCIDR(s, special)
		if reason != "" {
			c.problems = append(c.problems, problem(n.Name, BadPodCIDR, "pod CIDR", s, "%s", reason))
			continue
		}
		c.PodCIDRs = append(c.PodCIDRs, p)
	}
	slices.SortFunc(c.PodCIDRs, comparePrefix)
	return c
}

// comparePrefix orders IPv4 before IPv6, then by address, then by length.
func comparePrefix(a, b netip.Prefix) int {
	if c := a.Addr().Compare(b.Addr()); c != 0 {
		return c
	}
	return a.Bits() - b.Bits()
}
