package ipamtest

import (
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/cnikit/cnikit/ipam"
)

// model is a store and a pool in their simplest form: maps, and a walk over every
// address of every range. It shares no code with package ipam but the type of a range.
type model struct {
	quarantine time.Duration
	held       map[netip.Addr]ipam.Owner
	released   map[netip.Addr]time.Time // of addresses that nobody holds
	last       map[int]netip.Addr
}

func newModel(quarantine time.Duration) *model {
	return &model{quarantine: quarantine, held: map[netip.Addr]ipam.Owner{}, released: map[netip.Addr]time.Time{}, last: map[int]netip.Addr{}}
}

// sets are the ranges of a pool, normalized.
type sets []ipam.RangeSet

func between(first, last, a netip.Addr) bool {
	return a.BitLen() == first.BitLen() && a.Compare(first) >= 0 && a.Compare(last) <= 0
}

func (s sets) contains(set int, a netip.Addr) bool {
	return slices.ContainsFunc(s[set], func(r ipam.Range) bool { return between(r.Start, r.End, a) })
}

// open reports whether a range, which contains a, may hand it out.
func (s sets) open(r ipam.Range, a netip.Addr) bool {
	for _, other := range s {
		if slices.ContainsFunc(other, func(r ipam.Range) bool { return r.Gateway == a }) {
			return false
		}
	}
	if slices.ContainsFunc(r.Exclude, func(x netip.Prefix) bool { return x.Contains(a) }) {
		return false
	}
	network, broadcast := a == r.Subnet.Addr(), a.Is4() && !r.Subnet.Contains(a.Next())
	return r.Subnet.Bits() > a.BitLen()-2 || !network && !broadcast
}

// everything returns what a set may hand out, in the order of the configuration and
// with the closed addresses in their places as zero.
func (s sets) everything(set int) (in, open []netip.Addr) {
	for _, r := range s[set] {
		for a := r.Start; between(r.Start, r.End, a); a = a.Next() {
			in = append(in, a)
			if s.open(r, a) {
				open = append(open, a)
			} else {
				open = append(open, netip.Addr{})
			}
		}
	}
	return in, open
}

// after returns what a set may hand out, beginning behind the last one.
func (s sets) after(set int, last netip.Addr) []netip.Addr {
	in, open := s.everything(set)
	i := slices.Index(in, last) + 1
	order := slices.Concat(open[i:], open[:i])
	return slices.DeleteFunc(order, func(a netip.Addr) bool { return !a.IsValid() })
}

func (m *model) rests(a netip.Addr) bool {
	at, ok := m.released[a]
	return ok && m.quarantine > 0 && time.Since(at) <= m.quarantine
}

func (m *model) taken(a netip.Addr) bool { _, ok := m.held[a]; return ok }

// owned returns what an owner holds: by its own records, or by those of the whole
// container when there are none.
func (m *model) owned(o ipam.Owner) (exact []netip.Addr) {
	var whole []netip.Addr
	for _, r := range m.recordsOf(o) {
		if r.Owner == o {
			exact = append(exact, r.Address)
		} else {
			whole = append(whole, r.Address)
		}
	}
	if len(exact) > 0 {
		return exact
	}
	return whole
}

// allocate returns what an Allocate must return, and the error it must match.
func (m *model) allocate(s sets, o ipam.Owner, requested []netip.Addr) ([]netip.Addr, error) {
	wanted, err := s.assign(requested)
	if err != nil {
		return nil, err
	}
	got := make([]netip.Addr, len(s))
	for set := range s {
		if got[set], err = m.present(s, set, o, wanted[set]); err != nil {
			return nil, err
		}
	}
	fresh := map[int]netip.Addr{}
	for set := range s {
		if got[set].IsValid() {
			continue
		}
		if got[set], err = m.choose(s, set, wanted[set]); err != nil {
			return nil, err
		}
		fresh[set] = got[set]
	}
	for set, a := range fresh {
		m.reserve(a, o)
		m.last[set] = a
	}
	return got, nil
}

func (s sets) assign(requested []netip.Addr) ([]netip.Addr, error) {
	wanted := make([]netip.Addr, len(s))
	for _, a := range requested {
		set := slices.IndexFunc(s, func(set ipam.RangeSet) bool { return sets{set}.contains(0, a) })
		if set < 0 || wanted[set].IsValid() && wanted[set] != a {
			return nil, ipam.ErrNotAllocatable
		}
		wanted[set] = a
	}
	return wanted, nil
}

// present returns what the owner has in a set, or why it cannot get what it wants.
func (m *model) present(s sets, set int, o ipam.Owner, wanted netip.Addr) (netip.Addr, error) {
	var has []netip.Addr
	for _, a := range m.owned(o) {
		if s.contains(set, a) {
			has = append(has, a)
		}
	}
	switch {
	case len(has) == 0:
		if wanted.IsValid() && !slices.Contains(s.after(set, netip.Addr{}), wanted) {
			return wanted, ipam.ErrNotAllocatable
		}
		return netip.Addr{}, nil
	case m.held[has[0]] != o:
		return netip.Addr{}, ipam.ErrHeld
	case wanted.IsValid() && !slices.Contains(has, wanted):
		return netip.Addr{}, ipam.ErrHeld
	case wanted.IsValid():
		return wanted, nil
	}
	return has[0], nil
}

func (m *model) choose(s sets, set int, wanted netip.Addr) (netip.Addr, error) {
	if wanted.IsValid() {
		if m.taken(wanted) {
			return wanted, ipam.ErrTaken
		}
		return wanted, nil
	}
	for _, a := range s.after(set, m.last[set]) {
		if !m.taken(a) && !m.rests(a) {
			return a, nil
		}
	}
	return netip.Addr{}, ipam.ErrExhausted
}

func (m *model) reserve(a netip.Addr, o ipam.Owner) {
	m.held[a] = o
	delete(m.released, a)
}

func (m *model) release(a netip.Addr) {
	delete(m.held, a)
	m.released[a] = time.Now()
}

// retain frees what is not valid.
func (m *model) retain(valid []ipam.Owner) {
	for a, o := range m.held {
		ok := slices.ContainsFunc(valid, func(v ipam.Owner) bool {
			return o == v || o == ipam.Owner{ContainerID: v.ContainerID}
		})
		if !ok {
			m.release(a)
		}
	}
}

// usage returns the figures of each range of a set, and the addresses outside of all.
func (m *model) usage(s sets) (figures [][]ipam.Figures, outside []netip.Addr) {
	inside := map[netip.Addr]bool{}
	for set, ranges := range s {
		figures = append(figures, nil)
		for _, r := range ranges {
			var f ipam.Figures
			for a := r.Start; between(r.Start, r.End, a); a = a.Next() {
				if !s.open(r, a) {
					continue
				}
				f.Size++
				switch inside[a] = true; {
				case m.taken(a):
					f.Used++
				case m.rests(a):
					f.Resting++
				}
			}
			figures[set] = append(figures[set], f)
		}
	}
	for a := range m.held {
		if !inside[a] {
			outside = append(outside, a)
		}
	}
	slices.SortFunc(outside, netip.Addr.Compare)
	return figures, outside
}

// look is Count and NextFree.
func (m *model) look(first, last netip.Addr, resting bool) (count uint64, next netip.Addr) {
	for a := first; between(first, last, a); a = a.Next() {
		if m.taken(a) {
			count++
		} else if !next.IsValid() && (!resting || !m.rests(a)) {
			next = a
		}
	}
	return count, next
}

// records returns every record by ascending address.
func (m *model) records() (out []ipam.Reservation) {
	for _, a := range slices.SortedFunc(maps.Keys(m.held), netip.Addr.Compare) {
		out = append(out, ipam.Reservation{Address: a, Owner: m.held[a]})
	}
	return out
}

// recordsOf returns those that an owner may release.
func (m *model) recordsOf(o ipam.Owner) []ipam.Reservation {
	return slices.DeleteFunc(m.records(), func(r ipam.Reservation) bool {
		return r.Owner != o && r.Owner != ipam.Owner{ContainerID: o.ContainerID}
	})
}

func addressesOf(leases []ipam.Lease) (out []netip.Addr) {
	for _, l := range leases {
		out = append(out, l.Address.Addr())
	}
	return out
}
