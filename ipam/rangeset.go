package ipam

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"net/netip"
	"strings"
)

// RangeSet is an ordered list of ranges of one address family. An owner gets
// one address out of the whole set.
type RangeSet []Range

// NormalizeSets normalizes every range of every set and checks that they fit
// together: no set is empty or mixes address families, no two ranges overlap, and each
// has an address to hand out that is no gateway of another. Errors are of type
// [*RangeError]. The argument is left unchanged.
func NormalizeSets(sets []RangeSet) ([]RangeSet, error) {
	out := make([]RangeSet, 0, len(sets))
	for i, s := range sets {
		n, err := s.normalize(i)
		if err != nil {
			return nil, err
		}
		if err := n.checkOverlap(i, out); err != nil {
			return nil, err
		}
		out = append(out, n)
	}
	return out, checkRoom(out)
}

// checkRoom finds the ranges in which nothing is left to hand out.
func checkRoom(sets []RangeSet) error {
	for i, s := range spaces(sets) {
		for j, segments := range s.segments {
			if len(segments) == 0 {
				return at(s.RangeSet[j].noRoom("the gateways of other ranges are in it"), i, j)
			}
		}
	}
	return nil
}

func (s RangeSet) normalize(set int) (RangeSet, error) {
	if len(s) == 0 {
		return nil, &RangeError{Set: set, Reason: "range set is empty", Fix: "give it at least one range with a subnet, or remove it"}
	}
	out := make(RangeSet, 0, len(s))
	for i, r := range s {
		n, err := r.Normalize()
		if err != nil {
			return nil, at(err, set, i)
		}
		if i > 0 && n.Start.BitLen() != out[0].Start.BitLen() {
			return nil, &RangeError{Set: set, Range: i, Key: "subnet", Value: n.Subnet.String(),
				Reason: fmt.Sprintf("is of another address family than %s in the same range set", out[0].Subnet),
				Fix:    "give each address family a range set of its own"}
		}
		out = append(out, n)
	}
	return out, nil
}

// checkOverlap compares the ranges of set with those before them, in the same
// set and in earlier ones.
func (s RangeSet) checkOverlap(set int, earlier []RangeSet) error {
	var seen RangeSet
	for _, e := range earlier {
		seen = append(seen, e...)
	}
	for i, r := range s {
		for _, o := range seen {
			if r.overlaps(o) {
				return &RangeError{Set: set, Range: i, Key: "subnet", Value: r.Subnet.String(),
					Reason: fmt.Sprintf("%s overlaps %s of another range", r, o),
					Fix:    "set rangeStart and rangeEnd so that no address is in two ranges"}
			}
		}
		seen = append(seen, r)
	}
	return nil
}

// at adds the position of a range to its error.
func at(err error, set, i int) error {
	var re *RangeError
	if errors.As(err, &re) {
		re.Set, re.Range = set, i
	}
	return err
}

// Contains reports whether one of the ranges contains addr.
func (s RangeSet) Contains(addr netip.Addr) bool { return s.index(addr) >= 0 }

// index returns the index of the range that contains addr, or -1.
func (s RangeSet) index(addr netip.Addr) int {
	for i, r := range s {
		if r.Contains(addr) {
			return i
		}
	}
	return -1
}

// String renders the ranges separated by commas.
func (s RangeSet) String() string {
	parts := make([]string, len(s))
	for i, r := range s {
		parts[i] = r.String()
	}
	return strings.Join(parts, ",")
}

// count returns the number of addresses from first to last, both included, at
// most math.MaxUint64; 0 when last is before first.
func count(first, last netip.Addr) uint64 {
	if last.Less(first) {
		return 0
	}
	f, l := first.As16(), last.As16()
	lo, borrow := bits.Sub64(binary.BigEndian.Uint64(l[8:]), binary.BigEndian.Uint64(f[8:]), 0)
	hi, _ := bits.Sub64(binary.BigEndian.Uint64(l[:8]), binary.BigEndian.Uint64(f[:8]), borrow)
	if hi != 0 || lo == math.MaxUint64 {
		return math.MaxUint64
	}
	return lo + 1
}
