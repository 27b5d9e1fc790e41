package ipam

import (
	"context"
	"iter"
	"net/netip"
	"slices"
)

// Memory is a [Store] that lives and dies with the process: for tests, and for
// agents that rebuild their leases from elsewhere.
type Memory struct {
	lock chan struct{} // a mutex whose wait a context can end
	tx   memoryTx
}

var (
	_ Store = (*Memory)(nil)
	_ Tx    = (*memoryTx)(nil)
)

// NewMemory returns an empty store.
func NewMemory() *Memory {
	return &Memory{
		lock: make(chan struct{}, 1),
		tx:   memoryTx{owners: map[netip.Addr]Owner{}, last: map[int]netip.Addr{}},
	}
}

// View implements [Store].
func (m *Memory) View(ctx context.Context, fn func(ReadTx) error) error {
	return m.Update(ctx, func(tx Tx) error { return fn(tx) })
}

// Update implements [Store].
func (m *Memory) Update(ctx context.Context, fn func(Tx) error) error {
	select {
	case m.lock <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-m.lock }()
	return fn(&m.tx)
}

// memoryTx is the state itself; the lock decides who sees it.
type memoryTx struct {
	owners map[netip.Addr]Owner
	last   map[int]netip.Addr
}

func (t *memoryTx) Get(addr netip.Addr) (Owner, bool, error) {
	o, ok := t.owners[addr]
	return o, ok, nil
}

func (t *memoryTx) Owned(o Owner) ([]Reservation, error) {
	var owned []Reservation
	for addr, holder := range t.owners {
		if holder.ContainerID == o.ContainerID && (holder.IfName == o.IfName || holder.IfName == "") {
			owned = append(owned, Reservation{Address: addr, Owner: holder})
		}
	}
	slices.SortFunc(owned, func(a, b Reservation) int { return a.Address.Compare(b.Address) })
	return owned, nil
}

func (t *memoryTx) All() iter.Seq2[Reservation, error] {
	return func(yield func(Reservation, error) bool) {
		for addr, o := range t.owners {
			if !yield(Reservation{Address: addr, Owner: o}, nil) {
				return
			}
		}
	}
}

func (t *memoryTx) Last(set int) (netip.Addr, error) { return t.last[set], nil }

func (t *memoryTx) Reserve(addr netip.Addr, o Owner) (bool, error) {
	if _, taken := t.owners[addr]; taken {
		return false, nil
	}
	t.owners[addr] = o
	return true, nil
}

func (t *memoryTx) Release(addr netip.Addr, o Owner) error {
	if t.owners[addr] == o {
		delete(t.owners, addr)
	}
	return nil
}

func (t *memoryTx) SetLast(set int, addr netip.Addr) error {
	t.last[set] = addr
	return nil
}
