package ipam

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Memory is a [Store] that lives and dies with the process: for tests, and for
// agents that rebuild their leases from elsewhere. What it does costs hardly more with
// many thousands of leases than with ten, All excepted.
type Memory struct {
	lock  chan struct{} // a mutex whose wait a context can end
	state memory
}

// MemoryOptions are the options of a [Memory]. The zero value is the default.
type MemoryOptions struct {
	// Rest is how long the time of a release is kept, at least the Quarantine of
	// every pool over the store; default 0: not at all.
	Rest time.Duration
}

var (
	_ Store = (*Memory)(nil)
	_ Tx    = (*memoryTx)(nil)
)

// NewMemory returns an empty store.
func NewMemory(o MemoryOptions) *Memory {
	return &Memory{
		lock: make(chan struct{}, 1),
		state: memory{
			owners: map[netip.Addr]Owner{}, owned: map[Owner][]netip.Addr{}, last: map[int]netip.Addr{},
			rests: rests{keep: o.Rest},
		},
	}
}

// View implements [Store].
func (m *Memory) View(ctx context.Context, fn func(ReadTx) error) error {
	return m.Update(ctx, func(tx Tx) error { return fn(tx) })
}

// Update implements [Store].
func (m *Memory) Update(ctx context.Context, fn func(Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case m.lock <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-m.lock }()
	return fn(&memoryTx{memory: &m.state})
}

// Rest implements [Store]: what the options say.
func (m *Memory) Rest() time.Duration { return max(0, m.state.rests.keep) }

// String renders the reservations by ascending address, one a line. Called inside an
// Update of the same store, it would wait for ever.
func (m *Memory) String() string {
	m.lock <- struct{}{}
	defer func() { <-m.lock }()
	addrs := slices.SortedFunc(maps.Keys(m.state.owners), netip.Addr.Compare)
	var b strings.Builder
	for _, addr := range addrs {
		fmt.Fprintf(&b, "%s %s\n", addr, m.state.owners[addr])
	}
	return b.String()
}

// memory is the state itself; the lock decides who sees it.
type memory struct {
	owners map[netip.Addr]Owner
	owned  map[Owner][]netip.Addr // ascending
	last   map[int]netip.Addr
	taken  tree
	rests  rests // of addresses that are not taken
	busy   tree  // taken or noted in rests; not kept when rests keeps nothing
}

// memoryTx is one View or Update.
type memoryTx struct {
	*memory
	fresh map[netip.Addr]time.Time // addresses reserved in it, with what rests had noted
}

// Get implements [ReadTx].
func (m *memory) Get(addr netip.Addr) (Owner, bool, error) {
	o, ok := m.owners[addr]
	return o, ok, nil
}

// Owned implements [ReadTx].
func (m *memory) Owned(o Owner) ([]Reservation, error) {
	var owned []Reservation
	whole := Owner{ContainerID: o.ContainerID}
	for _, addr := range m.owned[whole] {
		owned = append(owned, Reservation{Address: addr, Owner: whole})
	}
	if o == whole {
		return owned, nil
	}
	for _, addr := range m.owned[o] {
		owned = append(owned, Reservation{Address: addr, Owner: o})
	}
	slices.SortFunc(owned, func(a, b Reservation) int { return a.Address.Compare(b.Address) })
	return owned, nil
}

// All implements [ReadTx].
func (m *memory) All() iter.Seq2[Reservation, error] {
	return func(yield func(Reservation, error) bool) {
		for addr, o := range m.owners {
			if !yield(Reservation{Address: addr, Owner: o}, nil) {
				return
			}
		}
	}
}

// Last implements [ReadTx].
func (m *memory) Last(set int) (netip.Addr, error) { return m.last[set], nil }

// Count implements [ReadTx].
func (m *memory) Count(first, last netip.Addr) (uint64, error) {
	return m.taken.count(first, last), nil
}

// NextFree implements [ReadTx].
func (m *memory) NextFree(first, last netip.Addr, rested time.Time) (netip.Addr, error) {
	free := m.taken.gap(first)
	if !rested.IsZero() && m.rests.keep > 0 {
		free = m.busy.gap(first)
		if addr := m.rests.rested(first, last, rested); addr.IsValid() && (!free.IsValid() || addr.Less(free)) {
			free = addr
		}
	}
	if last.Less(free) {
		return netip.Addr{}, nil
	}
	return free, nil
}

// Resting implements [ReadTx].
func (m *memory) Resting(first, last netip.Addr, rested time.Time) (uint64, time.Time, error) {
	n, oldest := m.rests.resting(first, last, rested)
	return n, oldest, nil
}

// Reserve implements [Tx].
func (t *memoryTx) Reserve(addr netip.Addr, o Owner) (bool, error) {
	if _, taken := t.owners[addr]; taken {
		return false, nil
	}
	t.owners[addr] = o
	i, _ := slices.BinarySearchFunc(t.owned[o], addr, netip.Addr.Compare)
	t.owned[o] = slices.Insert(t.owned[o], i, addr)
	t.taken.add(addr)
	if t.rests.keep > 0 {
		t.noteReserved(addr)
	}
	return true, nil
}

func (t *memoryTx) noteReserved(addr netip.Addr) {
	if t.fresh == nil {
		t.fresh = map[netip.Addr]time.Time{}
	}
	t.fresh[addr] = t.rests.drop(addr)
	if t.fresh[addr].IsZero() {
		t.busy.add(addr)
	}
}

// Release implements [Tx].
func (t *memoryTx) Release(addr netip.Addr, o Owner) error {
	if holder, taken := t.owners[addr]; !taken || holder != o {
		return nil
	}
	delete(t.owners, addr)
	i, _ := slices.BinarySearchFunc(t.owned[o], addr, netip.Addr.Compare)
	if t.owned[o] = slices.Delete(t.owned[o], i, i+1); len(t.owned[o]) == 0 {
		delete(t.owned, o)
	}
	t.taken.remove(addr)
	if t.rests.keep > 0 {
		t.noteReleased(addr)
	}
	return nil
}

// noteReleased lets addr rest from now on; one that was reserved in vain goes on
// resting from where it was.
func (t *memoryTx) noteReleased(addr netip.Addr) {
	at, fresh := t.fresh[addr]
	delete(t.fresh, addr)
	switch {
	case !fresh:
		at = time.Now()
	case at.IsZero():
		t.busy.remove(addr)
		return
	}
	for _, old := range t.rests.put(addr, at) {
		t.busy.remove(old)
	}
}

// SetLast implements [Tx].
func (t *memoryTx) SetLast(set int, addr netip.Addr) error {
	t.last[set] = addr
	return nil
}
