package hostlocal

import (
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

func TestStale(t *testing.T) {
	s, p, _ := watched(t, Options{})
	stale := func() (addrs []string) {
		found, err := s.Stale(t.Context())
		require.NoError(t, err)
		for _, r := range found {
			addrs = append(addrs, r.Address.String()+" "+r.Owner.String())
		}
		return addrs
	}
	assert.Empty(t, stale())
	put(t, s, "10.1.0.9", "other\r\neth0") // a minute ago
	s.boot = bootedAt("another", time.Now().Add(5*time.Second))
	assert.Equal(t, []string{"10.1.0.2 one/eth0", "10.1.0.3 two/eth0", "10.1.0.4 three/eth0", "10.1.0.9 other/eth0"}, stale())

	// From here on the boot began in the future, as when the clock was set forward:
	// what this package reserves is of this boot all the same.
	allocate(t, p, "four")
	require.NoError(t, p.Release(t.Context(), owner("two")))
	put(t, s, "10.1.0.10", "five\r\neth0") // so every file is looked at
	want := []string{"10.1.0.2 one/eth0", "10.1.0.4 three/eth0", "10.1.0.9 other/eth0", "10.1.0.10 five/eth0"}
	assert.Equal(t, want, stale())
	assert.Equal(t, "10.1.0.5", has(t, p, "four"))

	require.NoError(t, p.Retain(t.Context(), []ipam.Owner{owner("four"), owner("five")}))
	assert.Equal(t, want[3:], stale())

	absent := newStore(t, Options{})
	found, err := absent.Stale(t.Context())
	require.NoError(t, err)
	assert.Empty(t, found)
	assert.NoDirExists(t, absent.dir)
}

// A file system may cut the times of files off, to the second.
func TestStaleToTheSecond(t *testing.T) {
	began := time.Now().Truncate(time.Second)
	for age, want := range map[time.Duration]int{0: 0, 999 * time.Millisecond: 0, 1001 * time.Millisecond: 1} {
		s := newStore(t, Options{})
		put(t, s, "10.1.0.9", "other\r\neth0")
		require.NoError(t, os.Chtimes(filepath.Join(s.dir, "10.1.0.9"), began.Add(-age), began.Add(-age)))
		require.NoError(t, os.WriteFile(s.lockPath(), nil, 0o600))
		s.boot = bootedAt("this", began)
		stale, err := s.Stale(t.Context())
		require.NoError(t, err)
		assert.Len(t, stale, want, age)
	}
}

// What a crash left is no lease outside of the ranges.
func TestUsageOfTorn(t *testing.T) {
	s, p, _ := watched(t, Options{})
	put(t, s, "10.9.0.8", "")
	put(t, s, "10.9.0.9", "other\r\neth0")
	u, err := p.Usage(t.Context())
	require.NoError(t, err)
	require.Len(t, u.Outside, 1)
	assert.Equal(t, "10.9.0.9/32", u.Outside[0].Address.String())
}

func TestDamaged(t *testing.T) { synctest.Test(t, checkDamaged) }

func checkDamaged(t *testing.T) {
	s, _, _ := watched(t, Options{})
	put(t, s, "10.1.0.5", "")
	put(t, s, "10.1.0.6", "\x01")
	put(t, s, "10.1.0.8", strings.Repeat("a", maxRecord+1))
	put(t, s, "FD00::7", "x\r\neth0")
	put(t, s, "README", "")
	putYoung(t, s, "10.1.0.7")
	require.NoError(t, os.Mkdir(filepath.Join(s.dir, "10.1.0.9"), 0o755))
	require.NoError(t, os.Symlink("nowhere", filepath.Join(s.dir, "10.1.0.10")))
	before := names(t, s.dir)
	problems, err := s.Damaged(t.Context())
	require.NoError(t, err)
	got := map[string]string{}
	for _, p := range problems {
		assert.NotEmpty(t, p.Fix)
		assert.Equal(t, s.dir, filepath.Dir(p.Path))
		text := p.Reason
		if p.Address.IsValid() {
			text = "taken: " + text
		}
		got[filepath.Base(p.Path)] = text
		assert.Equal(t, p.Path+": "+p.Reason+"; "+p.Fix, p.String())
	}
	assert.Equal(t, map[string]string{
		"10.1.0.5":  "has no content, as a crash leaves it",
		"10.1.0.6":  "taken: its text is no record of a lease",
		"10.1.0.7":  "taken: has no content, but a writer may be about to fill it: it is less than 10s old",
		"10.1.0.8":  "taken: is not a regular file of a lease's size",
		"10.1.0.9":  "taken: is not a regular file of a lease's size",
		"10.1.0.10": "taken: is not a regular file of a lease's size",
		"FD00::7":   "is named like an address, but not as one is written, and keeps nobody from it",
	}, got)
	assert.Equal(t, before, names(t, s.dir))
	assert.Contains(t, problems[len(problems)-1].Fix, "rename it to fd00::7")

	problems, err = newStore(t, Options{}).Damaged(t.Context())
	require.NoError(t, err)
	assert.Empty(t, problems)
}

func names(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
