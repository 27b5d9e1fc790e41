package hostlocal

import (
	"net/netip"
	"time"
)

// rest notes when an address was released; the zero time removes the note. It returns
// what was noted before.
func (x *index) rest(addr netip.Addr, at time.Time) (before time.Time, err error) {
	n := numberOf(addr)
	where, e, ok, err := x.find(restKey(n), n, true)
	if err != nil {
		return time.Time{}, err
	}
	if ok {
		before = e.at
		if err := x.drop(where); err != nil {
			return time.Time{}, err
		}
	}
	if at.IsZero() {
		return before, nil
	}
	return before, x.add(entry{key: restKey(n), addr: n, kind: kindRest, at: at})
}

// resting returns which of the 64 addresses around n were released at or after rested.
// A release in the future is one before the clock was set back, and long ago.
func (x *index) resting(n number, rested, now time.Time) (group uint64, err error) {
	base := n.base(restGroup)
	_, _, err = x.entries.find(restKey(n), func(slot []byte) bool {
		e := decodeEntry(slot)
		if e.kind == kindRest && e.addr.base(restGroup) == base && e.rests(rested, now) {
			group |= 1 << (e.addr.lo & (1<<restGroup - 1))
		}
		return false
	})
	return group, err
}

func (e entry) rests(rested, now time.Time) bool { return !e.at.Before(rested) && !e.at.After(now) }

// nextFree returns the lowest address from first to last that is not taken and does not
// rest; rested zero: whether it rests or not.
func (x *index) nextFree(first, last netip.Addr, rested, now time.Time) (netip.Addr, error) {
	end := numberOf(last)
	var group uint64  // what rests,
	var around number // of those around this one
	for at, ok := numberOf(first), true; ok; at, ok = at.plus(1) {
		var err error
		if at, ok, err = x.chunks.free(at); err != nil || !ok || end.less(at) {
			return netip.Addr{}, err
		}
		if rested.IsZero() {
			return at.addr(), nil
		}
		if base := at.base(restGroup); base != around || base == (number{}) {
			if group, err = x.resting(at, rested, now); err != nil {
				return netip.Addr{}, err
			}
			around = base
		}
		if group>>(at.lo&(1<<restGroup-1))&1 == 0 {
			return at.addr(), nil
		}
	}
	return netip.Addr{}, nil
}

// rests returns how many addresses from first to last rest, and since when the first of
// them does. It looks at every entry.
func (x *index) rests(first, last netip.Addr, rested, now time.Time) (n uint64, oldest time.Time, err error) {
	from, to := numberOf(first), numberOf(last)
	err = x.entries.each(false, func(slot []byte) {
		e := decodeEntry(slot)
		if e.kind != kindRest || e.addr.four != from.four || e.addr.less(from) || to.less(e.addr) || !e.rests(rested, now) {
			return
		}
		if n++; oldest.IsZero() || e.at.Before(oldest) {
			oldest = e.at
		}
	})
	return n, oldest, err
}
