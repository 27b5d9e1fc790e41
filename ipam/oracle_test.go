package ipam

import (
	"errors"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/internal/testenv"
)

// naive is the allocator in its simplest form: a list of addresses and a map.
type naive struct {
	addrs []netip.Addr // allocatable, in order
	owner map[netip.Addr]Owner
	last  int // index of the last reserved, -1: none
}

func newNaive(first string, n int, skip ...string) *naive {
	m := &naive{owner: map[netip.Addr]Owner{}, last: -1}
	for a := addr(first); len(m.addrs) < n; a = a.Next() {
		if !slices.Contains(skip, a.String()) {
			m.addrs = append(m.addrs, a)
		}
	}
	return m
}

func (m *naive) find(o Owner) (netip.Addr, bool) {
	for _, a := range m.addrs {
		if m.owner[a] == o {
			return a, true
		}
	}
	return netip.Addr{}, false
}

// pick returns what an Allocate must reserve; ok is false when it must fail.
func (m *naive) pick(o Owner, requested netip.Addr) (a netip.Addr, ok bool) {
	if a, held := m.find(o); held {
		return a, !requested.IsValid() || a == requested
	}
	if requested.IsValid() {
		_, taken := m.owner[requested]
		return requested, !taken && slices.Contains(m.addrs, requested)
	}
	for i := range m.addrs {
		a := m.addrs[(m.last+1+i)%len(m.addrs)]
		if _, taken := m.owner[a]; !taken {
			return a, true
		}
	}
	return netip.Addr{}, false
}

func (m *naive) take(a netip.Addr, o Owner) {
	if _, held := m.owner[a]; held {
		return
	}
	m.owner[a] = o
	m.last = slices.Index(m.addrs, a)
}

// Random operations give the same answers as the naive model.
func TestPoolAgainstNaiveSet(t *testing.T) {
	for seed := range uint64(testenv.Scale(t, 20)) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		v4 := newNaive("10.1.0.1", 12, "10.1.0.7")
		v6 := newNaive("fd00::2", 9)
		p, err := NewPool(NewMemory(MemoryOptions{}), PoolOptions{},
			RangeSet{{Subnet: pfx("10.1.0.0/28"), End: addr("10.1.0.13"), Gateway: addr("10.1.0.7")}},
			RangeSet{{Subnet: pfx("fd00::/64"), End: addr("fd00::a")}})
		require.NoError(t, err)
		for step := range 2000 {
			o := owner(string(rune('a' + rnd.IntN(16))))
			switch n := rnd.IntN(20); {
			case n < 10:
				compareAllocate(t, p, v4, v6, o, randomRequest(rnd, v4))
			case n < 18:
				require.NoError(t, p.Release(t.Context(), o))
				release(o, v4, v6)
			case n < 19:
				compareRetain(t, p, rnd, v4, v6)
			default:
				full := len(v4.owner) == len(v4.addrs) || len(v6.owner) == len(v6.addrs)
				require.Equal(t, full, errors.Is(p.Status(t.Context()), ErrExhausted), "seed %d step %d", seed, step)
			}
			compareLeases(t, p, v4, v6, o)
		}
	}
}

func randomRequest(rnd *rand.Rand, m *naive) netip.Addr {
	if rnd.IntN(4) > 0 {
		return netip.Addr{}
	}
	return m.addrs[rnd.IntN(len(m.addrs))]
}

func compareAllocate(t *testing.T, p *Pool, v4, v6 *naive, o Owner, requested netip.Addr) {
	t.Helper()
	var opts Options
	if requested.IsValid() {
		opts.Requested = []netip.Addr{requested}
	}
	a4, ok4 := v4.pick(o, requested)
	a6, ok6 := v6.pick(o, netip.Addr{})
	leases, err := p.Allocate(t.Context(), o, opts)
	require.Equal(t, ok4 && ok6, err == nil, "%s requests %s: %v", o, requested, err)
	if err != nil {
		return
	}
	require.Equal(t, []netip.Addr{a4, a6}, []netip.Addr{leases[0].Address.Addr(), leases[1].Address.Addr()})
	v4.take(a4, o)
	v6.take(a6, o)
}

func compareRetain(t *testing.T, p *Pool, rnd *rand.Rand, v4, v6 *naive) {
	t.Helper()
	var valid []Owner
	for c := 'a'; c < 'q'; c++ {
		if rnd.IntN(3) > 0 {
			valid = append(valid, owner(string(c)))
		} else {
			release(owner(string(c)), v4, v6)
		}
	}
	require.NoError(t, p.Retain(t.Context(), valid))
}

func compareLeases(t *testing.T, p *Pool, v4, v6 *naive, o Owner) {
	t.Helper()
	var want []netip.Addr
	for _, m := range []*naive{v4, v6} {
		if a, ok := m.find(o); ok {
			want = append(want, a)
		}
	}
	leases, err := p.Leases(t.Context(), o)
	require.NoError(t, err)
	var got []netip.Addr
	for _, l := range leases {
		got = append(got, l.Address.Addr())
	}
	require.Equal(t, want, got, o)
}

func release(o Owner, models ...*naive) {
	for _, m := range models {
		if a, ok := m.find(o); ok {
			delete(m.owner, a)
		}
	}
}
