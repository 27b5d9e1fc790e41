package hostlocal

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/internal/testenv"
	"github.com/cnikit/cnikit/ipam"
)

// operation is what a plugin is called for, with an owner for each number.
type operation struct {
	name string
	call func(p *ipam.Pool, n int) error
}

func operations(t testing.TB) []operation {
	t.Helper()
	ctx := t.Context()
	return []operation{
		{"add", func(p *ipam.Pool, n int) error {
			_, err := p.Allocate(ctx, owner(fmt.Sprint("new", n)), ipam.Options{})
			return err
		}},
		{"add again", func(p *ipam.Pool, n int) error {
			_, err := p.Allocate(ctx, owner(fmt.Sprint("new", n)), ipam.Options{})
			return err
		}},
		{"check", func(p *ipam.Pool, n int) error {
			leases, err := p.Leases(ctx, owner(fmt.Sprint("new", n)))
			if err == nil && len(leases) != 1 {
				err = fmt.Errorf("leases: %v", leases)
			}
			return err
		}},
		{"status", func(p *ipam.Pool, _ int) error { return p.Status(ctx) }},
		{"del", func(p *ipam.Pool, n int) error { return p.Release(ctx, owner(fmt.Sprint("new", n))) }},
		{"del of an unknown owner", func(p *ipam.Pool, n int) error { return p.Release(ctx, owner(fmt.Sprint("unknown", n))) }},
	}
}

// fillStore makes so many leases as somebody else does, and the index of them.
func fillStore(t testing.TB, s *Store, n int) {
	t.Helper()
	require.NoError(t, s.makeDir())
	addr := netip.MustParseAddr("10.0.1.0")
	for i := range n {
		path := filepath.Join(s.dir, addr.String())
		require.NoError(t, os.WriteFile(path, encodeRecord(owner(fmt.Sprintf("container-%d", i))), 0o600))
		addr = addr.Next()
	}
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, lastName(0)), []byte(addr.Prev().String()), 0o600))
	require.NoError(t, s.Update(t.Context(), func(tx ipam.Tx) error {
		_, err := tx.Owned(owner("nobody"))
		return err
	}))
}

// What an operation asks of the system does not depend on how many leases there are.
func TestCostIsConstant(t *testing.T) {
	sizes := []int{100, testenv.Scale(t, 6000)}
	most := map[string][]int{}
	for _, size := range sizes {
		s, err := New(filepath.Join(fastDir(t), "networks"), "net", Options{})
		require.NoError(t, err)
		eyes := newProbe()
		s.sys = eyes
		fillStore(t, s, size)
		p := poolOver(t, s, "10.0.0.0/8")
		require.NoError(t, p.Status(t.Context()))
		for _, op := range operations(t) {
			highest := 0
			for n := range 40 {
				eyes.reset()
				require.NoError(t, op.call(p, n), op.name)
				assert.Zero(t, eyes.calls["list"], "%s among %d leases reads no directory", op.name, size)
				assert.LessOrEqual(t, eyes.leases, 2, "%s among %d leases reads few of them", op.name, size)
				highest = max(highest, eyes.total())
			}
			most[op.name] = append(most[op.name], highest)
		}
	}
	for name, calls := range most {
		t.Logf("%s: %d system calls among %d leases, %d among %d", name, calls[0], sizes[0], calls[1], sizes[1])
		assert.LessOrEqual(t, calls[1], calls[0]+4, name) // an entry may lie a page behind its home
		assert.Less(t, calls[1], 40, name)
	}
}

// A lease has its content on disk before it appears, and its name before it counts; what
// is released is gone from the disk before that is said. Without syncing the rest is the
// same.
func TestSyncing(t *testing.T) {
	var orders [][]string
	for _, noSync := range []bool{false, true} {
		s, p, eyes := watched(t, Options{NoSync: noSync})
		_, err := p.Allocate(t.Context(), owner("four"), ipam.Options{})
		require.NoError(t, err)
		add := eyes.order
		eyes.reset()
		require.NoError(t, p.Release(t.Context(), owner("one")))
		if !noSync {
			requireOrder(t, add, "pwrite", "fsync", "link", "syncdir", "rename", "pwrite")
			requireOrder(t, eyes.order, "remove", "syncdir")
			assert.Equal(t, 1, eyes.calls["syncdir"])
			assert.Zero(t, eyes.calls["fsync"])
		}
		orders = append(orders, slices.DeleteFunc(append(add, eyes.order...), func(call string) bool {
			return call == "fsync" || call == "syncdir"
		}))
		requireTrue(t, s)
	}
	assert.Equal(t, orders[1], orders[0])
}

// requireOrder finds calls one behind the other, whatever is between them.
func requireOrder(t *testing.T, calls []string, want ...string) {
	t.Helper()
	rest := calls
	for _, w := range want {
		i := slices.Index(rest, w)
		require.GreaterOrEqual(t, i, 0, "%s is not where it belongs, in that order %v, in %v", w, want, calls)
		rest = rest[i+1:]
	}
}

// BenchmarkStore measures the operations of a plugin in one process, in memory and on
// disk, with fsync(2) and without: the difference is what syncing costs.
func BenchmarkStore(b *testing.B) {
	places := map[string]func(testing.TB) string{
		"tmpfs": fastDir,
		"disk":  func(t testing.TB) string { return t.TempDir() },
	}
	for _, place := range []string{"tmpfs", "disk"} {
		for _, noSync := range []bool{false, true} {
			for _, size := range []int{100, 10_000, 60_000} {
				name := fmt.Sprintf("%s/sync=%t/leases=%d", place, !noSync, size)
				b.Run(name, func(b *testing.B) {
					s, err := New(filepath.Join(places[place](b), "networks"), "net", Options{NoSync: noSync})
					require.NoError(b, err)
					fillStore(b, s, size)
					p, err := ipam.NewPool(s, ipam.PoolOptions{}, ipam.RangeSet{{Subnet: netip.MustParsePrefix("10.0.0.0/8")}})
					require.NoError(b, err)
					benchmarkOperations(b, p)
				})
			}
		}
	}
}

func benchmarkOperations(b *testing.B, p *ipam.Pool) {
	b.Helper()
	b.Run("add+del", func(b *testing.B) {
		for b.Loop() {
			_, err := p.Allocate(b.Context(), owner("new"), ipam.Options{})
			require.NoError(b, err)
			require.NoError(b, p.Release(b.Context(), owner("new")))
		}
	})
	b.Run("del-unknown", func(b *testing.B) {
		for b.Loop() {
			require.NoError(b, p.Release(b.Context(), owner("unknown")))
		}
	})
	b.Run("status", func(b *testing.B) {
		for b.Loop() {
			require.NoError(b, p.Status(b.Context()))
		}
	})
}

// BenchmarkRebuild measures the look at every file that follows a change by somebody
// else, and what reading the same files takes.
func BenchmarkRebuild(b *testing.B) {
	for _, size := range []int{100, 10_000, 60_000} {
		s, err := New(filepath.Join(fastDir(b), "networks"), "net", Options{})
		require.NoError(b, err)
		fillStore(b, s, size)
		b.Run(fmt.Sprintf("leases=%d", size), func(b *testing.B) {
			for b.Loop() {
				require.NoError(b, os.Remove(s.indexPath()))
				require.NoError(b, s.View(b.Context(), func(ipam.ReadTx) error { return nil }))
			}
		})
		b.Run(fmt.Sprintf("leases=%d/reading", size), func(b *testing.B) {
			for b.Loop() {
				entries, err := os.ReadDir(s.dir)
				require.NoError(b, err)
				for _, e := range entries {
					_, err := os.ReadFile(filepath.Join(s.dir, e.Name()))
					require.NoError(b, err)
				}
			}
		})
	}
}
