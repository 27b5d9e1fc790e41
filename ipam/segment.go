package ipam

import (
	"math"
	"math/bits"
	"net/netip"
	"slices"
)

// segment is a run of addresses, all of which may be handed out.
type segment struct{ first, last netip.Addr }

func (s segment) contains(addr netip.Addr) bool {
	return !addr.Less(s.first) && !s.last.Less(addr)
}

// segments returns, in order, what of a normalized range may be handed out: no
// network and no broadcast address, even if the range is configured to begin or end
// there, no exclusion, none of the gateways given, and no IPv4 address in IPv6 notation.
func (r Range) segments(gateways []netip.Addr) []segment {
	first, last := usable(r.Subnet)
	whole := segment{higher(first, r.Start), lower(last, r.End)}
	if whole.last.Less(whole.first) {
		return nil
	}
	return whole.without(r.closed(gateways))
}

// closed returns what is not handed out between the first and the last usable address,
// in order of its first addresses.
func (r Range) closed(gateways []netip.Addr) []segment {
	closed := make([]segment, 0, len(gateways)+len(r.Exclude)+1)
	if r.Start.Is6() {
		mapped := netip.MustParsePrefix("::ffff:0:0/96")
		closed = append(closed, segment{mapped.Addr(), lastAddr(mapped)})
	}
	for _, g := range gateways {
		closed = append(closed, segment{g, g})
	}
	for _, x := range r.Exclude {
		closed = append(closed, segment{x.Addr(), lastAddr(x)})
	}
	slices.SortFunc(closed, func(a, b segment) int { return a.first.Compare(b.first) })
	return closed
}

// without cuts the closed segments out, which are in order and may overlap.
func (s segment) without(closed []segment) (open []segment) {
	next := s.first
	for _, c := range closed {
		if c.last.Less(next) {
			continue
		}
		if s.last.Less(c.first) {
			break
		}
		if next.Less(c.first) {
			open = append(open, segment{next, c.first.Prev()})
		}
		if next = c.last.Next(); !next.IsValid() || s.last.Less(next) {
			return open
		}
	}
	return append(open, segment{next, s.last})
}

// space is a range set as a pool hands it out: its ranges with their segments.
type space struct {
	RangeSet
	segments [][]segment // of each range
}

// spaces returns the spaces of normalized sets. A gateway of one range is handed out
// by none.
func spaces(sets []RangeSet) []space {
	gateways := gateways(sets)
	out := make([]space, len(sets))
	for i, s := range sets {
		out[i].RangeSet = s
		for _, r := range s {
			out[i].segments = append(out[i].segments, r.segments(gateways))
		}
	}
	return out
}

func gateways(sets []RangeSet) (addrs []netip.Addr) {
	for _, s := range sets {
		for _, r := range s {
			if r.Gateway.IsValid() {
				addrs = append(addrs, r.Gateway)
			}
		}
	}
	return addrs
}

// holds reports whether addr may be handed out.
func (s space) holds(addr netip.Addr) bool {
	i := s.index(addr)
	if i < 0 {
		return false
	}
	_, ok := slices.BinarySearchFunc(s.segments[i], addr, func(g segment, addr netip.Addr) int {
		if g.contains(addr) {
			return 0
		}
		return g.first.Compare(addr)
	})
	return ok
}

// all returns the segments in the order of the configuration.
func (s space) all() []segment { return slices.Concat(s.segments...) }

// keptBack returns how many addresses of the ranges are never handed out; 0 if there are
// too many addresses to count.
func (s space) keptBack() uint64 {
	var all uint64
	for _, r := range s.RangeSet {
		all = addSize(all, count(r.Start, r.End))
	}
	if all == math.MaxUint64 {
		return 0
	}
	return all - sizeOf(s.all())
}

// after returns segments that have every address of the space once, beginning behind
// last and wrapping around. A last outside the set means the beginning.
func (s space) after(last netip.Addr) []segment {
	at := s.index(last)
	if at < 0 {
		return s.all()
	}
	upTo, behind := part(s.segments[at], last.Unmap())
	order := slices.Concat(s.segments[at+1:]...)
	order = append(behind, order...)
	order = append(order, slices.Concat(s.segments[:at]...)...)
	return append(order, upTo...)
}

// part divides segments into what is not behind addr and what is.
func part(segments []segment, addr netip.Addr) (upTo, behind []segment) {
	for _, s := range segments {
		switch {
		case addr.Less(s.first):
			behind = append(behind, s)
		case !addr.Less(s.last):
			upTo = append(upTo, s)
		default:
			upTo = append(upTo, segment{s.first, addr})
			behind = append(behind, segment{addr.Next(), s.last})
		}
	}
	return upTo, behind
}

// sizeOf returns the number of addresses of segments, at most math.MaxUint64.
func sizeOf(segments []segment) (n uint64) {
	for _, s := range segments {
		n = addSize(n, count(s.first, s.last))
	}
	return n
}

func addSize(a, b uint64) uint64 {
	sum, carry := bits.Add64(a, b, 0)
	if carry != 0 {
		return math.MaxUint64
	}
	return sum
}

func lower(a, b netip.Addr) netip.Addr {
	if b.Less(a) {
		return b
	}
	return a
}

func higher(a, b netip.Addr) netip.Addr {
	if a.Less(b) {
		return b
	}
	return a
}
