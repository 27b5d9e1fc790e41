package ipamtest

import (
	"context"
	"iter"
	"net/netip"
	"time"

	"github.com/cnikit/cnikit/ipam"
)

// brokenStore is a sound store with some functions replaced.
type brokenStore struct {
	*ipam.Memory
	view    func(ctx context.Context, fn func(ipam.ReadTx) error) error
	update  func(ctx context.Context, fn func(ipam.Tx) error) error
	reserve func(tx ipam.Tx, addr netip.Addr, o ipam.Owner) (bool, error)
	release func(tx ipam.Tx, addr netip.Addr, o ipam.Owner) error
	setLast func(tx ipam.Tx, set int, addr netip.Addr) error
	get     func(tx ipam.Tx, addr netip.Addr) (ipam.Owner, bool, error)
	owned   func(tx ipam.Tx, o ipam.Owner) ([]ipam.Reservation, error)
	all     func(tx ipam.Tx) iter.Seq2[ipam.Reservation, error]
	count   func(tx ipam.Tx, first, last netip.Addr) (uint64, error)
	next    func(tx ipam.Tx, first, last netip.Addr, rested time.Time) (netip.Addr, error)
	resting func(tx ipam.Tx, first, last netip.Addr, rested time.Time) (uint64, time.Time, error)
	rest    func() time.Duration
}

func (s *brokenStore) Rest() time.Duration {
	if s.rest != nil {
		return s.rest()
	}
	return s.Memory.Rest()
}

func (s *brokenStore) View(ctx context.Context, fn func(ipam.ReadTx) error) error {
	if s.view != nil {
		return s.view(ctx, fn)
	}
	return s.Memory.View(ctx, func(tx ipam.ReadTx) error { return fn(brokenTx{tx.(ipam.Tx), s}) })
}

func (s *brokenStore) Update(ctx context.Context, fn func(ipam.Tx) error) error {
	if s.update != nil {
		return s.update(ctx, fn)
	}
	return s.Memory.Update(ctx, func(tx ipam.Tx) error { return fn(brokenTx{tx, s}) })
}

type brokenTx struct {
	ipam.Tx
	s *brokenStore
}

func (t brokenTx) Reserve(a netip.Addr, o ipam.Owner) (bool, error) {
	if t.s.reserve != nil {
		return t.s.reserve(t.Tx, a, o)
	}
	return t.Tx.Reserve(a, o)
}

func (t brokenTx) Release(a netip.Addr, o ipam.Owner) error {
	if t.s.release != nil {
		return t.s.release(t.Tx, a, o)
	}
	return t.Tx.Release(a, o)
}

func (t brokenTx) SetLast(set int, a netip.Addr) error {
	if t.s.setLast != nil {
		return t.s.setLast(t.Tx, set, a)
	}
	return t.Tx.SetLast(set, a)
}

func (t brokenTx) Get(a netip.Addr) (ipam.Owner, bool, error) {
	if t.s.get != nil {
		return t.s.get(t.Tx, a)
	}
	return t.Tx.Get(a)
}

func (t brokenTx) Owned(o ipam.Owner) ([]ipam.Reservation, error) {
	if t.s.owned != nil {
		return t.s.owned(t.Tx, o)
	}
	return t.Tx.Owned(o)
}

func (t brokenTx) All() iter.Seq2[ipam.Reservation, error] {
	if t.s.all != nil {
		return t.s.all(t.Tx)
	}
	return t.Tx.All()
}

func (t brokenTx) Count(first, last netip.Addr) (uint64, error) {
	if t.s.count != nil {
		return t.s.count(t.Tx, first, last)
	}
	return t.Tx.Count(first, last)
}

func (t brokenTx) NextFree(first, last netip.Addr, rested time.Time) (netip.Addr, error) {
	if t.s.next != nil {
		return t.s.next(t.Tx, first, last, rested)
	}
	return t.Tx.NextFree(first, last, rested)
}

func (t brokenTx) Resting(first, last netip.Addr, rested time.Time) (uint64, time.Time, error) {
	if t.s.resting != nil {
		return t.s.resting(t.Tx, first, last, rested)
	}
	return t.Tx.Resting(first, last, rested)
}
