package hostlocal

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/ipam"
)

// watched returns a store that counts, with leases of one, two and three in it.
func watched(t *testing.T, o Options) (*Store, *ipam.Pool, *probe) {
	t.Helper()
	s, err := New(filepath.Join(fastDir(t), "networks"), "net", o)
	require.NoError(t, err)
	eyes := newProbe()
	s.sys = eyes
	p := poolOver(t, s, "10.1.0.0/28")
	for _, id := range []string{"one", "two", "three"} {
		allocate(t, p, id)
	}
	eyes.reset()
	return s, p, eyes
}

func has(t *testing.T, p *ipam.Pool, id string) string {
	t.Helper()
	leases, err := p.Leases(t.Context(), owner(id))
	require.NoError(t, err)
	if len(leases) == 0 {
		return ""
	}
	require.Len(t, leases, 1)
	return leases[0].Address.Addr().String()
}

// requireKept finds a valid index, which an unknown owner is enough to ask.
func requireKept(t *testing.T, p *ipam.Pool, eyes *probe) {
	t.Helper()
	eyes.reset()
	require.Empty(t, has(t, p, "unknown"))
	require.Zero(t, eyes.calls["list"], "the directory is not read")
	require.Zero(t, eyes.leases, "no lease is read")
}

// What somebody else does to the directory is seen by the next call, and costs one look
// at every file.
func TestOthersAreNoticed(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, s *Store)
		one    string // where one is then
		next   string // the first free address
	}{
		"nothing": {func(*testing.T, *Store) {}, "10.1.0.2", "10.1.0.5"},
		"a lease is taken": {func(t *testing.T, s *Store) {
			put(t, s, "10.1.0.5", "other\r\neth0")
		}, "10.1.0.2", "10.1.0.6"},
		"a lease is released": {func(t *testing.T, s *Store) {
			require.NoError(t, os.Remove(filepath.Join(s.dir, "10.1.0.2")))
		}, "", "10.1.0.2"},
		"a lease is released and taken by another": {func(t *testing.T, s *Store) {
			require.NoError(t, os.Remove(filepath.Join(s.dir, "10.1.0.2")))
			put(t, s, "10.1.0.2", "other\r\neth0")
		}, "", "10.1.0.5"},
		"a lease moves": {func(t *testing.T, s *Store) {
			require.NoError(t, os.Rename(filepath.Join(s.dir, "10.1.0.2"), filepath.Join(s.dir, "10.1.0.7")))
		}, "10.1.0.7", "10.1.0.2"},
		"the directory's time is set, as a restored backup does": {func(t *testing.T, s *Store) {
			info, err := os.Stat(s.dir)
			require.NoError(t, err)
			require.NoError(t, os.Remove(filepath.Join(s.dir, "10.1.0.3")))
			require.NoError(t, os.Chtimes(s.dir, time.Time{}, info.ModTime().Add(time.Nanosecond)))
		}, "10.1.0.2", "10.1.0.3"},
		"the directory is replaced": {func(t *testing.T, s *Store) {
			require.NoError(t, os.Rename(s.dir, s.dir+".old"))
			put(t, s, "10.1.0.9", "one\r\neth0")
			put(t, s, "lock", "")
		}, "10.1.0.9", "10.1.0.2"},
		"the machine is started again": {func(_ *testing.T, s *Store) {
			s.boot = bootedAt("another", time.Now())
		}, "10.1.0.2", "10.1.0.5"},
		"the index is gone": {func(t *testing.T, s *Store) {
			require.NoError(t, os.Remove(s.indexPath()))
		}, "10.1.0.2", "10.1.0.5"},
		"the scratch directory is gone": {func(t *testing.T, s *Store) {
			require.NoError(t, os.RemoveAll(s.scratch))
		}, "10.1.0.2", "10.1.0.5"},
		"the index is cut off": {func(t *testing.T, s *Store) {
			require.NoError(t, os.Truncate(s.indexPath(), pageSize+100))
		}, "10.1.0.2", "10.1.0.5"},
		"the index is damaged": {func(t *testing.T, s *Store) { loseHalf(s.indexPath()) }, "10.1.0.2", "10.1.0.5"},
		"the index is empty": {func(t *testing.T, s *Store) {
			require.NoError(t, os.Truncate(s.indexPath(), 0))
		}, "10.1.0.2", "10.1.0.5"},
		"the index is a directory": {func(t *testing.T, s *Store) {
			require.NoError(t, os.Remove(s.indexPath()))
			require.NoError(t, os.Mkdir(s.indexPath(), 0o700))
		}, "10.1.0.2", "10.1.0.5"},
		"the index is of a newer version": {func(t *testing.T, s *Store) {
			data, err := os.ReadFile(s.indexPath())
			require.NoError(t, err)
			h, err := decodeHeader(data)
			require.NoError(t, err)
			h.Version++
			copy(data, h.encode())
			require.NoError(t, os.WriteFile(s.indexPath(), data, 0o600))
		}, "10.1.0.2", "10.1.0.5"},
	} {
		t.Run(name, func(t *testing.T) {
			s, p, eyes := watched(t, Options{})
			c.change(t, s)
			assert.Equal(t, c.one, has(t, p, "one"))
			require.NoError(t, s.View(t.Context(), func(tx ipam.ReadTx) error {
				next, err := tx.NextFree(netip.MustParseAddr("10.1.0.2"), netip.MustParseAddr("10.1.0.14"), time.Time{})
				require.NoError(t, err)
				assert.Equal(t, c.next, next.String())
				return nil
			}))
			allocate(t, p, "four")
			requireTrue(t, s)
			if !strings.HasSuffix(name, "is a directory") {
				requireKept(t, p, eyes)
			}
		})
	}
}

// A text that is changed in place does not change the directory. Who asks for the lease
// notices, and so does garbage collection.
func TestChangeInPlace(t *testing.T) {
	s, p, eyes := watched(t, Options{})
	path := filepath.Join(s.dir, "10.1.0.2")
	require.NoError(t, os.WriteFile(path, []byte("other\r\neth0"), 0o600))
	assert.Empty(t, has(t, p, "one"))
	assert.Equal(t, "10.1.0.2", has(t, p, "other"))
	requireKept(t, p, eyes)

	require.NoError(t, p.Retain(t.Context(), []ipam.Owner{owner("two")}))
	assert.NotContains(t, snapshot(t, s.dir), "10.1.0.2")
	assert.Equal(t, "10.1.0.3", has(t, p, "two"))
	requireTrue(t, s)
}

// What a writer that ignores the lock does in the one moment in which it is not noticed
// comes to light at garbage collection.
func TestHiddenChange(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, s *Store)
		all    []string
		next   string
	}{
		"taken": {func(t *testing.T, s *Store) { put(t, s, "10.1.0.5", "other\r\neth0") },
			[]string{"one", "two", "three", "other"}, "10.1.0.6"},
		"released": {func(t *testing.T, s *Store) {
			require.NoError(t, os.Remove(filepath.Join(s.dir, "10.1.0.2")))
		}, []string{"two", "three"}, "10.1.0.2"},
		"moved": {func(t *testing.T, s *Store) {
			require.NoError(t, os.Rename(filepath.Join(s.dir, "10.1.0.2"), filepath.Join(s.dir, "10.1.0.5")))
		}, []string{"one", "two", "three"}, "10.1.0.2"},
	} {
		t.Run(name, func(t *testing.T) {
			s, p, _ := watched(t, Options{})
			info, err := os.Stat(s.dir)
			require.NoError(t, err)
			c.change(t, s)
			require.NoError(t, os.Chtimes(s.dir, time.Time{}, info.ModTime()))
			var valid []ipam.Owner
			for _, id := range c.all {
				valid = append(valid, owner(id))
			}
			require.NoError(t, p.Retain(t.Context(), valid))
			require.NoError(t, s.View(t.Context(), func(tx ipam.ReadTx) error {
				next, err := tx.NextFree(netip.MustParseAddr("10.1.0.2"), netip.MustParseAddr("10.1.0.14"), time.Time{})
				require.NoError(t, err)
				assert.Equal(t, c.next, next.String())
				return nil
			}))
			requireTrue(t, s)
		})
	}
	t.Run("an address that is taken after all", func(t *testing.T) {
		s, p, _ := watched(t, Options{})
		info, err := os.Stat(s.dir)
		require.NoError(t, err)
		put(t, s, "10.1.0.5", "other\r\neth0")
		require.NoError(t, os.Chtimes(s.dir, time.Time{}, info.ModTime()))
		assert.Equal(t, "10.1.0.6/28", allocate(t, p, "four"))
		assert.Equal(t, "10.1.0.5", has(t, p, "other"))
		requireTrue(t, s)
	})
}

// File systems keep a directory's time to the nanosecond, or not.
func TestGranularity(t *testing.T) {
	for _, kept := range []time.Duration{0, 100, time.Microsecond, time.Second, 2 * time.Second} {
		t.Run(kept.String(), func(t *testing.T) {
			s, p, eyes := watched(t, Options{})
			eyes.kept = kept
			put(t, s, "10.1.0.9", "other\r\neth0")
			allocate(t, p, "four")
			requireKept(t, p, eyes)
			require.NoError(t, p.Release(t.Context(), owner("four")))
			requireKept(t, p, eyes)
			info, err := os.Stat(s.dir)
			require.NoError(t, err)
			age := time.Since(info.ModTime())
			assert.Greater(t, age, time.Second, "no change at present can be taken for it")
			assert.Less(t, age, 2*stampAge)
			require.NoError(t, os.Remove(filepath.Join(s.dir, "10.1.0.9")))
			assert.Empty(t, has(t, p, "other"))
			requireTrue(t, s)
		})
	}
	t.Run("less than that: no index", func(t *testing.T) {
		s, p, eyes := watched(t, Options{})
		eyes.kept = 24 * time.Hour
		put(t, s, "10.1.0.9", "other\r\neth0")
		requireWithoutIndex(t, s, p)
	})
}

// requireWithoutIndex finds everything to work by looking at every file.
func requireWithoutIndex(t *testing.T, s *Store, p *ipam.Pool) {
	t.Helper()
	allocate(t, p, "four")
	assert.NotEmpty(t, has(t, p, "four"))
	require.NoError(t, p.Release(t.Context(), owner("one")))
	assert.Empty(t, has(t, p, "one"))
	require.NoError(t, p.Retain(t.Context(), []ipam.Owner{owner("two")}))
	assert.NotEmpty(t, has(t, p, "two"))
	tx := s.begin(false)
	defer tx.end()
	assert.False(t, tx.open(), "no index is valid")
}

func TestNoIndex(t *testing.T) {
	t.Run("the boot is not known", func(t *testing.T) {
		s, p, _ := watched(t, Options{Rest: time.Hour})
		s.boot = noBoot
		put(t, s, "10.1.0.9", "other\r\neth0")
		allocate(t, p, "four")
		assert.NotEmpty(t, has(t, p, "other"))
		require.NoError(t, p.Release(t.Context(), owner("one")))
		assert.Empty(t, has(t, p, "one"))
		_, err := s.Stale(t.Context())
		require.ErrorIs(t, err, errNoBoot)
		s.boot = bootedAt("known again", time.Now())
		assert.NotEmpty(t, has(t, p, "other"))
		requireTrue(t, s)
	})
	t.Run("the directory is another user's", func(t *testing.T) {
		s, p, eyes := watched(t, Options{})
		eyes.noTouch = true
		requireWithoutIndex(t, s, p)
	})
	t.Run("its place is taken", func(t *testing.T) {
		s, p, _ := watched(t, Options{})
		require.NoError(t, os.Remove(s.indexPath()))
		require.NoError(t, os.MkdirAll(filepath.Join(s.indexPath(), "full"), 0o700))
		allocate(t, p, "four")
		assert.NotEmpty(t, has(t, p, "four"))
	})
}

// A clock that is set back makes nothing valid that is not, and no rest longer.
func TestClockSetBack(t *testing.T) {
	s, p, eyes := watched(t, Options{Rest: time.Hour})
	require.NoError(t, s.Update(t.Context(), func(open ipam.Tx) error {
		x, err := open.(*tx).index()
		require.NoError(t, err)
		_, err = x.rest(netip.MustParseAddr("10.1.0.5"), time.Now().Add(time.Hour))
		require.NoError(t, err)
		return open.Release(netip.MustParseAddr("10.1.0.2"), owner("one"))
	}))
	requireKept(t, p, eyes)
	require.NoError(t, s.View(t.Context(), func(tx ipam.ReadTx) error {
		next, err := tx.NextFree(netip.MustParseAddr("10.1.0.2"), netip.MustParseAddr("10.1.0.14"), time.Now().Add(-time.Minute))
		require.NoError(t, err)
		assert.Equal(t, "10.1.0.5", next.String(), "10.1.0.2 rests; what was released in the future does not")
		return nil
	}))
	now := time.Now()
	x := header{Revisit: now.UnixNano()}
	assert.True(t, x.due(now))
	assert.False(t, x.due(now.Add(-time.Second)))
	assert.True(t, x.due(now.Add(-time.Hour)), "set back")
}

// An empty file is a taken address while a writer may be about to fill it, and a free
// one later, although nothing in the directory changes.
func TestYoungEmptyFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // by the bubble's clock, however long the test takes
		s, p, _ := watched(t, Options{})
		path := filepath.Join(s.dir, "10.1.0.5")
		next := func() string {
			var next netip.Addr
			require.NoError(t, s.View(t.Context(), func(tx ipam.ReadTx) (err error) {
				next, err = tx.NextFree(netip.MustParseAddr("10.1.0.2"), netip.MustParseAddr("10.1.0.14"), time.Time{})
				return err
			}))
			return next.String()
		}
		putYoung(t, s, "10.1.0.5")
		assert.Empty(t, has(t, p, "late"))
		assert.Equal(t, "10.1.0.6", next())
		put(t, s, "10.1.0.9", "other\r\neth0")
		time.Sleep(tornAge - time.Nanosecond)
		assert.Equal(t, "10.1.0.6", next())
		time.Sleep(time.Nanosecond)
		assert.Equal(t, "10.1.0.5", next())

		putYoung(t, s, "10.1.0.5")
		put(t, s, "10.1.0.10", "x\r\neth0")
		assert.Equal(t, "10.1.0.6", next())
		require.NoError(t, os.WriteFile(path, []byte("late\r\neth0"), 0o600), "the writer is done")
		require.NoError(t, p.Retain(t.Context(), []ipam.Owner{owner("late")}))
		assert.Equal(t, map[string]string{"10.1.0.5": "late\r\neth0", "last_reserved_ip.0": "10.1.0.4", "lock": ""}, snapshot(t, s.dir))
	})
}

// putYoung makes an empty file now. A bubble's clock is not that of the file system.
func putYoung(t *testing.T, s *Store, name string) {
	t.Helper()
	put(t, s, name, "")
	require.NoError(t, os.Chtimes(filepath.Join(s.dir, name), time.Now(), time.Now()))
}

// When addresses were released is known for as long as asked, over a change by somebody
// else and a start of the machine.
func TestRestsSurvive(t *testing.T) {
	s, p, _ := watched(t, Options{Rest: time.Hour})
	require.NoError(t, p.Release(t.Context(), owner("one")))
	resting := func() (n uint64) {
		require.NoError(t, s.View(t.Context(), func(tx ipam.ReadTx) (err error) {
			n, _, err = tx.Resting(netip.MustParseAddr("10.1.0.0"), netip.MustParseAddr("10.1.0.15"), time.Now().Add(-time.Minute))
			return err
		}))
		return n
	}
	require.EqualValues(t, 1, resting())
	put(t, s, "10.1.0.9", "other\r\neth0")
	require.EqualValues(t, 1, resting())
	require.NoError(t, os.Remove(filepath.Join(s.dir, "10.1.0.3")))
	require.EqualValues(t, 2, resting(), "what somebody else released rests from now on")
	s.boot = bootedAt("another", time.Now())
	require.EqualValues(t, 2, resting())
	s.rest = time.Nanosecond
	s.boot = bootedAt("third", time.Now())
	require.Zero(t, resting(), "longer than asked")
}

// One that is told to keep no times forgets those of what it reserves, which rests no more.
func TestRestEndsWhoeverReserves(t *testing.T) {
	s, p, _ := watched(t, Options{Rest: time.Hour})
	require.NoError(t, p.Release(t.Context(), owner("one")))
	s.rest = 0
	addr := netip.MustParseAddr("10.1.0.2")
	require.NoError(t, s.Update(t.Context(), func(tx ipam.Tx) error {
		ok, err := tx.Reserve(addr, owner("four"))
		require.True(t, ok)
		return err
	}))
	s.rest = time.Hour
	require.NoError(t, s.View(t.Context(), func(tx ipam.ReadTx) error {
		n, _, err := tx.Resting(addr, addr, time.Now().Add(-time.Minute))
		assert.Zero(t, n)
		return err
	}))
	requireTrue(t, s)
}

// A writer that ignores the lock is noticed although it was at work during a call of
// ours, before a change or after the last one.
func TestOthersAreNoticedDuringACall(t *testing.T) {
	for name, order := range map[string]string{"before": "other, ours", "after": "ours, other", "between": "ours, other, ours"} {
		t.Run(name, func(t *testing.T) {
			s, p, eyes := watched(t, Options{})
			n := 10
			require.NoError(t, s.Update(t.Context(), func(tx ipam.Tx) error {
				_, err := tx.Owned(owner("one"))
				require.NoError(t, err)
				for who := range strings.SplitSeq(order, ", ") {
					if who == "other" {
						put(t, s, "10.1.0.9", "other\r\neth0")
						continue
					}
					ok, err := tx.Reserve(netip.AddrFrom4([4]byte{10, 1, 0, byte(n)}), owner("ours"))
					require.NoError(t, err)
					require.True(t, ok)
					n++
				}
				return nil
			}))
			requireTrue(t, s)
			assert.Equal(t, "10.1.0.9", has(t, p, "other"))
			requireKept(t, p, eyes)
		})
	}
}
