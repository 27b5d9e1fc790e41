package hostlocal

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"net/netip"
	"time"

	"github.com/cnikit/cnikit/ipam"
)

// Get implements [ipam.ReadTx]. A file that cannot be read is a taken address
// of nobody; a torn one is free. An error says that it is not known whether there is one.
func (t *tx) Get(addr netip.Addr) (ipam.Owner, bool, error) {
	r, err := t.read(addr.String())
	if unread(err) && !r.there {
		return ipam.Owner{}, false, err
	}
	return r.owner, r.there && !r.torn(), nil
}

// Owned implements [ipam.ReadTx].
func (t *tx) Owned(o ipam.Owner) (owned []ipam.Reservation, err error) {
	var asked bool
	var unknown error
	err = t.ask(func(x *index) error {
		addrs, err := x.owned(o.ContainerID)
		if err != nil {
			return err
		}
		again := asked
		owned, asked, unknown = nil, true, nil
		for _, addr := range addrs {
			r, err := t.read(addr.String())
			if unread(err) {
				unknown = err
				return nil
			}
			if strange := err != nil || r.owner.ContainerID != o.ContainerID; strange && !again {
				return fmt.Errorf("%s is not of container %s: %w", addr, o.ContainerID, errDamaged)
			} else if strange {
				continue // it was, a moment ago
			}
			if r.owner.IfName == o.IfName || r.owner.IfName == "" {
				owned = append(owned, ipam.Reservation{Address: addr, Owner: r.owner})
			}
		}
		return nil
	})
	return owned, errors.Join(err, unknown)
}

// ask answers a question from the index; from a new one when it cannot be true.
func (t *tx) ask(question func(x *index) error) error {
	x, err := t.index()
	if err != nil {
		return err
	}
	if question(x) == nil {
		return nil
	}
	t.forget()
	if x, err = t.index(); err != nil {
		return err
	}
	if err := question(x); err != nil {
		return fmt.Errorf("look through leases, which change meanwhile: %w", err)
	}
	return nil
}

// All implements [ipam.ReadTx]. It reads the directory, not the index, and drops an index
// that does not know what it sees. Torn records are among them, with a zero Owner,
// so that garbage collection clears them away; empty ones that a writer may be
// about to fill are not.
func (t *tx) All() iter.Seq2[ipam.Reservation, error] {
	return func(yield func(ipam.Reservation, error) bool) {
		names, err := t.names()
		if err != nil {
			yield(ipam.Reservation{}, err)
			return
		}
		var taken uint64
		for _, name := range names {
			addr, ok := addrOf(name)
			if !ok {
				continue
			}
			r, err := t.read(name)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			t.compare(addr, !r.torn())
			if !r.torn() {
				taken++
			}
			if err == nil && r.empty && r.young {
				continue
			}
			if !yield(ipam.Reservation{Address: addr, Owner: r.owner}, err) {
				return
			}
		}
		t.compareCount(taken)
	}
}

// compareCount drops the index when it knows more addresses, or fewer.
func (t *tx) compareCount(taken uint64) {
	if !t.open() {
		return
	}
	n4, err4 := t.x.chunks.count(number{four: true}, number{lo: 1<<32 - 1, four: true})
	n6, err6 := t.x.chunks.count(number{}, number{hi: 1<<64 - 1, lo: 1<<64 - 1})
	if err4 != nil || err6 != nil || n4+n6 != taken {
		t.forget()
	}
}

// compare drops the index when it is wrong about an address.
func (t *tx) compare(addr netip.Addr, taken bool) {
	if !t.open() {
		return
	}
	if has, err := t.x.has(addr); err != nil || has != taken {
		t.forget()
	}
}

// Last implements [ipam.ReadTx]. It is a hint: whatever is wrong with the file
// costs the round robin its place, and nothing else.
func (t *tx) Last(set int) (netip.Addr, error) {
	_, data, err := t.readFile(t.path(lastName(set)))
	if err != nil {
		return netip.Addr{}, nil
	}
	addr, ok := addrOf(string(bytes.TrimSpace(data)))
	if !ok {
		return netip.Addr{}, nil
	}
	return addr, nil
}

// Count implements [ipam.ReadTx].
func (t *tx) Count(first, last netip.Addr) (n uint64, err error) {
	err = t.ask(func(x *index) (err error) {
		n, err = x.chunks.count(numberOf(first), numberOf(last))
		return err
	})
	return n, err
}

// NextFree implements [ipam.ReadTx].
func (t *tx) NextFree(first, last netip.Addr, rested time.Time) (addr netip.Addr, err error) {
	if t.store.rest <= 0 {
		rested = time.Time{}
	}
	err = t.ask(func(x *index) (err error) {
		addr, err = x.nextFree(first, last, rested, time.Now())
		return err
	})
	return addr, err
}

// Resting implements [ipam.ReadTx].
func (t *tx) Resting(first, last netip.Addr, rested time.Time) (n uint64, oldest time.Time, err error) {
	if t.store.rest <= 0 {
		return 0, time.Time{}, nil
	}
	err = t.ask(func(x *index) (err error) {
		n, oldest, err = x.rests(first, last, rested, time.Now())
		return err
	})
	return n, oldest, err
}
