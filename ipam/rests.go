package ipam

import (
	"net/netip"
	"time"
)

// rests notes when addresses were released. It keeps a note for as long as it was
// told, and drops the old ones while it takes new ones, so that it needs no
// goroutine. The zero rests keeps nothing.
type rests struct {
	keep  time.Duration
	notes tree // runs of one address each
	queue []rest
}

// rest is a note in the order of time. It is void when the address has another one,
// or none, by now.
type rest struct {
	addr netip.Addr
	at   time.Time
}

// get returns the time of release that is noted for addr; zero: none.
func (s *rests) get(addr netip.Addr) time.Time {
	if r := s.notes.holder(addr); r != nil {
		return r.at
	}
	return time.Time{}
}

// put notes a release. It returns the addresses whose notes are too old by now.
func (s *rests) put(addr netip.Addr, at time.Time) (expired []netip.Addr) {
	s.notes.insert(addr, addr, at)
	s.queue = append(s.queue, rest{addr, at})
	for len(s.queue) > 0 && at.Sub(s.queue[0].at) > s.keep {
		old := s.queue[0]
		s.queue = s.queue[1:]
		if s.get(old.addr).Equal(old.at) {
			s.notes.remove(old.addr)
			expired = append(expired, old.addr)
		}
	}
	return expired
}

// drop forgets addr and returns what was noted.
func (s *rests) drop(addr netip.Addr) time.Time {
	at := s.get(addr)
	if !at.IsZero() {
		s.notes.remove(addr)
	}
	return at
}

// rested returns the lowest noted address from first to last that was released
// before the time given; the zero Addr when there is none.
func (s *rests) rested(first, last netip.Addr, before time.Time) netip.Addr {
	return s.notes.root.rested(first, last, before)
}

func (r *run) rested(first, last netip.Addr, before time.Time) netip.Addr {
	if r == nil || !r.oldest.Before(before) {
		return netip.Addr{}
	}
	if !r.first.Less(first) {
		if addr := r.left.rested(first, last, before); addr.IsValid() {
			return addr
		}
		if last.Less(r.first) {
			return netip.Addr{}
		}
		if r.at.Before(before) {
			return r.first
		}
	}
	return r.right.rested(first, last, before)
}

// resting returns how many noted addresses from first to last were released at or
// after the time given, and when the first of them was.
func (s *rests) resting(first, last netip.Addr, since time.Time) (n uint64, oldest time.Time) {
	if last.Less(first) {
		return 0, time.Time{}
	}
	below, others := split(s.notes.root, first)
	within, above := others, (*run)(nil)
	if next := following(last); next.IsValid() {
		within, above = split(others, next)
	}
	n, oldest = within.resting(since)
	s.notes.root = join(below, join(within, above))
	return n, oldest
}

func (r *run) resting(since time.Time) (n uint64, oldest time.Time) {
	if r == nil {
		return 0, time.Time{}
	}
	if !r.oldest.Before(since) {
		return r.size, r.oldest
	}
	if !r.at.Before(since) {
		n, oldest = 1, r.at
	}
	for _, child := range []*run{r.left, r.right} {
		more, at := child.resting(since)
		n += more
		if oldest.IsZero() || !at.IsZero() && at.Before(oldest) {
			oldest = at
		}
	}
	return n, oldest
}
