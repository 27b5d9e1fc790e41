package hostlocal

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/ipam"
)

// A directory may be removed or replaced while a store is in use, and lie behind links.
func TestDirectoryMoves(t *testing.T) {
	t.Run("removed", func(t *testing.T) {
		s, p, eyes := watched(t, Options{})
		require.NoError(t, os.RemoveAll(filepath.Dir(s.dir)))
		assert.Empty(t, has(t, p, "one"))
		assert.NoDirExists(t, s.dir)
		assert.Equal(t, "10.1.0.2/28", allocate(t, p, "four"))
		requireKept(t, p, eyes)
	})
	t.Run("removed in the middle of a call", func(t *testing.T) {
		s, p, _ := watched(t, Options{})
		err := s.Update(t.Context(), func(tx ipam.Tx) error {
			require.NoError(t, os.RemoveAll(s.dir))
			_, err := tx.Reserve(netip.MustParseAddr("10.1.0.9"), owner("four"))
			return err
		})
		require.ErrorIs(t, err, os.ErrNotExist)
		assert.Equal(t, "10.1.0.2/28", allocate(t, p, "five"))
		requireTrue(t, s)
	})
	t.Run("replaced by a copy of an earlier state, its time included", func(t *testing.T) {
		s, p, _ := watched(t, Options{})
		info, err := os.Stat(s.dir)
		require.NoError(t, err)
		require.NoError(t, os.CopyFS(s.dir+".copy", os.DirFS(s.dir)))
		require.NoError(t, os.Chtimes(s.dir+".copy", time.Time{}, info.ModTime()))
		allocate(t, p, "four")
		require.NoError(t, p.Release(t.Context(), owner("one")))
		require.NoError(t, os.RemoveAll(s.dir))
		require.NoError(t, os.Rename(s.dir+".copy", s.dir))
		assert.Equal(t, "10.1.0.2", has(t, p, "one"))
		assert.Empty(t, has(t, p, "four"))
	})
	t.Run("behind a link", func(t *testing.T) {
		target, link := filepath.Join(fastDir(t), "real"), filepath.Join(fastDir(t), "link")
		require.NoError(t, os.Mkdir(target, 0o755))
		require.NoError(t, os.Symlink(target, link))
		s, err := New(link, "net", Options{})
		require.NoError(t, err)
		eyes := newProbe()
		s.sys = eyes
		p := poolOver(t, s, "10.1.0.0/28")
		allocate(t, p, "one")
		requireKept(t, p, eyes)
		direct, err := New(target, "net", Options{})
		require.NoError(t, err)
		assert.Equal(t, "10.1.0.2", has(t, poolOver(t, direct, "10.1.0.0/28"), "one"))
	})
	t.Run("on another file system than the scratch directory", func(t *testing.T) {
		elsewhere := fastDir(t)
		s := newStore(t, Options{})
		eyes := newProbe()
		s.sys = eyes
		require.NoError(t, os.MkdirAll(filepath.Dir(s.dir), 0o755))
		require.NoError(t, os.Symlink(elsewhere, s.dir))
		p := poolOver(t, s, "10.1.0.0/28", "fd00::/124")
		allocate(t, p, "one")
		put(t, s, "10.1.0.3", "")
		assert.Equal(t, "10.1.0.3/28", allocate(t, p, "two"))
		requireTrue(t, s)
		eyes.reset()
		leases, err := p.Leases(t.Context(), owner("unknown"))
		require.NoError(t, err)
		require.Empty(t, leases)
		require.Zero(t, eyes.calls["list"])
		require.NoError(t, p.Release(t.Context(), owner("one")))
		assert.Equal(t, []string{"10.1.0.3", "fd00::3", "last_reserved_ip.0", "last_reserved_ip.1", "lock"}, names(t, elsewhere))
		assert.Equal(t, []string{"index"}, names(t, s.scratch))
	})
	t.Run("with the longest name", func(t *testing.T) {
		s, err := New(fastDir(t), strings.Repeat("n", 255), Options{})
		require.NoError(t, err)
		p := poolOver(t, s, "10.1.0.0/28")
		allocate(t, p, "one")
		assert.Equal(t, "10.1.0.2", has(t, p, "one"))
		assert.FileExists(t, s.indexPath())
	})
}

// Names of files are as the reference plugin writes them, which knows net.IP.
func TestFileNames(t *testing.T) {
	for _, text := range []string{
		"10.1.0.2", "::", "::1", "fd00::", "fd00::1:0:0:1", "fd00:0:0:1::1", "2001:db8:0:0:1:0:0:1", "1:2:3:4:5:6:7:8", "fe80::", "::1.2.3.4",
	} {
		addr := netip.MustParseAddr(text)
		assert.Equal(t, net.ParseIP(text).String(), addr.String())
		got, ok := addrOf(addr.String())
		assert.True(t, ok)
		assert.Equal(t, addr, got)
		assert.Equal(t, addr, numberOf(addr).addr())
	}
}

// A node that has changed over from host-local has no index. The first call that changes
// anything makes it, also a DEL: the others are not slow until somebody attaches a container.
func TestFirstReleaseMakesTheIndex(t *testing.T) {
	s, p := newPool(t, "10.1.0.0/24")
	eyes := newProbe()
	s.sys = eyes
	for _, id := range []string{"2", "3", "4"} {
		put(t, s, "10.1.0."+id, id+"\r\neth0")
	}
	put(t, s, lockName, "")
	require.NoError(t, p.Release(t.Context(), owner("unknown")))
	require.NoDirExists(t, s.scratch, "who finds nothing leaves nothing")
	require.NoError(t, p.Release(t.Context(), owner("2")))
	require.FileExists(t, s.indexPath())
	requireTrue(t, s)
	eyes.reset()
	require.NoError(t, p.Release(t.Context(), owner("3")))
	require.Zero(t, eyes.calls["list"])
	requireTrue(t, s)

	eyes.noTouch = true // the directory of another user
	require.NoError(t, os.RemoveAll(s.scratch))
	eyes.reset()
	require.NoError(t, p.Release(t.Context(), owner("4")))
	require.Equal(t, 1, eyes.calls["list"], "nobody looks twice for an index that cannot be")
}
