package hostlocal

import (
	"context"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/ipam"
)

func TestFormat(t *testing.T) {
	s, p := newPool(t, "10.1.0.0/24", "fd00:1::/64")
	allocate(t, p, "a")
	allocate(t, p, "b")
	assert.Equal(t, map[string]string{
		"10.1.0.2": "a\r\neth0", "fd00:1::2": "a\r\neth0",
		"10.1.0.3": "b\r\neth0", "fd00:1::3": "b\r\neth0",
		"last_reserved_ip.0": "10.1.0.3", "last_reserved_ip.1": "fd00:1::3",
		"lock": "",
	}, snapshot(t, s.dir))
	for name, mode := range map[string]fs.FileMode{
		"": 0o755 | fs.ModeDir, "10.1.0.2": 0o600, "last_reserved_ip.0": 0o600, "lock": 0o750,
	} {
		info, err := os.Stat(filepath.Join(s.dir, name))
		require.NoError(t, err)
		assert.Equal(t, mode, info.Mode(), name)
	}
	scratch, err := os.ReadDir(s.scratch)
	require.NoError(t, err)
	require.Len(t, scratch, 1)
	assert.Equal(t, "index", scratch[0].Name())
	info, err := scratch[0].Info()
	require.NoError(t, err)
	assert.Equal(t, fs.FileMode(0o600), info.Mode())

	require.NoError(t, p.Release(t.Context(), owner("a")))
	require.NoError(t, p.Release(t.Context(), owner("b")))
	assert.Equal(t, map[string]string{"last_reserved_ip.0": "10.1.0.3", "last_reserved_ip.1": "fd00:1::3", "lock": ""}, snapshot(t, s.dir))
}

func TestNewRefuses(t *testing.T) {
	for name, c := range map[string]struct{ dataDir, network, want string }{
		"relative dataDir": {"networks", "net", `dataDir="networks": is not an absolute path`},
		"empty dataDir":    {"", "net", `dataDir="": is not an absolute path; write one such as /var/lib/cni/networks`},
		"empty name":       {"/x", "", `name="": is not a network name`},
		"parent":           {"/x", "..", "network name"},
		"path escape":      {"/x", "../victim", "network name"},
		"nested":           {"/x", "a/b", "network name"},
		"own scratch":      {"/x", ".cnikit", "network name"},
		"leading hyphen":   {"/x", "-a", "network name"},
		"beyond ASCII":     {"/x", "aé", "network name"},
		"trailing newline": {"/x", "a\n", "network name"},
		"too long":         {"/x", strings.Repeat("a", 256), "network name"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := New(c.dataDir, c.network, Options{})
			assert.ErrorContains(t, err, c.want)
		})
	}
	for _, legal := range []string{strings.Repeat("a", 255), "9", "azAZ09_.-"} {
		_, err := New("/x", legal, Options{})
		assert.NoError(t, err)
	}
}

func TestReadingCreatesNothing(t *testing.T) {
	s, p := newPool(t, "10.1.0.0/24")
	ctx := t.Context()
	leases, err := p.Leases(ctx, owner("a"))
	require.NoError(t, err)
	assert.Empty(t, leases)
	require.NoError(t, p.Status(ctx))
	require.NoError(t, p.Release(ctx, owner("a")))
	require.NoError(t, p.Retain(ctx, nil))
	assert.NoDirExists(t, s.dir)
	assert.NoDirExists(t, s.scratch)
}

// What crashes and other programs leave in the directory.
func TestForeignContent(t *testing.T) {
	ctx := t.Context()
	t.Run("torn/an empty or zeroed record is a free address", func(t *testing.T) {
		s, p := newPool(t, "10.1.0.0/29")
		put(t, s, "10.1.0.2", "")
		put(t, s, "10.1.0.3", strings.Repeat("\x00", 32))
		assert.Equal(t, "10.1.0.2/29", allocate(t, p, "a"))
		assert.Equal(t, "10.1.0.3/29", allocate(t, p, "b"))
		assert.Equal(t, "b\r\neth0", snapshot(t, s.dir)["10.1.0.3"])
	})
	t.Run("torn/status counts it as free", func(t *testing.T) {
		s, p := newPool(t, "10.1.0.0/30")
		put(t, s, "10.1.0.2", "")
		require.NoError(t, p.Status(ctx))
	})
	t.Run("torn/requested", func(t *testing.T) {
		s, p := newPool(t, "10.1.0.0/29")
		put(t, s, "10.1.0.5", "")
		_, err := p.Allocate(ctx, owner("a"), ipam.Options{Requested: []netip.Addr{netip.MustParseAddr("10.1.0.5")}})
		require.NoError(t, err)
	})
	t.Run("torn/last reserved", func(t *testing.T) {
		for _, content := range []string{"", "10.1.", "\x00\x00", "10.9.9.9", strings.Repeat("1", 10000)} {
			s, p := newPool(t, "10.1.0.0/29")
			put(t, s, "last_reserved_ip.0", content)
			assert.Equal(t, "10.1.0.2/29", allocate(t, p, "a"), content)
			assert.Equal(t, "10.1.0.2", snapshot(t, s.dir)["last_reserved_ip.0"])
		}
	})
	t.Run("torn/not before a writer must be done with it", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s, p := newPool(t, "10.1.0.0/30")
			putYoung(t, s, "10.1.0.2")
			require.ErrorIs(t, p.Status(t.Context()), ipam.ErrExhausted)
			_, err := p.Allocate(t.Context(), owner("a"), ipam.Options{})
			require.ErrorIs(t, err, ipam.ErrExhausted)
			require.NoError(t, p.Retain(t.Context(), nil))
			assert.Contains(t, snapshot(t, s.dir), "10.1.0.2")
		})
	})
	t.Run("gc/clears torn and damaged records", func(t *testing.T) {
		s, p := newPool(t, "10.1.0.0/24")
		put(t, s, "10.1.0.2", "")
		put(t, s, "10.1.0.3", "\x01\x02")
		put(t, s, "10.1.0.4", "a\r\neth0")
		put(t, s, "10.1.0.5", "a\r\neth0\x00\x00")
		require.NoError(t, p.Retain(ctx, []ipam.Owner{owner("a")}))
		assert.Equal(t, map[string]string{"10.1.0.4": "a\r\neth0", "lock": ""}, snapshot(t, s.dir))
	})
	t.Run("damaged/stays taken until then", func(t *testing.T) {
		s, p := newPool(t, "10.1.0.0/30")
		put(t, s, "10.1.0.2", "\x01\x02")
		require.ErrorIs(t, p.Status(ctx), ipam.ErrExhausted)
		_, err := p.Allocate(ctx, owner("a"), ipam.Options{})
		require.ErrorIs(t, err, ipam.ErrExhausted)
	})
	t.Run("legacy/a record of the container only", func(t *testing.T) {
		for _, content := range []string{"a", "a\r\n", " a\n"} {
			s, p := newPool(t, "10.1.0.0/24")
			put(t, s, "10.1.0.9", content)
			leases, err := p.Leases(ctx, owner("a"))
			require.NoError(t, err)
			assert.Len(t, leases, 1)
			require.NoError(t, p.Retain(ctx, []ipam.Owner{owner("a")}))
			require.NoError(t, p.Release(ctx, owner("a")))
			assert.NotContains(t, snapshot(t, s.dir), "10.1.0.9")
		}
	})
	t.Run("foreign/files that are no leases are left alone", func(t *testing.T) {
		s, p := newPool(t, "10.1.0.0/24", "fd00::/64")
		foreign := map[string]string{
			"README": "a\r\neth0", "10.1.0": "a\r\neth0", "fe80::1%eth0": "a\r\neth0", "FD00::7": "a\r\neth0",
			"::ffff:10.1.0.7": "a\r\neth0", "last_reserved_ip.7": "a", "lock": "a",
		}
		for name, content := range foreign {
			put(t, s, name, content)
		}
		leases, err := p.Leases(ctx, owner("a"))
		require.NoError(t, err)
		assert.Empty(t, leases)
		require.NoError(t, p.Release(ctx, owner("a")))
		require.NoError(t, p.Retain(ctx, nil))
		assert.Equal(t, foreign, snapshot(t, s.dir))
	})
	t.Run("foreign/what cannot be a record is a taken address", func(t *testing.T) {
		s, p := newPool(t, "10.1.0.0/29")
		require.NoError(t, os.MkdirAll(filepath.Join(s.dir, "10.1.0.2"), 0o755))
		require.NoError(t, os.Symlink("10.1.0.5", filepath.Join(s.dir, "10.1.0.3")))
		put(t, s, "10.1.0.4", strings.Repeat("a", maxRecord+1))
		require.NoError(t, p.Status(ctx))
		assert.Equal(t, "10.1.0.5/29", allocate(t, p, "a"))
		leases, err := p.Leases(ctx, owner("a"))
		require.NoError(t, err)
		assert.Len(t, leases, 1, "links are not followed")
		require.NoError(t, p.Release(ctx, owner("a")), "del/tolerates it")
		err = p.Retain(ctx, nil)
		for _, name := range []string{"10.1.0.2", "10.1.0.3", "10.1.0.4"} {
			require.ErrorContains(t, err, name, "gc/reports it")
		}
		require.ErrorContains(t, err, "is not a regular file")
	})
	t.Run("crash/the prepared file is cleared away", func(t *testing.T) {
		s, p := newPool(t, "10.1.0.0/24")
		allocate(t, p, "a")
		prepared := filepath.Join(s.scratch, "prepared")
		for name, call := range map[string]func() error{
			"del of an owner without leases": func() error { return p.Release(ctx, owner("b")) },
			"gc without stale leases":        func() error { return p.Retain(ctx, []ipam.Owner{owner("a")}) },
		} {
			require.NoError(t, os.WriteFile(prepared, []byte("b\r\neth0"), 0o600))
			require.NoError(t, call(), name)
			require.NoFileExists(t, prepared, name)
		}
		assert.Equal(t, "a\r\neth0", snapshot(t, s.dir)["10.1.0.2"])
	})
	t.Run("crash/the prepared file may be a lease in force", func(t *testing.T) {
		s, p := newPool(t, "10.1.0.0/24")
		allocate(t, p, "a")
		require.NoError(t, os.Link(filepath.Join(s.dir, "10.1.0.2"), filepath.Join(s.scratch, "prepared")))
		allocate(t, p, "b")
		assert.Equal(t, "a\r\neth0", snapshot(t, s.dir)["10.1.0.2"])
		assert.Equal(t, "b\r\neth0", snapshot(t, s.dir)["10.1.0.3"])
	})
}

// A record may be as long as the names of an attachment, which come as environment
// variables: whoever is given an address can give it back.
func TestLongNames(t *testing.T) {
	s, p := newPool(t, "10.1.0.0/24")
	long := strings.Repeat("a", 128<<10) // MAX_ARG_STRLEN of Linux
	assert.Equal(t, "10.1.0.2/24", allocate(t, p, long))
	assert.Equal(t, "10.1.0.2/24", allocate(t, p, long))
	require.NoError(t, p.Release(t.Context(), owner(long)))
	assertNoLease(t, s)

	_, err := p.Allocate(t.Context(), owner(strings.Repeat("a", 1<<20)), ipam.Options{})
	require.ErrorIs(t, err, ipam.ErrInvalidOwner)
	require.ErrorContains(t, err, "a record has room for 262144 bytes, not for 1048582")
	assert.Less(t, len(err.Error()), 500)
	assertNoLease(t, s)
}

// On a disk that does not tell whether a file is there, no address is taken for taken:
// the next one, and all of a large range, would be too.
func TestBlind(t *testing.T) {
	s, _ := newPool(t)
	p := poolOver(t, s, "fd00::/64")
	allocate(t, p, "a")
	s.sys = blind{}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := p.Allocate(ctx, owner("b"), ipam.Options{})
	require.ErrorIs(t, err, syscall.EIO)
	require.ErrorIs(t, p.Status(ctx), syscall.EIO)
	require.ErrorIs(t, p.Release(ctx, owner("a")), syscall.EIO)
	s.sys = host{}
	assert.Equal(t, map[string]string{"fd00::2": "a\r\neth0", "last_reserved_ip.0": "fd00::2", "lock": ""}, snapshot(t, s.dir))
}

// blind is a system that fails to look at address files.
type blind struct{ host }

func (b blind) Lstat(path string) (fs.FileInfo, error) {
	if _, ok := addrOf(filepath.Base(path)); ok {
		return nil, &fs.PathError{Op: "lstat", Path: path, Err: syscall.EIO}
	}
	return b.host.Lstat(path)
}

// A release is the owner's alone.
func TestReleaseOfAnother(t *testing.T) {
	s, p := newPool(t, "10.1.0.0/24")
	allocate(t, p, "a")
	before := snapshot(t, s.dir)
	require.NoError(t, s.Update(t.Context(), func(tx ipam.Tx) error {
		for _, o := range []ipam.Owner{owner("b"), {ContainerID: "a", IfName: "net1"}, {ContainerID: "a"}, {}} {
			require.NoError(t, tx.Release(netip.MustParseAddr("10.1.0.2"), o))
		}
		return tx.Release(netip.MustParseAddr("10.1.0.9"), owner("a"))
	}))
	assert.Equal(t, before, snapshot(t, s.dir))
}

func TestLock(t *testing.T) {
	inside := func(t *testing.T, run func(context.Context, chan<- struct{}) error, then func()) {
		t.Helper()
		entered, done := make(chan struct{}), make(chan error)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { done <- run(ctx, entered) }()
		<-entered
		then()
		cancel()
		require.NoError(t, <-done)
	}
	s, _ := newPool(t, "10.1.0.0/24")
	hold := func(ctx context.Context, entered chan<- struct{}) {
		close(entered)
		<-ctx.Done()
	}
	update := func(ctx context.Context, entered chan<- struct{}) error {
		return s.Update(ctx, func(ipam.Tx) error { hold(ctx, entered); return nil })
	}
	view := func(ctx context.Context, entered chan<- struct{}) error {
		return s.View(ctx, func(ipam.ReadTx) error { hold(ctx, entered); return nil })
	}
	short := func(t *testing.T) context.Context {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		t.Cleanup(cancel)
		return ctx
	}
	nop, nopRead := func(ipam.Tx) error { return nil }, func(ipam.ReadTx) error { return nil }

	t.Run("lock/a writer keeps out writers and readers, until their context ends", func(t *testing.T) {
		inside(t, update, func() {
			err := s.Update(short(t), nop)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			assert.ErrorContains(t, err, "wait for lock "+s.lockPath())
			require.ErrorIs(t, s.View(short(t), nopRead), context.DeadlineExceeded)
		})
	})
	t.Run("lock/readers share it and keep out writers", func(t *testing.T) {
		inside(t, view, func() {
			require.NoError(t, s.View(t.Context(), nopRead))
			require.ErrorIs(t, s.Update(short(t), nop), context.DeadlineExceeded)
		})
	})
	t.Run("lock/it is free again", func(t *testing.T) { require.NoError(t, s.Update(t.Context(), nop)) })
	t.Run("lock/a directory replaced meanwhile has a lock of its own", func(t *testing.T) {
		inside(t, update, func() {
			require.NoError(t, os.RemoveAll(s.dir))
			require.NoError(t, s.Update(t.Context(), nop))
		})
	})
}

// A writer that ignores the lock cannot take the same address.
func TestExclusiveAgainstForeignWriters(t *testing.T) {
	const n = 300
	s, _ := newPool(t)
	require.NoError(t, s.makeDir())
	first := netip.MustParseAddr("10.1.0.0")
	theirs := map[netip.Addr]bool{}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for a, i := first, 0; i < n; a, i = a.Next(), i+1 {
			f, err := os.OpenFile(filepath.Join(s.dir, a.String()), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
			if err == nil {
				theirs[a] = true
				_, _ = f.WriteString("them\r\neth0")
				_ = f.Close()
			}
		}
	}()
	ours := map[netip.Addr]bool{}
	require.NoError(t, s.Update(t.Context(), func(tx ipam.Tx) error {
		for a, i := first, 0; i < n; a, i = a.Next(), i+1 {
			ok, err := tx.Reserve(a, owner("us"))
			require.NoError(t, err)
			if ok {
				ours[a] = true
			}
		}
		return nil
	}))
	<-done
	for a := range ours {
		assert.False(t, theirs[a], "%s was given twice", a)
	}
	assert.Len(t, snapshot(t, s.dir), n+1)
	assert.Equal(t, n, len(ours)+len(theirs))
}

func newPool(t *testing.T, subnets ...string) (*Store, *ipam.Pool) {
	t.Helper()
	s, err := New(filepath.Join(t.TempDir(), "networks"), "net", Options{})
	require.NoError(t, err)
	return s, poolOver(t, s, subnets...)
}

func poolOver(t *testing.T, s ipam.Store, subnets ...string) *ipam.Pool {
	t.Helper()
	var sets []ipam.RangeSet
	for _, subnet := range subnets {
		sets = append(sets, ipam.RangeSet{{Subnet: netip.MustParsePrefix(subnet)}})
	}
	p, err := ipam.NewPool(s, ipam.PoolOptions{}, sets...)
	require.NoError(t, err)
	return p
}

func owner(id string) ipam.Owner { return ipam.Owner{ContainerID: id, IfName: "eth0"} }

func allocate(t *testing.T, p *ipam.Pool, id string) string {
	t.Helper()
	leases, err := p.Allocate(t.Context(), owner(id), ipam.Options{})
	require.NoError(t, err)
	return leases[0].Address.String()
}

// snapshot returns the files of a directory with their content.
func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	files := map[string]string{}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		require.NoError(t, err)
		files[e.Name()] = string(data)
	}
	return files
}

func assertNoLease(t *testing.T, s *Store) {
	t.Helper()
	entries, err := os.ReadDir(s.dir)
	if !os.IsNotExist(err) {
		require.NoError(t, err)
	}
	for _, e := range entries {
		_, isLease := addrOf(e.Name())
		assert.False(t, isLease, e.Name())
	}
	assert.NoFileExists(t, filepath.Join(s.scratch, "prepared"))
}
