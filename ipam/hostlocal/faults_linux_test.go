package hostlocal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/internal/testenv"
	"github.com/cnikit/cnikit/ipam"
)

// A read-only file system gives a clear error and changes nothing.
func TestReadOnly(t *testing.T) {
	testenv.Root(t)
	onTmpfs(t, "size=1m", func(dir string) {
		s, err := New(dir, "net", Options{})
		require.NoError(t, err)
		p := poolOver(t, s, "10.1.0.0/24")
		allocate(t, p, "a")
		before := snapshot(t, s.dir)
		require.NoError(t, s.Writable())
		require.NoError(t, syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
		require.ErrorIs(t, s.Writable(), syscall.EROFS)

		_, err = p.Allocate(t.Context(), owner("b"), ipam.Options{})
		require.ErrorIs(t, err, syscall.EROFS, "add")
		assert.ErrorContains(t, err, "reserve 10.1.0.3")
		require.ErrorIs(t, p.Release(t.Context(), owner("a")), syscall.EROFS, "del")
		require.ErrorIs(t, p.Retain(t.Context(), nil), syscall.EROFS, "gc")
		require.NoError(t, p.Release(t.Context(), owner("unknown")), "del/unknown")
		leases, err := p.Leases(t.Context(), owner("a"))
		require.NoError(t, err, "check")
		assert.Len(t, leases, 1)
		assert.Equal(t, before, snapshot(t, s.dir))

		s.boot = bootedAt("another", time.Now()) // the index is not valid, and cannot be made anew
		require.NoError(t, p.Release(t.Context(), owner("unknown")), "del/unknown, without index")
		leases, err = p.Leases(t.Context(), owner("a"))
		require.NoError(t, err, "check, without index")
		assert.Len(t, leases, 1)
		require.NoError(t, p.Status(t.Context()))
		_, err = p.Allocate(t.Context(), owner("b"), ipam.Options{})
		require.ErrorIs(t, err, syscall.EROFS, "add, without index")
		assert.Equal(t, before, snapshot(t, s.dir))

		fresh, err := New(dir, "other", Options{})
		require.NoError(t, err)
		_, err = poolOver(t, fresh, "10.1.0.0/24").Allocate(t.Context(), owner("b"), ipam.Options{})
		require.ErrorIs(t, err, syscall.EROFS)
		assert.NoDirExists(t, fresh.dir)
		require.ErrorIs(t, fresh.Writable(), syscall.EROFS, "of the parent")
	})
	none, err := New(filepath.Join(t.TempDir(), "not", "there"), "net", Options{})
	require.NoError(t, err)
	require.NoError(t, none.Writable(), "it can be made")
}

// What keeps an allocation from writing beside the leases, or from making the directory, is
// known before it is tried.
func TestWritable(t *testing.T) {
	testenv.Root(t)
	onTmpfs(t, "size=1m", func(dir string) {
		s, err := New(dir, "net", Options{})
		require.NoError(t, err)
		p := poolOver(t, s, "10.1.0.0/24")
		allocate(t, p, "a")
		require.NoError(t, syscall.Mount("tmpfs", s.scratch, "tmpfs", syscall.MS_RDONLY, ""))
		require.ErrorIs(t, s.Writable(), syscall.EROFS)
		require.ErrorContains(t, s.Writable(), s.scratch)
		_, err = p.Allocate(t.Context(), owner("b"), ipam.Options{})
		require.ErrorIs(t, err, syscall.EROFS)
	})
	for name, place := range map[string]func(path string) error{
		"a link to nowhere": func(path string) error { return os.Symlink("nowhere/at/all", path) },
		"a file":            func(path string) error { return os.WriteFile(path, nil, 0o600) },
	} {
		path := filepath.Join(t.TempDir(), "networks")
		require.NoError(t, place(path))
		s, err := New(path, "net", Options{})
		require.NoError(t, err)
		require.ErrorContains(t, s.Writable(), path, name)
		_, err = poolOver(t, s, "10.1.0.0/24").Allocate(t.Context(), owner("a"), ipam.Options{})
		require.ErrorContains(t, err, path, name)
	}
}

// What is no file in the place of one of ours is refused, or replaced; nobody waits for
// the other end of a pipe.
func TestNoFiles(t *testing.T) {
	makers := map[string]func(path string) error{
		"a pipe":            func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a directory":       func(path string) error { return os.Mkdir(path, 0o755) },
		"a link to nowhere": func(path string) error { return os.Symlink("nowhere/at/all", path) },
		"a link to itself":  func(path string) error { return os.Symlink(path, path) },
		"a link to a pipe": func(path string) error {
			return errors.Join(syscall.Mkfifo(path+".pipe", 0o600), os.Symlink(path+".pipe", path))
		},
		"a link to something": func(path string) error {
			return errors.Join(os.WriteFile(path+".file", []byte("x"), 0o600), os.Symlink(path+".file", path))
		},
	}
	for name, place := range makers {
		t.Run(name, func(t *testing.T) {
			for _, what := range []string{"index", "index.new", "prepared", lastName(0)} {
				s, p := newPool(t, "10.1.0.0/24")
				allocate(t, p, "a")
				path := filepath.Join(s.scratch, what)
				if what == lastName(0) {
					path = filepath.Join(s.dir, what)
				}
				_ = os.Remove(path)
				require.NoError(t, place(path))
				require.NoError(t, p.Status(t.Context()), what)
				require.NoError(t, p.Release(t.Context(), owner("unknown")), what)
				if _, err := p.Allocate(t.Context(), owner("b"), ipam.Options{}); err != nil {
					require.Equal(t, lastName(0)+", a directory", what+", "+name)
					require.ErrorContains(t, err, path)
				}
				require.NoError(t, p.Release(t.Context(), owner("a")), what)
				require.NoError(t, p.Release(t.Context(), owner("b")), what)
				assertNoLease(t, s)
				requireTrue(t, s)
			}
		})
	}
	for _, name := range []string{"a pipe", "a directory", "a link to a pipe"} {
		t.Run(name+" for a lock", func(t *testing.T) {
			s, p := newPool(t, "10.1.0.0/24")
			require.NoError(t, s.makeDir())
			require.NoError(t, makers[name](s.lockPath()))
			_, err := p.Allocate(t.Context(), owner("a"), ipam.Options{})
			for _, err := range []error{err, p.Release(t.Context(), owner("a")), p.Status(t.Context()), p.Retain(t.Context(), nil)} {
				require.ErrorContains(t, err, s.lockPath()+" is not a regular file; remove it")
			}
		})
	}
}

// A full file system fails an allocation wherever it strikes, leaves no lease
// behind, and does not keep anybody from releasing.
func TestFull(t *testing.T) {
	testenv.Root(t)
	var succeeded bool
	for inodes := 8; inodes < 24; inodes++ {
		onTmpfs(t, fmt.Sprintf("nr_inodes=%d", inodes), func(dir string) {
			s, err := New(dir, "net", Options{})
			require.NoError(t, err)
			p := poolOver(t, s, "10.1.0.0/24", "fd00::/64")
			if _, err := p.Allocate(t.Context(), owner("a"), ipam.Options{}); err != nil {
				require.ErrorIs(t, err, syscall.ENOSPC)
				assertNoLease(t, s)
				return
			}
			before := snapshot(t, s.dir)
			if _, err := p.Allocate(t.Context(), owner("b"), ipam.Options{}); err != nil {
				require.ErrorIs(t, err, syscall.ENOSPC)
				after := snapshot(t, s.dir)
				delete(before, lastName(0)) // may have moved on
				delete(after, lastName(0))
				assert.Equal(t, before, after)
			} else {
				succeeded = true
			}
			require.NoError(t, p.Release(t.Context(), owner("a")))
			require.NoError(t, p.Release(t.Context(), owner("b")))
			assertNoLease(t, s)
		})
	}
	assert.True(t, succeeded, "the largest file system has room for both")

	onTmpfs(t, "size=16k", func(dir string) {
		s, err := New(dir, "net", Options{})
		require.NoError(t, err)
		p := poolOver(t, s, "10.1.0.0/24")
		allocate(t, p, "a")
		fill(t, filepath.Join(dir, "filler"))
		_, err = p.Allocate(t.Context(), owner("b"), ipam.Options{})
		require.ErrorIs(t, err, syscall.ENOSPC, "no data block left")
		require.NoError(t, p.Release(t.Context(), owner("a")))
		assertNoLease(t, s)
	})
}

func fill(t *testing.T, path string) {
	t.Helper()
	err := os.WriteFile(path, make([]byte, 1<<20), 0o600)
	require.ErrorIs(t, err, syscall.ENOSPC)
}

// onTmpfs calls fn with a directory that is a file system of its own, on a
// thread in a mount namespace of its own; both end with it.
func onTmpfs(t *testing.T, options string, fn func(dir string)) {
	t.Helper()
	dir := t.TempDir()
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		assert.NoError(t, syscall.Unshare(syscall.CLONE_NEWNS|syscall.CLONE_FS))
		assert.NoError(t, syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""))
		if !assert.NoError(t, syscall.Mount("tmpfs", dir, "tmpfs", 0, options)) {
			return
		}
		fn(dir)
	}()
	<-done
}

// Only the owner reads the index, whatever the umask; a directory that is not there is
// made as the reference plugin makes it.
func TestUmask(t *testing.T) {
	for umask, want := range map[int]map[string]fs.FileMode{
		0:     {"net": 0o755, "net/10.1.0.2": 0o600, ".cnikit/net": 0o700, ".cnikit/net/index": 0o600},
		0o077: {"net": 0o700, "net/10.1.0.2": 0o600, ".cnikit/net": 0o700, ".cnikit/net/index": 0o600},
	} {
		old := syscall.Umask(umask)
		s := newStore(t, Options{})
		p := poolOver(t, s, "10.1.0.0/28")
		allocate(t, p, "one")
		syscall.Umask(old)
		for name, mode := range want {
			info, err := os.Stat(filepath.Join(filepath.Dir(s.dir), name))
			require.NoError(t, err)
			assert.Equal(t, mode, info.Mode().Perm(), "%s with umask %o", name, umask)
		}
	}
}

// A file system that gets full in the middle of the index costs the index, no lease.
func TestFullForTheIndex(t *testing.T) {
	testenv.Root(t)
	var without, with bool
	for blocks := 3; blocks < 12; blocks++ {
		onTmpfs(t, fmt.Sprintf("size=%dk", 4*blocks), func(dir string) {
			s, err := New(dir, "net", Options{})
			require.NoError(t, err)
			p := poolOver(t, s, "10.1.0.0/24")
			if _, err := p.Allocate(t.Context(), owner("a"), ipam.Options{}); err != nil {
				require.ErrorIs(t, err, syscall.ENOSPC)
				return
			}
			requireTrue(t, s)
			assert.NotEmpty(t, has(t, p, "a"))
			assert.NoFileExists(t, s.indexPath()+".new")
			if _, err := os.Stat(s.indexPath()); err == nil {
				with = true
			} else {
				without = true
			}
			require.NoError(t, p.Release(t.Context(), owner("a")))
			assertNoLease(t, s)
		})
	}
	assert.True(t, without && with)
}
