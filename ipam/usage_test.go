package ipam

import (
	"context"
	"errors"
	"iter"
	"math"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestUsage(t *testing.T) {
	ctx := t.Context()
	m := NewMemory(MemoryOptions{Rest: time.Hour})
	p, err := NewPool(m, PoolOptions{Quarantine: time.Hour},
		RangeSet{{Subnet: pfx("10.1.0.0/29"), Exclude: pfxs("10.1.0.4/32")}, {Subnet: pfx("10.2.0.0/28"), Exclude: pfxs("10.2.0.8/29")}}, RangeSet{{Subnet: pfx("fd00::/64")}})
	require.NoError(t, err)
	for _, id := range []string{"a", "b", "c", "d", "e", "f"} {
		allocate(t, p, id)
	}
	require.NoError(t, p.Release(ctx, owner("b")))
	require.NoError(t, p.Release(ctx, owner("d")))

	u, err := p.Usage(ctx)
	require.NoError(t, err)
	assert.Equal(t, Figures{Size: 10, Used: 4, Resting: 2}, u.Sets[0].Figures)
	assert.Equal(t, Figures{Size: 4, Used: 2, Resting: 2}, u.Sets[0].Ranges[0].Figures)
	assert.Equal(t, Figures{Size: 6, Used: 2}, u.Sets[0].Ranges[1].Figures)
	assert.Equal(t, Figures{Size: math.MaxUint64 - 1, Used: 4, Resting: 2}, u.Sets[1].Figures)
	assert.Equal(t, "10.2.0.1-10.2.0.14", u.Sets[0].Ranges[1].Range.String())
	assert.Empty(t, u.Outside)
	assert.EqualValues(t, 4, u.Sets[0].Free())
	assert.Zero(t, Figures{Size: 3, Used: 4}.Free())
	assert.Equal(t, "set 0: 10.1.0.1-10.1.0.6: 2 of 4 used, 2 resting\n"+
		"set 0: 10.2.0.1-10.2.0.14: 2 of 6 used\n"+
		"set 1: fd00::1-fd00::ffff:ffff:ffff:ffff: 4 of 18446744073709551614 used, 2 resting\n", u.String())

	huge, err := NewPool(m, PoolOptions{}, RangeSet{{Subnet: pfx("fd00::/48")}, {Subnet: pfx("fd01::/16")}})
	require.NoError(t, err)
	u, err = huge.Usage(ctx)
	require.NoError(t, err)
	assert.Equal(t, "4 of at least 2^64-1 used", u.Sets[0].String())
	assert.Len(t, u.Outside, 4, "those of IPv4")
}

// Leases that a new configuration has no place for are kept and reported.
func TestReconfiguration(t *testing.T) {
	ctx := t.Context()
	before := RangeSet{{Subnet: pfx("10.1.0.0/24"), End: addr("10.1.0.20")}}
	for name, c := range map[string]struct {
		after   []RangeSet
		outside string
	}{
		"shrunk":              {[]RangeSet{{{Subnet: pfx("10.1.0.0/24"), Start: addr("10.1.0.4")}}}, "outside: 10.1.0.2/32 a/eth0\noutside: 10.1.0.3/32 b/eth0\n"},
		"moved":               {[]RangeSet{{{Subnet: pfx("10.9.0.0/24")}}}, "outside: 10.1.0.2/32 a/eth0\noutside: 10.1.0.3/32 b/eth0\noutside: 10.1.0.4/32 c/eth0\n"},
		"excluded":            {[]RangeSet{{{Subnet: pfx("10.1.0.0/24"), Exclude: pfxs("10.1.0.3/32")}}}, "outside: 10.1.0.3/24 b/eth0\n"},
		"gateway moved":       {[]RangeSet{{{Subnet: pfx("10.1.0.0/24"), Gateway: addr("10.1.0.4")}}}, "outside: 10.1.0.4/24 c/eth0\n"},
		"gateway of a new":    {[]RangeSet{{{Subnet: pfx("10.1.0.0/28")}}, {{Subnet: pfx("10.1.0.0/24"), Start: addr("10.1.0.64"), Gateway: addr("10.1.0.2")}}}, "outside: 10.1.0.2/28 a/eth0\n"},
		"widened, overlaps":   {[]RangeSet{{{Subnet: pfx("10.1.0.0/16")}}}, ""},
		"divided in two sets": {[]RangeSet{{{Subnet: pfx("10.1.0.0/29"), End: addr("10.1.0.3")}, {Subnet: pfx("10.8.0.0/24")}}, {{Subnet: pfx("10.1.0.0/29"), Start: addr("10.1.0.4")}}}, ""},
		"no ranges at all":    {nil, "outside: 10.1.0.2/32 a/eth0\noutside: 10.1.0.3/32 b/eth0\noutside: 10.1.0.4/32 c/eth0\n"},
	} {
		t.Run("reconfigure/"+name, func(t *testing.T) {
			m := NewMemory(MemoryOptions{})
			old, err := NewPool(m, PoolOptions{}, before)
			require.NoError(t, err)
			for _, id := range []string{"a", "b", "c"} {
				allocate(t, old, id)
			}
			p, err := NewPool(m, PoolOptions{}, c.after...)
			require.NoError(t, err)
			u, err := p.Usage(ctx)
			require.NoError(t, err)
			assert.Equal(t, c.outside, Usage{Outside: u.Outside}.String())
			assert.Len(t, m.state.owners, 3, "looking frees nothing")
			if len(c.after) == 0 {
				return
			}
			for range 10 {
				lease := allocate(t, p, "new")
				assert.NotContains(t, []string{"10.1.0.2", "10.1.0.3", "10.1.0.4"}, lease[0])
				require.NoError(t, p.Release(ctx, owner("new")))
			}
			assert.Len(t, m.state.owners, 3, "nor does allocating")
			for _, id := range []string{"a", "b", "c"} {
				leases, err := p.Leases(ctx, owner(id))
				require.NoError(t, err)
				assert.Len(t, leases, 1)
				require.NoError(t, p.Release(ctx, owner(id)))
			}
			assert.Empty(t, m.state.owners)
		})
	}

	t.Run("reconfigure/the owner of an excluded address keeps it", func(t *testing.T) {
		m := NewMemory(MemoryOptions{})
		reserve(t, m, "10.1.0.9", owner("a"))
		p, err := NewPool(m, PoolOptions{}, RangeSet{{Subnet: pfx("10.1.0.0/24"), Exclude: pfxs("10.1.0.8/29")}})
		require.NoError(t, err)
		assert.Equal(t, []string{"10.1.0.9/24"}, allocate(t, p, "a"))
		leases, err := p.Allocate(ctx, owner("a"), Options{Requested: []netip.Addr{addr("10.1.0.9")}})
		require.NoError(t, err)
		assert.Equal(t, pfx("10.1.0.9/24"), leases[0].Address)
	})
}

func TestRequestedWhereNothingIsHandedOut(t *testing.T) {
	m := NewMemory(MemoryOptions{})
	p, err := NewPool(m, PoolOptions{}, RangeSet{{Subnet: pfx("10.1.0.0/24"), Start: addr("10.1.0.0"), End: addr("10.1.0.255"), Exclude: pfxs("10.1.0.8/29")}},
		RangeSet{{Subnet: pfx("fd00::/64")}, {Subnet: pfx("fd00:1::/64"), Gateway: addr("fd00:1::50")}, {Subnet: pfx("fd00:1::/48"), Start: addr("fd00:1:0:1::"), Gateway: addr("fd00:1::60")}})
	require.NoError(t, err)
	for a, want := range map[string]string{
		"10.1.0.9":   "10.1.0.9 is excluded from 10.1.0.0/24 by 10.1.0.8/29; request another",
		"10.1.0.1":   "10.1.0.1 is the gateway of 10.1.0.0/24",
		"10.1.0.255": "network or broadcast address of 10.1.0.0/24",
		"fd00:1::50": "fd00:1::50 is the gateway of fd00:1::/64",
		"fd00:1::60": "fd00:1::60 is the gateway of fd00:1::/48", // and lies in a sibling
		"10.2.0.1":   "10.2.0.1 lies in no range; request an address of 10.1.0.0-10.1.0.255 or fd00::1-",
	} {
		_, err := p.Allocate(t.Context(), owner("a"), Options{Requested: []netip.Addr{addr(a)}})
		require.ErrorIs(t, err, ErrNotAllocatable, a)
		require.ErrorContains(t, err, want)
	}
	assert.Empty(t, m.state.owners)
	assert.Empty(t, m.state.last)
}

// Records that cannot be read do not keep the rest from being reported.
func TestUsageOfDamagedStore(t *testing.T) {
	boom := errors.New("boom")
	m := NewMemory(MemoryOptions{Rest: time.Hour})
	reserve(t, m, "10.1.0.5", Owner{})
	reserve(t, m, "10.9.0.5", Owner{})
	p, err := NewPool(&faulty{Memory: m, f: faults{all: true, err: boom}}, PoolOptions{}, RangeSet{{Subnet: pfx("10.1.0.0/24")}})
	require.NoError(t, err)
	u, err := p.Usage(t.Context())
	require.ErrorIs(t, err, boom)
	assert.EqualValues(t, 1, u.Sets[0].Used)
	assert.Equal(t, "outside: 10.9.0.5/32 nobody\n", Usage{Outside: u.Outside}.String())

	p, err = NewPool(unreadable{m, boom}, PoolOptions{}, RangeSet{{Subnet: pfx("10.1.0.0/24")}})
	require.NoError(t, err)
	u, err = p.Usage(t.Context())
	require.NoError(t, err, "whose record cannot be read is counted all the same")
	assert.EqualValues(t, 1, u.Sets[0].Used)
	assert.Equal(t, "outside: 10.9.0.5/32 nobody\n", Usage{Outside: u.Outside}.String())

	p, err = NewPool(failing{m, boom}, PoolOptions{Quarantine: time.Hour}, RangeSet{{Subnet: pfx("10.1.0.0/24")}})
	require.NoError(t, err)
	_, err = p.Usage(t.Context())
	require.ErrorIs(t, err, boom)
	require.ErrorIs(t, p.Status(t.Context()), boom)
	_, err = p.Allocate(t.Context(), owner("a"), Options{})
	require.ErrorIs(t, err, boom)
	assert.Len(t, m.state.owners, 2)
}

// unreadable is a store that cannot read a record.
type unreadable struct {
	*Memory
	err error
}

func (s unreadable) View(ctx context.Context, fn func(ReadTx) error) error {
	return s.Memory.View(ctx, func(tx ReadTx) error { return fn(unreadableTx{tx, s.err}) })
}

type unreadableTx struct {
	ReadTx
	err error
}

func (t unreadableTx) All() iter.Seq2[Reservation, error] {
	return func(yield func(Reservation, error) bool) {
		for r, err := range t.ReadTx.All() {
			if !yield(r, errors.Join(err, t.err)) {
				return
			}
		}
	}
}

// failing is a store that cannot count and finds nothing.
type failing struct {
	*Memory
	err error
}

func (s failing) View(ctx context.Context, fn func(ReadTx) error) error {
	return s.Memory.View(ctx, func(tx ReadTx) error { return fn(failingTx{tx.(Tx), s.err}) })
}

func (s failing) Update(ctx context.Context, fn func(Tx) error) error {
	return s.Memory.Update(ctx, func(tx Tx) error { return fn(failingTx{tx, s.err}) })
}

type failingTx struct {
	Tx
	err error
}

func (t failingTx) Count(netip.Addr, netip.Addr) (uint64, error) { return 0, t.err }

func (t failingTx) NextFree(netip.Addr, netip.Addr, time.Time) (netip.Addr, error) {
	return netip.Addr{}, t.err
}
