package ipam

import (
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// restingPool hands out 10.1.0.2 to 10.1.0.6, and each again a minute after its
// release.
func restingPool(t *testing.T) (*Pool, *Memory) {
	t.Helper()
	m := NewMemory(MemoryOptions{Rest: time.Minute})
	p, err := NewPool(m, PoolOptions{Quarantine: time.Minute}, RangeSet{{Subnet: pfx("10.1.0.0/29")}})
	require.NoError(t, err)
	return p, m
}

// inBubble runs a case on a clock of its own, in which sleeping takes no time.
func inBubble(t *testing.T, name string, run func(t *testing.T, p *Pool, m *Memory)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			p, m := restingPool(t)
			run(t, p, m)
		})
	})
}

func TestQuarantine(t *testing.T) {
	fill := func(t *testing.T, p *Pool) {
		t.Helper()
		for i := 2; i < 7; i++ {
			require.Equal(t, []string{fmt.Sprintf("10.1.0.%d/29", i)}, allocate(t, p, fmt.Sprint(i)))
		}
	}
	release := func(t *testing.T, p *Pool, id string) {
		t.Helper()
		require.NoError(t, p.Release(t.Context(), owner(id)))
	}

	inBubble(t, "quarantine/an address rests after its release", func(t *testing.T, p *Pool, _ *Memory) {
		fill(t, p)
		release(t, p, "5")
		time.Sleep(20 * time.Second)
		release(t, p, "3")
		_, err := p.Allocate(t.Context(), owner("a"), Options{})
		require.ErrorIs(t, err, ErrExhausted)
		require.ErrorIs(t, p.Status(t.Context()), ErrExhausted, "status says so before")

		time.Sleep(40*time.Second + 1)
		require.NoError(t, p.Status(t.Context()))
		assert.Equal(t, []string{"10.1.0.5/29"}, allocate(t, p, "a"), "3 still rests")
		time.Sleep(20 * time.Second)
		assert.Equal(t, []string{"10.1.0.3/29"}, allocate(t, p, "b"))
	})
	inBubble(t, "quarantine/exhaustion tells when it ends", func(t *testing.T, p *Pool, _ *Memory) {
		fill(t, p)
		time.Sleep(time.Hour)
		first := time.Now()
		release(t, p, "4")
		time.Sleep(time.Second)
		release(t, p, "3")
		_, err := p.Allocate(t.Context(), owner("a"), Options{})
		var full *ExhaustedError
		require.ErrorAs(t, err, &full)
		assert.Equal(t, []any{uint64(5), uint64(2), first.Add(time.Minute)}, []any{full.Size, full.Resting, full.Next})
		assert.ErrorContains(t, err, "of 5 that may be handed out (1 kept back as gateway, excluded, network or broadcast address), 3 are taken and 2 rest in quarantine, the first until "+first.Add(time.Minute).Format(time.RFC3339)+";")
		require.ErrorAs(t, p.Status(t.Context()), &full)
		assert.Equal(t, first.Add(time.Minute), full.Next)
	})
	inBubble(t, "quarantine/the first of all segments tells when it ends", func(t *testing.T, _ *Pool, m *Memory) {
		p, err := NewPool(m, PoolOptions{Quarantine: time.Minute}, RangeSet{{Subnet: pfx("10.1.0.0/28"), End: addr("10.1.0.8"),
			Exclude: []netip.Prefix{pfx("10.1.0.4/32"), pfx("10.1.0.7/32")}}})
		require.NoError(t, err)
		for _, id := range []string{"2", "3", "5", "6", "8"} {
			allocate(t, p, id)
		}
		first := time.Now()
		release(t, p, "2")
		time.Sleep(time.Second)
		release(t, p, "5")
		var full *ExhaustedError
		require.ErrorAs(t, p.Status(t.Context()), &full)
		assert.Equal(t, []any{uint64(2), first.Add(time.Minute)}, []any{full.Resting, full.Next})
	})
	inBubble(t, "quarantine/a requested address is given all the same", func(t *testing.T, p *Pool, _ *Memory) {
		allocate(t, p, "a")
		release(t, p, "a")
		leases, err := p.Allocate(t.Context(), owner("b"), Options{Requested: []netip.Addr{addr("10.1.0.2")}})
		require.NoError(t, err)
		assert.Equal(t, pfx("10.1.0.2/29"), leases[0].Address)
	})
	inBubble(t, "quarantine/what was reserved in vain does not rest", func(t *testing.T, _ *Pool, m *Memory) {
		p, err := NewPool(m, PoolOptions{Quarantine: time.Minute}, RangeSet{{Subnet: pfx("10.1.0.0/30")}}, RangeSet{{Subnet: pfx("10.2.0.0/30")}})
		require.NoError(t, err)
		reserve(t, m, "10.2.0.2", owner("other"))
		_, err = p.Allocate(t.Context(), owner("a"), Options{})
		require.ErrorIs(t, err, ErrExhausted)
		require.NoError(t, p.Release(t.Context(), owner("other")))
		time.Sleep(time.Minute + 1)
		allocate(t, p, "a")
	})
	inBubble(t, "quarantine/what was reserved in vain goes on resting", func(t *testing.T, p *Pool, m *Memory) {
		fill(t, p)
		release(t, p, "4")
		time.Sleep(30 * time.Second)
		require.NoError(t, m.Update(t.Context(), func(tx Tx) error {
			_, err := tx.Reserve(addr("10.1.0.4"), owner("a"))
			require.NoError(t, err)
			return tx.Release(addr("10.1.0.4"), owner("a"))
		}))
		_, err := p.Allocate(t.Context(), owner("a"), Options{})
		require.ErrorIs(t, err, ErrExhausted)
		time.Sleep(30*time.Second + 1)
		assert.Equal(t, []string{"10.1.0.4/29"}, allocate(t, p, "a"))
	})
	inBubble(t, "quarantine/off is the default", func(t *testing.T, _ *Pool, m *Memory) {
		p, err := NewPool(m, PoolOptions{}, RangeSet{{Subnet: pfx("10.1.0.0/30")}})
		require.NoError(t, err)
		for range 3 {
			allocate(t, p, "a")
			release(t, p, "a")
		}
	})
	inBubble(t, "quarantine/the store forgets what has rested", func(t *testing.T, p *Pool, m *Memory) {
		for range 1000 {
			allocate(t, p, "a")
			release(t, p, "a")
			time.Sleep(30 * time.Second)
		}
		assert.LessOrEqual(t, len(m.state.rests.queue), 4)
	})
}

// A quarantine that the store would forget is refused, not left out.
func TestQuarantineNeedsRest(t *testing.T) {
	set := RangeSet{{Subnet: pfx("10.1.0.0/29")}}
	for _, c := range []struct {
		rest, quarantine time.Duration
		want             string
	}{
		{0, time.Minute, "quarantine 1m0s: the store keeps times of release for 0s only; set Rest in its options (hostlocal.Options, ipam.MemoryOptions) to at least 1m0s"},
		{30 * time.Second, time.Minute, "quarantine 1m0s: the store keeps times of release for 30s only"},
		{time.Minute, time.Minute, ""},
		{time.Hour, time.Minute, ""},
		{time.Minute, 0, ""},
		{0, -1, ""},
		{-1, 0, ""},
	} {
		for _, sets := range [][]RangeSet{{set}, nil} {
			_, err := NewPool(NewMemory(MemoryOptions{Rest: c.rest}), PoolOptions{Quarantine: c.quarantine}, sets...)
			if c.want == "" {
				require.NoError(t, err)
				continue
			}
			require.ErrorContains(t, err, c.want)
		}
	}
}

func TestRefuseHeld(t *testing.T) {
	m := NewMemory(MemoryOptions{})
	sets := []RangeSet{{{Subnet: pfx("10.1.0.0/24")}}, {{Subnet: pfx("fd00::/64")}}}
	p, err := NewPool(m, PoolOptions{RefuseHeld: true}, sets...)
	require.NoError(t, err)
	reserve(t, m, "fd00::9", owner("a"))
	assert.Equal(t, []string{"10.1.0.2/24", "fd00::9/64"}, allocate(t, p, "a"), "what a crash left half done is completed")

	_, err = p.Allocate(t.Context(), owner("a"), Options{})
	require.ErrorIs(t, err, ErrHeld)
	require.EqualError(t, err, "owner already holds an address: a/eth0 has 10.1.0.2, fd00::9; delete its attachment first")
	leases, err := p.Leases(t.Context(), owner("a"))
	require.NoError(t, err)
	assert.Len(t, leases, 2, "the refusal frees nothing")
	allocate(t, p, "b")
}
