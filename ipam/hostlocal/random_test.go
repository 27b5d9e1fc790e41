package hostlocal

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/internal/testenv"
	"github.com/cnikit/cnikit/ipam"
)

// Calls of ours, some of which die half-way, and everything that others may do to the
// directory and to the index, in any order, on file systems of either kind: what the next
// call says is always what the files say.
func TestRandomWorld(t *testing.T) {
	for seed := range uint64(testenv.Scale(t, 10)) {
		for _, kept := range []time.Duration{0, time.Second} {
			w := newWorld(t, seed, kept)
			for range 200 {
				w.step(t)
				w.compare(t)
			}
		}
	}
}

// world is a directory with many users.
type world struct {
	*Store
	rnd  *rand.Rand
	kept time.Duration
	seed uint64
	log  []string // what happened
}

func newWorld(t *testing.T, seed uint64, kept time.Duration) *world {
	t.Helper()
	s, err := New(filepath.Join(fastDir(t), "networks"), "net", Options{NoSync: true, Rest: time.Hour})
	require.NoError(t, err)
	require.NoError(t, s.makeDir())
	return &world{Store: s, rnd: rand.New(rand.NewPCG(seed, 7)), kept: kept, seed: seed}
}

// process is a new process of ours, which dies before its change number cut; 0: it does not.
func (w *world) process(t *testing.T, cut int) (*Store, *ipam.Pool) {
	t.Helper()
	s, eyes := *w.Store, newProbe()
	eyes.kept, eyes.cut, eyes.half = w.kept, cut, w.rnd.IntN(2) == 0
	s.sys, s.rest = eyes, time.Duration(w.rnd.IntN(2))*time.Hour
	return &s, poolOver(t, &s, "10.1.0.0/28")
}

func (w *world) owner() ipam.Owner { return owner(string(rune('a' + w.rnd.IntN(12)))) }

func (w *world) file() string {
	return filepath.Join(w.dir, fmt.Sprintf("10.1.0.%d", 2+w.rnd.IntN(12)))
}

func (w *world) note(what string, args ...any) {
	w.log = append(w.log, fmt.Sprint(what, " ", args))
	w.log = w.log[max(0, len(w.log)-12):]
}

// step does something, which may fail: it may be done by a process that dies.
func (w *world) step(t *testing.T) {
	t.Helper()
	cut := max(0, w.rnd.IntN(24)-9)
	s, p := w.process(t, cut)
	o, a, b := w.owner(), w.file(), w.file()
	var err error
	switch n := w.rnd.IntN(16); {
	case n < 5:
		_, err = p.Allocate(t.Context(), o, ipam.Options{})
		w.note("ADD", o, cut, err)
	case n < 8:
		err = p.Release(t.Context(), o)
		w.note("DEL", o, cut, err)
	case n < 9:
		err = p.Retain(t.Context(), []ipam.Owner{o, w.owner(), w.owner(), w.owner()})
		w.note("GC", o, cut, err)
	case n < 11:
		w.note("put", a, o)
		if _, err := os.Lstat(a); err != nil {
			require.NoError(t, os.WriteFile(a, encodeRecord(o), 0o600))
		}
	case n < 12:
		w.note("remove", a, os.Remove(a))
	case n < 13:
		w.note("rename", a, b, os.Rename(a, b))
	case n < 14:
		w.note("boot")
		w.boot = bootedAt(fmt.Sprint(w.rnd.Uint64()), time.Now())
		loseHalf(s.indexPath())
	default:
		w.disturb(t)
	}
}

// disturb does what backups and administrators do.
func (w *world) disturb(t *testing.T) {
	t.Helper()
	backup := w.dir + ".backup"
	switch w.rnd.IntN(4) {
	case 0:
		w.note("remove the index", os.Remove(w.indexPath()))
	case 1:
		w.note("remove the scratch directory", os.RemoveAll(w.scratch))
	case 2:
		w.note("backup")
		require.NoError(t, os.RemoveAll(backup))
		info, err := os.Stat(w.dir)
		require.NoError(t, err)
		require.NoError(t, os.CopyFS(backup, os.DirFS(w.dir)))
		require.NoError(t, os.Chtimes(backup, time.Time{}, info.ModTime()))
	default:
		w.note("restore")
		if _, err := os.Stat(backup); err == nil && w.kept == 0 { // of whole seconds there are too few
			require.NoError(t, os.RemoveAll(w.dir))
			require.NoError(t, os.Rename(backup, w.dir))
		}
	}
}

// compare asks a new process.
func (w *world) compare(t *testing.T) {
	t.Helper()
	truth := leasesOf(t, w.Store)
	s, _ := w.process(t, 0)
	happened := func(what string) string {
		return fmt.Sprintf("%s: seed %d, times kept to %s; before it:\n%s", what, w.seed, w.kept, strings.Join(w.log, "\n"))
	}
	first, last := netip.MustParseAddr("10.1.0.0"), netip.MustParseAddr("10.1.0.15")
	require.NoError(t, s.View(t.Context(), func(tx ipam.ReadTx) error {
		n, err := tx.Count(first, last)
		require.NoError(t, err)
		require.EqualValues(t, len(truth), n, happened("Count"))
		owned := 0
		for c := 'a'; c < 'm'; c++ {
			rs, err := tx.Owned(owner(string(c)))
			require.NoError(t, err)
			for _, r := range rs {
				require.Equal(t, truth[r.Address], r.Owner, happened("Owned"))
			}
			owned += len(rs)
		}
		require.Equal(t, len(truth), owned, happened("Owned by all"))
		free, err := tx.NextFree(first, last, time.Time{})
		require.NoError(t, err)
		for a := first; a != free; a = a.Next() {
			require.Contains(t, truth, a, happened("NextFree"))
		}
		require.NotContains(t, truth, free, happened("NextFree"))
		return nil
	}))
}
