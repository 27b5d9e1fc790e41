package netns_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/cnikit/cnikit/internal/netns"
	"github.com/cnikit/cnikit/internal/testenv"
)

func newNS(t *testing.T) *netns.NS {
	t.Helper()
	ns, err := netns.New()
	require.NoError(t, err)
	t.Cleanup(func() { _ = ns.Close() })
	return ns
}

// inside returns the inode of the network namespace that fn's thread is in.
func inside(t *testing.T, ns *netns.NS) uint64 {
	t.Helper()
	var inode uint64
	require.NoError(t, ns.Do(func() (err error) {
		inode, err = threadInode()
		return err
	}))
	return inode
}

func threadInode() (uint64, error) {
	var st unix.Stat_t
	err := unix.Stat("/proc/thread-self/ns/net", &st)
	return st.Ino, err
}

func TestOpenRefuses(t *testing.T) {
	plain := filepath.Join(t.TempDir(), "plain")
	require.NoError(t, os.WriteFile(plain, nil, 0o600))
	fifo := filepath.Join(t.TempDir(), "fifo")
	require.NoError(t, unix.Mkfifo(fifo, 0o600))
	for name, c := range map[string]struct {
		path string
		want error
	}{
		"absent":             {filepath.Join(t.TempDir(), "none"), fs.ErrNotExist},
		"plain file":         {plain, netns.ErrNotNetNS},
		"directory":          {t.TempDir(), netns.ErrNotNetNS},
		"fifo without hang":  {fifo, netns.ErrNotNetNS},
		"mount namespace":    {"/proc/self/ns/mnt", netns.ErrNotNetNS},
		"user namespace":     {"/proc/self/ns/user", netns.ErrNotNetNS},
		"empty path":         {"", fs.ErrNotExist},
		"file of procfs":     {"/proc/self/status", netns.ErrNotNetNS},
		"symlink to nowhere": {danglingLink(t), fs.ErrNotExist},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := netns.Open(c.path)
			require.ErrorIs(t, err, c.want)
			assert.ErrorContains(t, err, c.path)
		})
	}
}

func danglingLink(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink("/nowhere", path))
	return path
}

func TestCurrentIsTheProcessNamespace(t *testing.T) {
	current, err := netns.Current()
	require.NoError(t, err)
	defer current.Close()
	byPath, err := netns.Open("/proc/self/ns/net")
	require.NoError(t, err)
	defer byPath.Close()
	assert.True(t, current.Equal(byPath))
	assert.Equal(t, "/proc/self/ns/net", byPath.Path())
	link, err := os.Readlink("/proc/self/ns/net")
	require.NoError(t, err)
	assert.Equal(t, fmt.Sprintf("net:[%d]", current.Inode()), link)
}

func TestNew(t *testing.T) {
	testenv.NetAdmin(t)
	a, b := newNS(t), newNS(t)
	current, err := netns.Current()
	require.NoError(t, err)
	defer current.Close()

	assert.False(t, a.Equal(b))
	assert.False(t, a.Equal(current))
	assert.False(t, a.Equal(nil))
	assert.Equal(t, a.Inode(), inside(t, a))
	assert.Equal(t, b.Inode(), inside(t, b))

	t.Run("path can be opened by other processes", func(t *testing.T) {
		out, err := exec.Command("stat", "-L", "-c", "%i", a.Path()).CombinedOutput()
		require.NoError(t, err, "%s", out)
		assert.Equal(t, fmt.Sprint(a.Inode()), strings.TrimSpace(string(out)))
	})
	t.Run("handle by path outlives the first", func(t *testing.T) {
		again, err := netns.Open(a.Path())
		require.NoError(t, err)
		defer again.Close()
		assert.True(t, again.Equal(a))
		require.NoError(t, a.Close())
		assert.Equal(t, a.Inode(), inside(t, again))
	})
	t.Run("closed handle", func(t *testing.T) {
		require.NoError(t, b.Close())
		require.ErrorIs(t, b.Close(), fs.ErrClosed)
		require.Error(t, b.Do(func() error { t.Error("ran with a closed handle"); return nil }))
		assert.Equal(t, -1, b.Fd())
		assert.True(t, b.Equal(b))
	})
}

func TestDo(t *testing.T) {
	testenv.NetAdmin(t)
	ns := newNS(t)
	home, err := threadInode()
	require.NoError(t, err)

	t.Run("only loopback is there", func(t *testing.T) {
		require.NoError(t, ns.Do(func() error {
			links, err := net.Interfaces()
			if err == nil && (len(links) != 1 || links[0].Name != "lo") {
				err = fmt.Errorf("unexpected links: %v", links)
			}
			return err
		}))
	})
	t.Run("error of the function is returned", func(t *testing.T) {
		want := errors.New("mine")
		assert.Equal(t, want, ns.Do(func() error { return want }))
	})
	t.Run("child processes inherit the namespace", func(t *testing.T) {
		var out []byte
		require.NoError(t, ns.Do(func() (err error) {
			out, err = exec.Command("readlink", "/proc/self/ns/net").Output()
			return err
		}))
		assert.Equal(t, fmt.Sprintf("net:[%d]", ns.Inode()), strings.TrimSpace(string(out)))
	})
	t.Run("nested calls return to the outer one", func(t *testing.T) {
		other := newNS(t)
		require.NoError(t, ns.Do(func() error {
			if err := other.Do(func() error { return wantInode(other.Inode()) }); err != nil {
				return err
			}
			return wantInode(ns.Inode())
		}))
	})
	t.Run("panic goes on in the caller", func(t *testing.T) {
		defer func() { assert.Contains(t, fmt.Sprint(recover()), "boom") }()
		_ = ns.Do(func() error { panic("boom") })
		t.Error("no panic")
	})
	t.Run("goexit goes on in the caller", func(t *testing.T) {
		done := make(chan bool)
		go func() {
			defer close(done)
			_ = ns.Do(func() error { runtime.Goexit(); return nil }) // as FailNow does
			done <- true
		}()
		assert.False(t, <-done, "the caller went on")
	})
	require.NoError(t, wantInode(home))
}

func wantInode(want uint64) error {
	got, err := threadInode()
	if err == nil && got != want {
		err = fmt.Errorf("thread is in namespace %d, not %d", got, want)
	}
	return err
}

// Many goroutines in many namespaces: each sees its own, and no thread is left
// behind in one.
func TestDoInParallel(t *testing.T) {
	testenv.NetAdmin(t)
	home, err := threadInode()
	require.NoError(t, err)
	spaces := make([]*netns.NS, 8)
	for i := range spaces {
		spaces[i] = newNS(t)
	}
	var wg sync.WaitGroup
	for i := range 400 {
		wg.Go(func() {
			ns := spaces[i%len(spaces)]
			assert.NoError(t, ns.Do(func() error { return wantInode(ns.Inode()) }))
			assert.NoError(t, wantInode(home))
		})
	}
	wg.Wait()
	noThreadStrays(t, home)
}

// noThreadStrays fails the test when a thread stays in another namespace. Discarded
// threads end a moment later.
func noThreadStrays(t *testing.T, home uint64) {
	t.Helper()
	assert.Eventually(t, func() bool {
		threads, err := filepath.Glob("/proc/self/task/*/ns/net")
		require.NoError(t, err)
		require.NotEmpty(t, threads)
		return !slices.ContainsFunc(threads, func(thread string) bool {
			link, err := os.Readlink(thread)
			return err == nil && link != fmt.Sprintf("net:[%d]", home)
		})
	}, time.Minute, 5*time.Millisecond, "a thread that serves others is in another namespace")
}

// A thread that entered a namespace and cannot come back must not serve others.
// "unshare -r" keeps the network namespace of the initial user namespace, in which
// the process has no rights.
func TestThreadWithoutWayBackIsDiscarded(t *testing.T) {
	testenv.NetAdmin(t)
	unshare := testenv.Tool(t, "unshare")
	if os.Getenv("CNIKIT_TEST_NO_WAY_BACK") == "" {
		child := exec.Command(unshare, "-r", os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
		child.Env = append(os.Environ(), "CNIKIT_TEST_NO_WAY_BACK=1")
		out, err := child.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), "--- PASS: "+t.Name())
		return
	}
	home, err := threadInode()
	require.NoError(t, err)
	ns := newNS(t)
	for range 50 {
		require.NoError(t, ns.Do(func() error { return wantInode(ns.Inode()) }))
		require.NoError(t, wantInode(home))
	}
	noThreadStrays(t, home)
	main, err := os.Readlink("/proc/self/ns/net")
	require.NoError(t, err)
	assert.Equal(t, fmt.Sprintf("net:[%d]", home), main, "the main thread is stranded")
}
