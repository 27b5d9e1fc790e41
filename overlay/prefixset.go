package overlay

import "net/netip"

// A prefixSet answers which of its prefixes overlaps a given one, in a few map look-ups. The lengths of all prefixes that
// will be added or asked for must be known beforehand; there are only a handful in a network.
type prefixSet struct {
	lengths map[bool][]int          // by "is IPv4"
	exact   map[netip.Prefix]string // owner of each prefix
	within  map[netip.Prefix]string // for each known length: owner of the first prefix inside
}

func newPrefixSet(lengths map[bool][]int) *prefixSet {
	return &prefixSet{lengths: lengths, exact: map[netip.Prefix]string{}, within: map[netip.Prefix]string{}}
}

// add adds p; of prefixes that overlap an earlier one the earlier owner is kept.
func (s *prefixSet) add(p netip.Prefix, owner string) {
	if _, ok := s.exact[p]; !ok {
		s.exact[p] = owner
	}
	for _, n := range s.lengths[p.Addr().Is4()] {
		if n > p.Bits() {
			continue
		}
		outer := netip.PrefixFrom(p.Addr(), n).Masked()
		if _, ok := s.within[outer]; !ok {
			s.within[outer] = owner
		}
	}
}

// overlap returns the owner of a prefix that contains p or is contained in it.
func (s *prefixSet) overlap(p netip.Prefix) (owner string, ok bool) {
	for _, n := range s.lengths[p.Addr().Is4()] {
		if n > p.Bits() {
			continue
		}
		if owner, ok = s.exact[netip.PrefixFrom(p.Addr(), n).Masked()]; ok {
			return owner, true
		}
	}
	owner, ok = s.within[p]
	return owner, ok
}

// hostPrefix is the prefix that contains just a.
func hostPrefix(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }
