package netif

import (
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/cnikit/cnikit/internal/netns"
	"github.com/cnikit/cnikit/internal/testenv"
)

func newNamespace(t *testing.T) *Namespace {
	t.Helper()
	testenv.NetAdmin(t)
	ns, err := netns.New()
	require.NoError(t, err)
	n, err := openIn(ns)
	require.NoError(t, err)
	t.Cleanup(n.Close)
	return n
}

// TestLockIsNotOnTheNamespace lets a process that is merely in the namespace lock it.
func TestLockIsNotOnTheNamespace(t *testing.T) {
	testenv.Root(t)
	n := newNamespace(t)
	foreign, err := os.Open(n.ns.Path())
	require.NoError(t, err)
	defer func() { _ = foreign.Close() }()
	require.NoError(t, unix.Flock(int(foreign.Fd()), unix.LOCK_EX|unix.LOCK_NB))
	unlock, err := n.tryLock(lockDir)
	require.NoError(t, err)
	unlock()
}

func TestLockFile(t *testing.T) {
	n := newNamespace(t)
	t.Run("is private, and gone after unlock", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "locks")
		unlock, err := n.tryLock(dir)
		require.NoError(t, err)
		_, err = n.tryLock(dir)
		require.ErrorIs(t, err, errLockBusy)
		files, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Len(t, files, 1)
		info, err := files[0].Info()
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode())
		info, err = os.Stat(dir)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o700), info.Mode().Perm())
		unlock()
		files, err = os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, files)
	})
	t.Run("left by a process that was killed", func(t *testing.T) {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(pathOf(t, n, dir), nil, 0o600))
		unlock, err := n.tryLock(dir)
		require.NoError(t, err)
		unlock()
	})
	t.Run("removed while waiting", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "lock")
		opened, err := openLockFile(path)
		require.NoError(t, err)
		defer func() { _ = opened.Close() }()
		require.True(t, isAt(opened, path))
		require.NoError(t, os.Remove(path))
		require.False(t, isAt(opened, path))
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		require.False(t, isAt(opened, path), "the lock of another file says nothing")
	})
	t.Run("one holder at a time", func(t *testing.T) {
		var holders atomic.Int32
		var all sync.WaitGroup
		for range 16 {
			all.Go(func() {
				for range 20 {
					unlock, err := n.Lock(t.Context())
					if err != nil || holders.Add(1) != 1 {
						t.Errorf("two holders, or %v", err)
						return
					}
					holders.Add(-1)
					unlock()
				}
			})
		}
		all.Wait()
	})
}

func TestLockRefuses(t *testing.T) {
	n := newNamespace(t)
	for _, test := range []struct {
		rule, words string
		prepare     func(t *testing.T, dir, path string)
	}{
		{"directory that others can write to", "only this user can write to", func(t *testing.T, dir, _ string) {
			require.NoError(t, os.Chmod(dir, 0o777))
		}},
		{"file that others can open", "only this user can open", func(t *testing.T, _, path string) {
			require.NoError(t, os.WriteFile(path, nil, 0o600))
			require.NoError(t, os.Chmod(path, 0o644))
		}},
		{"link", "symbolic links", func(t *testing.T, dir, path string) {
			require.NoError(t, os.Symlink(filepath.Join(dir, "other"), path))
		}},
		{"fifo", "only this user can open", func(t *testing.T, _, path string) {
			require.NoError(t, unix.Mkfifo(path, 0o600))
		}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			dir := t.TempDir()
			test.prepare(t, dir, pathOf(t, n, dir))
			_, err := n.tryLock(dir)
			require.ErrorContains(t, err, test.words)
		})
	}
}

func TestLockWithoutDirectory(t *testing.T) {
	n := newNamespace(t)
	const dir = "/sys/cnikit" // where nobody can make anything
	first, err := n.tryLock(dir)
	require.NoError(t, err)
	_, err = n.tryLock(dir)
	require.ErrorIs(t, err, errLockBusy)
	first()
	second, err := n.tryLock(dir)
	require.NoError(t, err)
	second()
}

func pathOf(t *testing.T, n *Namespace, dir string) string {
	t.Helper()
	path, err := n.lockPath(dir, "")
	require.NoError(t, err)
	return path
}

func TestTryLock(t *testing.T) {
	n := newNamespace(t)
	requireHeld := func(t *testing.T, dir, name string, pid int) {
		t.Helper()
		_, err := n.tryNamed(dir, name)
		var locked *LockedError
		require.ErrorAs(t, err, &locked)
		require.Equal(t, LockedError{Name: name, PID: pid}, *locked)
	}
	t.Run("names are independent, also of Lock", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "locks")
		for _, name := range []string{"agent a", "agent/b"} {
			unlock, err := n.tryNamed(dir, name)
			require.NoError(t, err)
			defer unlock()
			requireHeld(t, dir, name, os.Getpid())
		}
		unlock, err := n.tryLock(dir)
		require.NoError(t, err)
		unlock()
	})
	t.Run("gone after unlock", func(t *testing.T) {
		dir := t.TempDir()
		for range 2 {
			unlock, err := n.tryNamed(dir, "agent")
			require.NoError(t, err)
			unlock()
			files, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Empty(t, files)
		}
	})
	t.Run("of another namespace", func(t *testing.T) {
		dir, other := t.TempDir(), newNamespace(t)
		for _, n := range []*Namespace{n, other} {
			unlock, err := n.tryNamed(dir, "agent")
			require.NoError(t, err)
			defer unlock()
		}
	})
	t.Run("without directory", func(t *testing.T) {
		const dir = "/sys/cnikit" // where nobody can make anything
		for range 2 {
			unlock, err := n.tryNamed(dir, "agent")
			require.NoError(t, err)
			requireHeld(t, dir, "agent", 0)
			unlock()
		}
	})
	t.Run("refuses what is not private", func(t *testing.T) {
		dir := t.TempDir()
		require.NoError(t, os.Chmod(dir, 0o777))
		_, err := n.tryNamed(dir, "agent")
		require.ErrorContains(t, err, `lock "agent": `)
		require.ErrorContains(t, err, "only this user can write to")
	})
}
