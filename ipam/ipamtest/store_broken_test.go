package ipamtest

import (
	"context"
	"errors"
	"iter"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/ipam"
)

// holder looks an address up as the sound store has it.
func holder(tx ipam.Tx, a netip.Addr) ipam.Owner {
	o, _, _ := tx.Get(a)
	return o
}

// TestStoreCatchesEachFault: every rule finds a store that breaks it and keeps the
// others.
func TestStoreCatchesEachFault(t *testing.T) {
	exists := errors.New("no such file")
	faults := map[string]func(s *brokenStore){
		"reserve/takes what is free": func(s *brokenStore) { // not what is IPv6 and ends in 5
			s.reserve = func(tx ipam.Tx, a netip.Addr, o ipam.Owner) (bool, error) {
				if a == addr("fd00::5") {
					return false, nil
				}
				return tx.Reserve(a, o)
			}
		},
		"reserve/refuses what is taken": func(s *brokenStore) { // by the same owner
			s.reserve = func(tx ipam.Tx, a netip.Addr, o ipam.Owner) (bool, error) {
				if holder(tx, a) == o {
					return true, nil
				}
				return tx.Reserve(a, o)
			}
		},
		"release/frees what the owner holds": func(s *brokenStore) { // and what is beside it
			s.release = func(tx ipam.Tx, a netip.Addr, o ipam.Owner) error {
				if a == addr("10.1.0.5") {
					return errors.Join(tx.Release(a, o), tx.Release(a.Next(), o))
				}
				return tx.Release(a, o)
			}
		},
		"release/leaves alone what another holds": func(s *brokenStore) {
			s.release = func(tx ipam.Tx, a netip.Addr, o ipam.Owner) error {
				if held := holder(tx, a); held.ContainerID == o.ContainerID {
					return tx.Release(a, held)
				}
				return tx.Release(a, o)
			}
		},
		"release/absent is nil": func(s *brokenStore) {
			s.release = func(tx ipam.Tx, a netip.Addr, o ipam.Owner) error {
				if _, taken, _ := tx.Get(a); !taken {
					return exists
				}
				return tx.Release(a, o)
			}
		},
		"last/is what was noted, for each set": func(s *brokenStore) { // one for all
			s.setLast = func(tx ipam.Tx, _ int, a netip.Addr) error { return tx.SetLast(0, a) }
		},
		"empty/reads as empty": func(s *brokenStore) {
			fresh := true
			s.update = func(ctx context.Context, fn func(ipam.Tx) error) error {
				return s.Memory.Update(ctx, func(tx ipam.Tx) error {
					fresh = false
					return fn(brokenTx{tx, s})
				})
			}
			s.owned = func(tx ipam.Tx, o ipam.Owner) ([]ipam.Reservation, error) {
				if fresh {
					return nil, exists
				}
				return tx.Owned(o)
			}
		},
		"owned/by ascending address, of the interface alone": func(s *brokenStore) { // in the order of text
			s.owned = func(tx ipam.Tx, o ipam.Owner) ([]ipam.Reservation, error) {
				owned, err := tx.Owned(o)
				if len(owned) > 2 {
					slices.Reverse(owned)
				}
				return owned, err
			}
		},
		"owned/with the records of the whole container": func(s *brokenStore) {
			s.owned = func(tx ipam.Tx, o ipam.Owner) ([]ipam.Reservation, error) {
				owned, err := tx.Owned(o)
				return slices.DeleteFunc(owned, func(r ipam.Reservation) bool { return r.Owner.IfName == "" }), err
			}
		},
		"all/yields every reservation once": func(s *brokenStore) { // not IPv6
			s.all = func(tx ipam.Tx) iter.Seq2[ipam.Reservation, error] {
				return func(yield func(ipam.Reservation, error) bool) {
					for r, err := range tx.All() {
						if r.Address.Is4() && !yield(r, err) {
							return
						}
					}
				}
			}
		},
		"all/ends when its user does": func(s *brokenStore) {
			s.all = func(tx ipam.Tx) iter.Seq2[ipam.Reservation, error] {
				return func(yield func(ipam.Reservation, error) bool) {
					for r, err := range tx.All() {
						yield(r, err)
					}
				}
			}
		},
		"count/from the first to the last": func(s *brokenStore) { // of both families
			s.count = func(tx ipam.Tx, first, last netip.Addr) (uint64, error) {
				if first == addr("::") {
					if n, _ := tx.Count(first, last); n > 1 {
						return tx.Count(addr("0.0.0.0"), last)
					}
				}
				return tx.Count(first, last)
			}
		},
		"next/the lowest free address": func(s *brokenStore) { // of 4096 that begin at a round one
			s.next = func(tx ipam.Tx, first, last netip.Addr, rested time.Time) (netip.Addr, error) {
				a, err := tx.NextFree(first, last, rested)
				if a == addr("10.1.16.1") {
					return a.Next(), err
				}
				return a, err
			}
		},
		"next/none is the zero address": func(s *brokenStore) { // runs over the end
			s.next = func(tx ipam.Tx, first, last netip.Addr, rested time.Time) (netip.Addr, error) {
				if last == addr("10.1.16.0") {
					last = last.Next()
				}
				return tx.NextFree(first, last, rested)
			}
		},
		"next/at the ends of the families": func(s *brokenStore) { // wraps around
			s.next = func(tx ipam.Tx, first, last netip.Addr, rested time.Time) (netip.Addr, error) {
				a, err := tx.NextFree(first, last, rested)
				if !a.IsValid() && !last.Next().IsValid() {
					return addr("0.0.0.1"), err
				}
				return a, err
			}
		},
		"next/in huge ranges": func(s *brokenStore) { // looks at the lower half only
			s.next = func(tx ipam.Tx, first, last netip.Addr, rested time.Time) (netip.Addr, error) {
				if last == addr("fdff:ffff::") && addr("fd00::ffff:0:0:0").Less(first) {
					return netip.Addr{}, nil
				}
				return tx.NextFree(first, last, rested)
			}
		},
		"next/sees what the same update did": func(s *brokenStore) { // counts before it
			var before uint64
			s.update = func(ctx context.Context, fn func(ipam.Tx) error) error {
				return s.Memory.Update(ctx, func(tx ipam.Tx) error {
					before, _ = tx.Count(addr("10.1.0.0"), addr("10.1.0.255"))
					return fn(brokenTx{tx, s})
				})
			}
			s.view = func(ctx context.Context, fn func(ipam.ReadTx) error) error {
				return s.Memory.View(ctx, func(tx ipam.ReadTx) error { return fn(tx) })
			}
			s.count = func(ipam.Tx, netip.Addr, netip.Addr) (uint64, error) { return before, nil }
		},
		"update/returns the error and keeps what was done": func(s *brokenStore) { // rolls back
			s.update = func(ctx context.Context, fn func(ipam.Tx) error) error {
				return s.Memory.Update(ctx, func(tx ipam.Tx) error {
					err := fn(brokenTx{tx, s})
					if err != nil {
						_ = tx.Release(addr("10.1.0.5"), owner("a"))
					}
					return err
				})
			}
		},
		"update/one at a time": func(s *brokenStore) { // lets a second one in
			var inside atomic.Int32
			var first ipam.Tx
			s.update = func(ctx context.Context, fn func(ipam.Tx) error) error {
				defer inside.Add(-1)
				if inside.Add(1) == 2 {
					return fn(brokenTx{first, s})
				}
				return s.Memory.Update(ctx, func(tx ipam.Tx) error {
					first = tx
					return fn(brokenTx{tx, s})
				})
			}
		},
		"update/waits until the context ends": func(s *brokenStore) { // with an error of its own
			s.update = func(ctx context.Context, fn func(ipam.Tx) error) error {
				err := s.Memory.Update(ctx, func(tx ipam.Tx) error { return fn(brokenTx{tx, s}) })
				if errors.Is(err, context.DeadlineExceeded) {
					return errors.New("busy")
				}
				return err
			}
		},
		"view/not during an update": func(s *brokenStore) {
			s.view = func(ctx context.Context, fn func(ipam.ReadTx) error) error {
				var inner ipam.ReadTx
				err := s.Memory.View(ctx, func(tx ipam.ReadTx) error { inner = tx; return nil })
				if errors.Is(err, context.DeadlineExceeded) {
					return nil
				}
				return errors.Join(err, fn(inner))
			}
		},
		"view/returns the error": func(s *brokenStore) {
			s.view = func(ctx context.Context, fn func(ipam.ReadTx) error) error {
				err := s.Memory.View(ctx, fn)
				if errors.Is(err, context.DeadlineExceeded) {
					return err
				}
				return nil
			}
		},
		"rest/next passes over what was released since": func(s *brokenStore) { // the last address excepted
			s.next = func(tx ipam.Tx, first, last netip.Addr, rested time.Time) (netip.Addr, error) {
				if first.Next() == last {
					rested = time.Time{}
				}
				return tx.NextFree(first, last, rested)
			}
		},
		"rest/next leaves out nothing before that": func(s *brokenStore) { // forgets that a rest ends
			s.next = func(tx ipam.Tx, first, last netip.Addr, rested time.Time) (netip.Addr, error) {
				if rested.After(time.Now()) {
					rested = longAgo()
				}
				return tx.NextFree(first, last, rested)
			}
		},
		"rest/the zero time leaves out nothing": func(s *brokenStore) {
			s.next = func(tx ipam.Tx, first, last netip.Addr, rested time.Time) (netip.Addr, error) {
				if rested.IsZero() {
					rested = longAgo()
				}
				return tx.NextFree(first, last, rested)
			}
		},
		"rest/what is reserved again does not rest": func(s *brokenStore) {
			s.resting = func(tx ipam.Tx, first, last netip.Addr, rested time.Time) (uint64, time.Time, error) {
				n, at, err := tx.Resting(first, last, rested)
				if holder(tx, addr("10.1.0.2")) == owner("b") {
					n++
				}
				return n, at, err
			}
		},
		"rest/what the same update reserved does not rest": func(s *brokenStore) {
			var released map[netip.Addr]bool
			s.update = func(ctx context.Context, fn func(ipam.Tx) error) error {
				return s.Memory.Update(ctx, func(tx ipam.Tx) error {
					released = map[netip.Addr]bool{}
					return fn(brokenTx{tx, s})
				})
			}
			s.release = func(tx ipam.Tx, a netip.Addr, o ipam.Owner) error { released[a] = true; return tx.Release(a, o) }
			s.next = func(tx ipam.Tx, first, last netip.Addr, rested time.Time) (netip.Addr, error) {
				if released[first] && !rested.IsZero() {
					first = first.Next()
				}
				return tx.NextFree(first, last, rested)
			}
		},
		"rest/goes on after a reservation in vain": func(s *brokenStore) { // all is forgotten
			var tried bool
			s.reserve = func(tx ipam.Tx, a netip.Addr, o ipam.Owner) (bool, error) {
				n, _, _ := tx.Resting(a, a, longAgo())
				tried = n > 0 && o == owner("b")
				return tx.Reserve(a, o)
			}
			s.next = func(tx ipam.Tx, first, last netip.Addr, rested time.Time) (netip.Addr, error) {
				if tried && holder(tx, first) == (ipam.Owner{}) {
					return first, nil
				}
				return tx.NextFree(first, last, rested)
			}
		},
		"rest/counts, and tells the first release": func(s *brokenStore) { // the time of now
			s.resting = func(tx ipam.Tx, first, last netip.Addr, rested time.Time) (uint64, time.Time, error) {
				n, at, err := tx.Resting(first, last, rested)
				if n > 2 {
					at = time.Now().Add(time.Minute)
				}
				return n, at, err
			}
		},
		"rest/says that times are kept":      func(s *brokenStore) { s.rest = func() time.Duration { return 0 } },
		"rest/says nothing that is not kept": func(s *brokenStore) { s.rest = func() time.Duration { return time.Hour } },
		"rest/lasts from the last release": func(s *brokenStore) {
			var first time.Time
			s.resting = func(tx ipam.Tx, from, to netip.Addr, rested time.Time) (uint64, time.Time, error) {
				n, at, err := tx.Resting(from, to, rested)
				if from == to && first.IsZero() {
					first = at
				}
				if from == to {
					at = first
				}
				return n, at, err
			}
		},
	}
	rules := storeRules()
	for _, r := range rules {
		require.Contains(t, faults, r.name, "a rule without a store that breaks it")
	}
	require.Len(t, faults, len(rules))
	for name, breakIt := range faults {
		t.Run(name, func(t *testing.T) {
			var caught []string
			for _, r := range rules {
				s := &brokenStore{Memory: ipam.NewMemory(ipam.MemoryOptions{Rest: r.rest})}
				breakIt(s)
				if err := r.check(t.Context(), s); err != nil {
					caught = append(caught, r.name)
				}
			}
			assert.Equal(t, []string{name}, caught)
		})
	}
}
