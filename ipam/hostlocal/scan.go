package hostlocal

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"slices"
	"time"
)

// found is what a scan knows of an address file.
type found struct {
	addr      netip.Addr
	container string // empty: nobody's
	written   time.Time
}

// scan makes an index in memory by looking at every file. What only an index knows, it
// takes from the one on disk as far as that can be read: since when addresses rest, and
// which leases are of an earlier boot.
func (t *tx) scan() (*index, error) {
	seen, err := t.look()
	if err != nil {
		return nil, err
	}
	if seen.unread {
		t.stamp = time.Time{} // the next one may know more
	}
	past := t.past()
	x := newIndex(uint64(len(seen.leases)+len(past.rests)), chunksOf(seen.leases))
	if !seen.torn.IsZero() {
		x.Revisit = seen.torn.UnixNano()
	}
	for _, l := range seen.leases {
		kind := past.kind(l)
		delete(past.rests, l.addr)
		delete(past.leases, l.addr)
		if err := x.take(l.addr, l.container, kind); err != nil {
			return nil, err
		}
	}
	for addr, at := range past.resting(t) {
		if _, err := x.rest(addr, at); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// sight is what a look at every address file finds.
type sight struct {
	leases []found   // by ascending address
	torn   time.Time // when the first of those that are empty and may be about to be filled is torn
	unread bool      // whose some are could not be read, this time
}

// look reads every address file.
func (t *tx) look() (s sight, err error) {
	names, err := t.names()
	if err != nil {
		return s, err
	}
	for _, name := range names {
		addr, ok := addrOf(name)
		if !ok {
			continue
		}
		r, err := t.read(name)
		if starved(err) {
			return s, err
		}
		if errors.Is(err, fs.ErrNotExist) || err == nil && r.torn() {
			continue
		}
		if old := r.written.Add(tornAge); r.empty && (s.torn.IsZero() || old.Before(s.torn)) {
			s.torn = old
		}
		s.unread = s.unread || unread(err)
		s.leases = append(s.leases, found{addr, r.owner.ContainerID, r.written})
	}
	slices.SortFunc(s.leases, func(a, b found) int { return a.addr.Compare(b.addr) })
	same := func(a, b found) bool { return a.addr == b.addr } // listed twice, being replaced meanwhile
	s.leases = slices.CompactFunc(s.leases, same)
	return s, nil
}

// chunksOf returns how many chunks leases in order take, roughly.
func chunksOf(leases []found) (n uint64) {
	var base number
	for i, l := range leases {
		if b := numberOf(l.addr).base(8); i == 0 || b != base {
			base = b
			n++
		}
	}
	return n + n/chunkBits
}

// past is what an earlier index knew, whether it is valid or not.
type past struct {
	thisBoot bool
	began    time.Time // the boot
	leases   map[netip.Addr]entry
	rests    map[netip.Addr]time.Time
}

func (t *tx) past() past {
	p := past{began: t.since, leases: map[netip.Addr]entry{}, rests: map[netip.Addr]time.Time{}}
	x := t.onDisk()
	if x == nil {
		return p
	}
	p.thisBoot = x.Boot == bootOf(t.boot)
	_ = x.entries.each(true, func(slot []byte) { // lenient: never an error
		switch e := decodeEntry(slot); e.kind {
		case kindRest:
			p.rests[e.addr.addr()] = e.at
		case kindLease, kindEarlier:
			p.leases[e.addr.addr()] = e
		}
	})
	return p
}

// kind says of which boot a lease is. One that an index of this boot knows is of the boot
// it was noted with, whatever the clock has done since. Of others their file tells, which
// is written once, by a time that may be cut off to the second.
func (p past) kind(l found) byte {
	if e, ok := p.leases[l.addr]; ok && p.thisBoot && e.key == leaseKey(l.container) {
		return e.kind
	}
	if !p.began.IsZero() && l.written.Add(time.Second).Before(p.began) {
		return kindEarlier
	}
	return kindLease
}

// resting returns the addresses that rest and are not taken. Leases that are gone were
// released by somebody else, at a time that nobody noted: now.
func (p past) resting(t *tx) map[netip.Addr]time.Time {
	if t.store.rest <= 0 {
		return nil
	}
	expired := t.now.Add(-t.store.rest)
	for addr, at := range p.rests {
		if at.Before(expired) {
			delete(p.rests, addr)
		}
	}
	if p.thisBoot {
		for addr := range p.leases {
			p.rests[addr] = t.now
		}
	}
	return p.rests
}

// names returns the names in the directory; a directory that does not exist is empty.
func (t *tx) names() ([]string, error) {
	names, err := t.sys().Names(t.store.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list leases: %w", err)
	}
	return names, nil
}
