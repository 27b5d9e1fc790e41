package ipam

import (
	"context"
	"iter"
	"net/netip"
	"slices"
	"time"
)

// Memory is a [Store] that lives and dies with the process: for tests, and for
// agents that rebuild their leases from elsewhere.
type Memory struct {
	rest time.Duration
	lock chan struct{} // a mutex whose wait a context can end
	tx   memoryTx
}

var (
	_ Store = (*Memory)(nil)
	_ Tx    = (*memoryTx)(nil)
)

// MemoryOptions are the options of a [Memory]. The zero value is the default.
type MemoryOptions struct {
	// Rest is how long the time of a release is kept, at least the Quarantine of
	// every pool over the store; default 0: not at all.
	Rest time.Duration
}

// NewMemory returns an empty store.
func NewMemory(o MemoryOptions) *Memory {
	return &Memory{
		rest: o.Rest,
		lock: make(chan struct{}, 1),
		tx:   memoryTx{owners: map[netip.Addr]Owner{}, last: map[int]netip.Addr{}, rests: map[netip.Addr]time.Time{}},
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
	m.tx.rest, m.tx.fresh = m.rest, map[netip.Addr]bool{}
	return fn(&m.tx)
}

// memoryTx is the state itself; the lock decides who sees it.
type memoryTx struct {
	owners map[netip.Addr]Owner
	last   map[int]netip.Addr
	rests  map[netip.Addr]time.Time // when an address was released
	rest   time.Duration
	fresh  map[netip.Addr]bool // reserved in this transaction
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

// Count implements [ReadTx].
func (t *memoryTx) Count(first, last netip.Addr) (uint64, error) {
	var n uint64
	for addr := range t.owners {
		if !addr.Less(first) && !last.Less(addr) {
			n++
		}
	}
	return n, nil
}

// NextFree implements [ReadTx].
func (t *memoryTx) NextFree(first, last netip.Addr, rested time.Time) (netip.Addr, error) {
	for addr := first; addr.IsValid() && !last.Less(addr); addr = addr.Next() {
		if _, taken := t.owners[addr]; !taken && !t.resting(addr, rested) {
			return addr, nil
		}
	}
	return netip.Addr{}, nil
}

// Resting implements [ReadTx].
func (t *memoryTx) Resting(first, last netip.Addr, rested time.Time) (uint64, time.Time, error) {
	var n uint64
	var oldest time.Time
	for addr, at := range t.rests {
		if _, taken := t.owners[addr]; taken || addr.Less(first) || last.Less(addr) || !t.resting(addr, rested) {
			continue
		}
		if n++; oldest.IsZero() || at.Before(oldest) {
			oldest = at
		}
	}
	return n, oldest, nil
}

func (t *memoryTx) resting(addr netip.Addr, rested time.Time) bool {
	at, ok := t.rests[addr]
	return ok && !rested.IsZero() && !at.Before(rested)
}

func (t *memoryTx) Reserve(addr netip.Addr, o Owner) (bool, error) {
	if _, taken := t.owners[addr]; taken {
		return false, nil
	}
	t.owners[addr] = o
	t.fresh[addr] = true
	return true, nil
}

func (t *memoryTx) Release(addr netip.Addr, o Owner) error {
	if t.owners[addr] == o {
		delete(t.owners, addr)
		if t.rest > 0 && !t.fresh[addr] {
			t.rests[addr] = time.Now()
		}
	}
	return nil
}

func (t *memoryTx) SetLast(set int, addr netip.Addr) error {
	t.last[set] = addr
	return nil
}
