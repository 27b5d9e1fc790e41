package ipam

import (
	"context"
	"errors"
	"iter"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPoolAllocate(t *testing.T) {
	ctx := t.Context()

	t.Run("add/one address of every set", func(t *testing.T) {
		p, _ := newPool(t, "10.1.0.0/24", "fd00:1::/64")
		leases, err := p.Allocate(ctx, owner("a"), Options{})
		require.NoError(t, err)
		assert.Equal(t, []Lease{
			{Owner: owner("a"), Address: pfx("10.1.0.2/24"), Gateway: addr("10.1.0.1"), Fresh: true},
			{Owner: owner("a"), Address: pfx("fd00:1::2/64"), Gateway: addr("fd00:1::1"), Fresh: true},
		}, leases)
	})

	t.Run("add/same owner, same leases", func(t *testing.T) {
		p, _ := newPool(t, "10.1.0.0/24", "fd00:1::/64")
		first := allocate(t, p, "a")
		allocate(t, p, "b")
		assert.Equal(t, first, allocate(t, p, "a"))
		assert.Equal(t, []string{"10.1.0.4/24", "fd00:1::4/64"}, allocate(t, p, "c"))
	})

	t.Run("add/completes what a crash left half done", func(t *testing.T) {
		p, m := newPool(t, "10.1.0.0/24", "fd00:1::/64")
		reserve(t, m, "fd00:1::99", owner("a"))
		assert.Equal(t, []string{"10.1.0.2/24", "fd00:1::99/64"}, allocate(t, p, "a"))
	})

	t.Run("add/round robin", func(t *testing.T) {
		p, _ := newPool(t, "10.1.0.0/29") // .2 to .6
		for _, want := range []string{"2", "3", "4", "5", "6", "2", "3"} {
			assert.Equal(t, []string{"10.1.0." + want + "/29"}, allocate(t, p, "a"))
			require.NoError(t, p.Release(ctx, owner("a")))
		}
	})

	t.Run("add/interfaces of a container are owners of their own", func(t *testing.T) {
		p, _ := newPool(t, "10.1.0.0/24")
		allocate(t, p, "a")
		leases, err := p.Allocate(ctx, Owner{"a", "net1"}, Options{})
		require.NoError(t, err)
		assert.Equal(t, pfx("10.1.0.3/24"), leases[0].Address)
		require.NoError(t, p.Release(ctx, owner("a")))
		left, err := p.Leases(ctx, Owner{"a", "net1"})
		require.NoError(t, err)
		leases[0].Fresh = false
		assert.Equal(t, leases, left)
	})

	t.Run("add/owner is validated", func(t *testing.T) {
		p, _ := newPool(t, "10.1.0.0/24")
		for _, o := range []Owner{{}, {"a", ""}, {"", "eth0"}, {"a\r\nb", "eth0"}, {"a", "eth 0"}} {
			_, err := p.Allocate(ctx, o, Options{})
			assert.ErrorIs(t, err, ErrInvalidOwner, o)
		}
	})

	t.Run("add/a pool without ranges refuses", func(t *testing.T) {
		p, _ := newPool(t)
		_, err := p.Allocate(ctx, owner("a"), Options{})
		assert.ErrorIs(t, err, ErrNotAllocatable)
	})

	t.Run("add/cancelled", func(t *testing.T) {
		p, m := newPool(t, "10.1.0.0/24")
		ctx, cancel := context.WithCancel(ctx)
		cancel()
		_, err := p.Allocate(ctx, owner("a"), Options{})
		require.ErrorIs(t, err, context.Canceled)
		assert.Empty(t, m.state.owners)
	})
}

func TestPoolRequested(t *testing.T) {
	ctx := t.Context()
	request := func(p *Pool, id string, addrs ...string) ([]Lease, error) {
		var opts Options
		for _, a := range addrs {
			opts.Requested = append(opts.Requested, addr(a))
		}
		return p.Allocate(ctx, owner(id), opts)
	}

	t.Run("requested/goes to the set that contains it", func(t *testing.T) {
		p, _ := newPool(t, "10.1.0.0/24", "fd00:1::/64")
		leases, err := request(p, "a", "fd00:1::77", "fd00:1::77")
		require.NoError(t, err)
		assert.Equal(t, pfx("10.1.0.2/24"), leases[0].Address)
		assert.Equal(t, pfx("fd00:1::77/64"), leases[1].Address)
		assert.Equal(t, []string{"10.1.0.3/24", "fd00:1::78/64"}, allocate(t, p, "b"), "the next one follows it")
	})
	t.Run("requested/mapped", func(t *testing.T) {
		p, _ := newPool(t, "10.1.0.0/24")
		leases, err := request(p, "a", "::ffff:10.1.0.9")
		require.NoError(t, err)
		assert.Equal(t, pfx("10.1.0.9/24"), leases[0].Address)
	})
	t.Run("requested/again", func(t *testing.T) {
		p, _ := newPool(t, "10.1.0.0/24")
		first, err := request(p, "a", "10.1.0.9")
		require.NoError(t, err)
		again, err := request(p, "a", "10.1.0.9")
		require.NoError(t, err)
		first[0].Fresh = false
		assert.Equal(t, first, again)
		assert.Equal(t, []string{"10.1.0.9/24"}, allocate(t, p, "a"), "also without a request")
	})

	for name, c := range map[string]struct {
		addrs []string
		is    error
		want  string
	}{
		"taken":            {[]string{"10.1.0.9"}, ErrTaken, "10.1.0.9 belongs to other/eth0"},
		"gateway":          {[]string{"10.1.0.1"}, ErrNotAllocatable, "gateway"},
		"network address":  {[]string{"10.2.0.0"}, ErrNotAllocatable, "network or broadcast"},
		"in no range":      {[]string{"10.1.0.20", "10.9.0.1"}, ErrNotAllocatable, "10.9.0.1 lies in no range"},
		"two of one set":   {[]string{"10.1.0.20", "10.1.0.21"}, ErrNotAllocatable, "both requested"},
		"zone":             {[]string{"fe80::5%eth0"}, ErrNotAllocatable, "fe80::5%eth0 has a zone; request fe80::5"},
		"taken in set two": {[]string{"10.1.0.20", "10.2.0.9"}, ErrTaken, "10.2.0.9 belongs to other/eth0"},
	} {
		t.Run("requested/refused/"+name, func(t *testing.T) {
			m := NewMemory(MemoryOptions{})
			p, err := NewPool(m, PoolOptions{}, RangeSet{{Subnet: pfx("10.1.0.0/24")}}, RangeSet{{Subnet: pfx("10.2.0.0/24"), Start: addr("10.2.0.0")}},
				RangeSet{{Subnet: pfx("fe80::/64")}})
			require.NoError(t, err)
			_, err = request(p, "other", "10.1.0.9", "10.2.0.9")
			require.NoError(t, err)
			_, err = request(p, "a", c.addrs...)
			require.ErrorIs(t, err, c.is)
			assert.ErrorContains(t, err, c.want)
			assert.Len(t, m.state.owners, 3, "nothing stays reserved")
			assert.Equal(t, addr("10.1.0.9"), m.state.last[0], "the round robin has not moved")
		})
	}

	t.Run("requested/another than held", func(t *testing.T) {
		p, m := newPool(t, "10.1.0.0/24", "fd00:1::/64")
		held := allocate(t, p, "a")
		_, err := request(p, "a", "10.1.0.50")
		require.ErrorIs(t, err, ErrHeld)
		assert.ErrorContains(t, err, "10.1.0.2")
		assert.Len(t, m.state.owners, 2)
		assert.Equal(t, held, allocate(t, p, "a"))
	})
	t.Run("requested/one of several held", func(t *testing.T) {
		p, m := newPool(t, "10.1.0.0/24")
		reserve(t, m, "10.1.0.5", owner("a"))
		reserve(t, m, "10.1.0.6", owner("a"))
		leases, err := request(p, "a", "10.1.0.6")
		require.NoError(t, err)
		assert.Equal(t, pfx("10.1.0.6/24"), leases[0].Address)
	})
}

// A failing call gives back what it took, and never what an earlier call holds.
func TestPoolRollBack(t *testing.T) {
	ctx := t.Context()
	boom := errors.New("boom")

	t.Run("rollback/earlier leases survive", func(t *testing.T) {
		m := NewMemory(MemoryOptions{})
		one, err := NewPool(m, PoolOptions{}, RangeSet{{Subnet: pfx("10.1.0.0/24")}})
		require.NoError(t, err)
		allocate(t, one, "a")
		two, err := NewPool(m, PoolOptions{}, RangeSet{{Subnet: pfx("10.1.0.0/24")}}, RangeSet{{Subnet: pfx("10.2.0.0/24")}}, RangeSet{{Subnet: pfx("10.3.0.0/30")}})
		require.NoError(t, err)
		reserve(t, m, "10.3.0.2", owner("b"))
		_, err = two.Allocate(ctx, owner("a"), Options{})
		require.ErrorIs(t, err, ErrExhausted)
		assert.Equal(t, map[netip.Addr]Owner{addr("10.1.0.2"): owner("a"), addr("10.3.0.2"): owner("b")}, m.state.owners)
	})
	t.Run("rollback/store fails", func(t *testing.T) {
		m := NewMemory(MemoryOptions{})
		for name, f := range map[string]faults{
			"reserve": {reserve: 2, err: boom}, "last": {setLast: 1, err: boom}, "read last": {last: 2, err: boom}, "owned": {owned: 1, err: boom},
		} {
			t.Run(name, func(t *testing.T) {
				p, err := NewPool(&faulty{Memory: m, f: f}, PoolOptions{}, RangeSet{{Subnet: pfx("10.1.0.0/24")}}, RangeSet{{Subnet: pfx("10.2.0.0/24")}})
				require.NoError(t, err)
				_, err = p.Allocate(ctx, owner("a"), Options{})
				require.ErrorIs(t, err, boom)
				assert.Empty(t, m.state.owners)
			})
		}
	})
}

func TestPoolRelease(t *testing.T) {
	ctx := t.Context()

	t.Run("del/frees every lease", func(t *testing.T) {
		p, m := newPool(t, "10.1.0.0/24", "fd00:1::/64")
		allocate(t, p, "a")
		b := allocate(t, p, "b")
		require.NoError(t, p.Release(ctx, owner("a")))
		assert.Len(t, m.state.owners, 2)
		assert.Equal(t, b, allocate(t, p, "b"))
	})
	t.Run("del/idempotent", func(t *testing.T) {
		p, _ := newPool(t, "10.1.0.0/24")
		allocate(t, p, "a")
		require.NoError(t, p.Release(ctx, owner("a")))
		require.NoError(t, p.Release(ctx, owner("a")))
		require.NoError(t, p.Release(ctx, owner("never seen")))
	})
	t.Run("del/unknown writes nothing", func(t *testing.T) {
		p, err := NewPool(&faulty{Memory: NewMemory(MemoryOptions{}), f: faults{update: 1, err: errors.New("written")}}, PoolOptions{})
		require.NoError(t, err)
		require.NoError(t, p.Release(ctx, owner("a")))
		require.NoError(t, p.Retain(ctx, nil))
	})
	t.Run("del/ranges have changed since", func(t *testing.T) {
		p, m := newPool(t, "10.1.0.0/24")
		allocate(t, p, "a")
		other, err := NewPool(m, PoolOptions{}, RangeSet{{Subnet: pfx("10.7.0.0/24")}})
		require.NoError(t, err)
		leases, err := other.Leases(ctx, owner("a"))
		require.NoError(t, err)
		assert.Equal(t, []Lease{{Owner: owner("a"), Address: pfx("10.1.0.2/32")}}, leases)
		require.NoError(t, other.Release(ctx, owner("a")))
		assert.Empty(t, m.state.owners)
	})
	t.Run("del/goes on after an error", func(t *testing.T) {
		boom := errors.New("boom")
		m := NewMemory(MemoryOptions{})
		reserve(t, m, "10.1.0.5", owner("a"))
		reserve(t, m, "10.1.0.6", owner("a"))
		p, err := NewPool(&faulty{Memory: m, f: faults{release: 1, err: boom}}, PoolOptions{})
		require.NoError(t, err)
		require.ErrorIs(t, p.Release(ctx, owner("a")), boom)
		assert.Len(t, m.state.owners, 1)
	})
	t.Run("del/empty container ID", func(t *testing.T) {
		p, m := newPool(t)
		reserve(t, m, "10.1.0.5", Owner{})
		require.ErrorIs(t, p.Release(ctx, Owner{}), ErrInvalidOwner)
		assert.Len(t, m.state.owners, 1)
	})
}

// Old versions of host-local recorded the container only.
func TestPoolRecordsWithoutInterface(t *testing.T) {
	ctx := t.Context()
	old := Owner{ContainerID: "a"}

	t.Run("legacy/released when there is no exact record", func(t *testing.T) {
		p, m := newPool(t, "10.1.0.0/24")
		reserve(t, m, "10.1.0.9", old)
		leases, err := p.Leases(ctx, owner("a"))
		require.NoError(t, err)
		assert.Len(t, leases, 1)
		require.NoError(t, p.Release(ctx, owner("a")))
		assert.Empty(t, m.state.owners)
	})
	t.Run("legacy/left alone when there is one", func(t *testing.T) {
		p, m := newPool(t, "10.1.0.0/24")
		reserve(t, m, "10.1.0.9", old)
		reserve(t, m, "10.1.0.10", owner("a"))
		assert.Equal(t, []string{"10.1.0.10/24"}, allocate(t, p, "a"))
		require.NoError(t, p.Release(ctx, owner("a")))
		assert.Equal(t, map[netip.Addr]Owner{addr("10.1.0.9"): old}, m.state.owners)
	})
	t.Run("legacy/not given to a second interface", func(t *testing.T) {
		p, m := newPool(t, "10.1.0.0/24")
		reserve(t, m, "10.1.0.9", old)
		_, err := p.Allocate(ctx, owner("a"), Options{})
		require.ErrorIs(t, err, ErrHeld)
		assert.ErrorContains(t, err, "10.1.0.9")
	})
	t.Run("legacy/kept by GC while the container is valid", func(t *testing.T) {
		p, m := newPool(t, "10.1.0.0/24")
		reserve(t, m, "10.1.0.9", old)
		require.NoError(t, p.Retain(ctx, []Owner{owner("a")}))
		assert.Len(t, m.state.owners, 1)
		require.NoError(t, p.Retain(ctx, []Owner{owner("b")}))
		assert.Empty(t, m.state.owners)
	})
}

func TestPoolRetain(t *testing.T) {
	ctx := t.Context()

	t.Run("gc/keeps the valid and frees the rest", func(t *testing.T) {
		p, m := newPool(t, "10.1.0.0/24", "fd00:1::/64")
		for _, id := range []string{"a", "b", "c"} {
			allocate(t, p, id)
		}
		_, err := p.Allocate(ctx, Owner{"a", "net1"}, Options{})
		require.NoError(t, err)
		require.NoError(t, p.Retain(ctx, []Owner{owner("a"), owner("c"), owner("unknown")}))
		assert.Len(t, m.state.owners, 4, "eth0 of a and c")
	})
	t.Run("gc/empty list frees everything", func(t *testing.T) {
		p, m := newPool(t, "10.1.0.0/24")
		allocate(t, p, "a")
		reserve(t, m, "10.1.0.77", Owner{})
		require.NoError(t, p.Retain(ctx, nil))
		assert.Empty(t, m.state.owners, "damaged records too")
	})
	t.Run("gc/an unreadable record stops nothing", func(t *testing.T) {
		boom := errors.New("boom")
		m := NewMemory(MemoryOptions{})
		reserve(t, m, "10.1.0.5", owner("a"))
		reserve(t, m, "10.1.0.6", owner("b"))
		p, err := NewPool(&faulty{Memory: m, f: faults{all: true, release: 1, err: boom}}, PoolOptions{})
		require.NoError(t, err)
		require.ErrorIs(t, p.Retain(ctx, nil), boom)
		assert.Len(t, m.state.owners, 1, "one release failed, the other was done")
	})
}

func TestPoolStatus(t *testing.T) {
	ctx := t.Context()
	p, m := newPool(t, "fd00:1::/64", "10.1.0.0/29")
	for _, id := range []string{"a", "b", "c", "d"} {
		allocate(t, p, id)
		require.NoError(t, p.Status(ctx), "status/room left")
	}
	allocate(t, p, "e")

	err := p.Status(ctx)
	require.ErrorIs(t, err, ErrExhausted, "status/before an ADD fails")
	var full *ExhaustedError
	require.ErrorAs(t, err, &full)
	assert.Equal(t, []any{1, uint64(5)}, []any{full.Set, full.Size})
	assert.ErrorContains(t, err, "range set 1 (10.1.0.1-10.1.0.6): no free address: all 5 that may be handed out are taken (1 kept back as gateway, excluded, network or broadcast address); release")

	_, err = p.Allocate(ctx, owner("f"), Options{})
	require.ErrorIs(t, err, ErrExhausted)
	assert.Len(t, m.state.owners, 10, "the address of the first set is given back")

	require.NoError(t, p.Release(ctx, owner("b")))
	require.NoError(t, p.Status(ctx), "status/recovers")
	assert.Equal(t, "10.1.0.3/29", allocate(t, p, "f")[1])
}

func newPool(t *testing.T, subnets ...string) (*Pool, *Memory) {
	t.Helper()
	var sets []RangeSet
	for _, s := range subnets {
		sets = append(sets, RangeSet{{Subnet: pfx(s)}})
	}
	m := NewMemory(MemoryOptions{})
	p, err := NewPool(m, PoolOptions{}, sets...)
	require.NoError(t, err)
	return p, m
}

func owner(id string) Owner { return Owner{ContainerID: id, IfName: "eth0"} }

func allocate(t *testing.T, p *Pool, id string) []string {
	t.Helper()
	leases, err := p.Allocate(t.Context(), owner(id), Options{})
	require.NoError(t, err)
	var out []string
	for _, l := range leases {
		out = append(out, l.Address.String())
	}
	return out
}

func reserve(t *testing.T, m *Memory, a string, o Owner) {
	t.Helper()
	require.NoError(t, m.Update(t.Context(), func(tx Tx) error {
		ok, err := tx.Reserve(addr(a), o)
		require.True(t, ok)
		return err
	}))
}

// faults says which call of each kind fails, counted from 1.
type faults struct {
	update, reserve, release, setLast, last, owned int
	all                                            bool
	err                                            error
}

func (f *faults) hit(n *int) error {
	if *n--; *n == 0 {
		return f.err
	}
	return nil
}

// faulty is a Memory whose calls fail as told.
type faulty struct {
	*Memory
	f faults
}

func (s *faulty) View(ctx context.Context, fn func(ReadTx) error) error {
	return s.Memory.View(ctx, func(tx ReadTx) error { return fn(&faultyTx{Tx: tx.(Tx), f: &s.f}) })
}

func (s *faulty) Update(ctx context.Context, fn func(Tx) error) error {
	if err := s.f.hit(&s.f.update); err != nil {
		return err
	}
	return s.Memory.Update(ctx, func(tx Tx) error { return fn(&faultyTx{Tx: tx, f: &s.f}) })
}

type faultyTx struct {
	Tx
	f *faults
}

func (t *faultyTx) Reserve(a netip.Addr, o Owner) (bool, error) {
	if err := t.f.hit(&t.f.reserve); err != nil {
		return false, err
	}
	return t.Tx.Reserve(a, o)
}

func (t *faultyTx) Release(a netip.Addr, o Owner) error {
	if err := t.f.hit(&t.f.release); err != nil {
		return err
	}
	return t.Tx.Release(a, o)
}

func (t *faultyTx) SetLast(set int, a netip.Addr) error {
	if err := t.f.hit(&t.f.setLast); err != nil {
		return err
	}
	return t.Tx.SetLast(set, a)
}

func (t *faultyTx) Last(set int) (netip.Addr, error) {
	if err := t.f.hit(&t.f.last); err != nil {
		return netip.Addr{}, err
	}
	return t.Tx.Last(set)
}

func (t *faultyTx) Owned(o Owner) ([]Reservation, error) {
	if err := t.f.hit(&t.f.owned); err != nil {
		return nil, err
	}
	return t.Tx.Owned(o)
}

func (t *faultyTx) All() iter.Seq2[Reservation, error] {
	return func(yield func(Reservation, error) bool) {
		if t.f.all && !yield(Reservation{}, t.f.err) {
			return
		}
		t.Tx.All()(yield)
	}
}
