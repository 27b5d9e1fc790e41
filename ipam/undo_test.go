package ipam

import (
	"errors"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What an owner has only since an Allocate call can be given back, and nothing else.
func TestPoolUndo(t *testing.T) {
	ctx := t.Context()
	m := NewMemory(MemoryOptions{})
	reserve(t, m, "10.9.0.9", owner("a")) // of a range that is gone
	reserve(t, m, "10.1.0.9", owner("a"))
	store := &faulty{Memory: m}
	p, err := NewPool(store, PoolOptions{}, RangeSet{{Subnet: pfx("10.1.0.0/24")}}, RangeSet{{Subnet: pfx("10.2.0.0/24")}}, RangeSet{{Subnet: pfx("10.3.0.0/24")}})
	require.NoError(t, err)
	leases, err := p.Allocate(ctx, owner("a"), Options{})
	require.NoError(t, err)
	require.Len(t, m.state.owners, 4)

	boom := errors.New("boom")
	store.f = faults{release: 1, err: boom}
	err = p.Undo(ctx, leases)
	require.ErrorIs(t, err, boom)
	require.ErrorContains(t, err, "give back 10.2.0.2 of a/eth0")
	before := map[netip.Addr]Owner{addr("10.9.0.9"): owner("a"), addr("10.1.0.9"): owner("a")}
	require.Len(t, m.state.owners, 3, "it goes on")
	store.f = faults{}
	require.NoError(t, p.Undo(ctx, leases))
	assert.Equal(t, before, m.state.owners)

	require.NoError(t, p.Release(ctx, owner("a")))
	reserve(t, m, "10.2.0.2", owner("b"))
	require.NoError(t, p.Undo(ctx, leases))
	assert.Equal(t, map[netip.Addr]Owner{addr("10.2.0.2"): owner("b")}, m.state.owners, "another has it by now")
	store.f = faults{update: 1, err: boom}
	require.NoError(t, p.Undo(ctx, []Lease{{Owner: owner("a"), Address: pfx("10.1.0.9/24")}}), "nothing is written when nothing is fresh")
}
