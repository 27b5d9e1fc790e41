package hostlocal

import (
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/ipam"
)

// Each system call of an operation fails once, as on a disk that is about to die or in a
// process that has too many files open. An operation that says it succeeded has done what
// it should, but for what lies where the disk cannot be read; after one that failed nothing
// is lost, and its DEL gives back what it took.
func TestFailingCalls(t *testing.T) {
	for name, c := range crashes() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			errnos := []syscall.Errno{syscall.EMFILE}
			if strings.HasPrefix(name, "resync") { // each file is looked at
				errnos = append(errnos, syscall.EIO)
			}
			for _, errno := range errnos {
				fail := 1
				for c.runFailing(t, fail, errno) {
					fail++
				}
				require.Greater(t, fail, 8)
			}
		})
	}
}

// runFailing returns false when the operation makes fewer calls.
func (c crash) runFailing(t *testing.T, fail int, errno syscall.Errno) bool {
	t.Helper()
	s, p := c.open(t, fastDir(t))
	require.NoError(t, s.makeDir())
	if c.before != nil {
		c.before(t, s, p)
	}
	before, files := leasesOf(t, s), snapshot(t, s.dir)
	failing := *s
	system := newProbe()
	system.fail, system.errno, system.linkless = fail, errno, c.bare
	failing.sys, failing.noSync = system, false
	_, failingPool := c.over(t, &failing)
	err := c.call(t.Context(), &failing, failingPool)
	defer func() {
		if t.Failed() {
			t.Logf("call %d failed of %v, with the error %v", fail, system.order, err)
		}
	}()
	if err != nil {
		require.ErrorIs(t, err, errno)
		for name := range snapshot(t, s.dir) {
			if _, isLease := addrOf(name); isLease {
				require.Contains(t, files, name, "what failed has taken nothing")
			}
		}
	} else if errno != syscall.EIO {
		require.True(t, c.done(leasesOf(t, s)), "it said so")
	}
	if c.bare {
		age(t, s)
	}
	c.check(t, s, p, before)
	return system.seen >= fail
}

// A lease that may not be read, or cannot, keeps its address taken and nobody else from
// anything. It is reported, and freed by its owner's DEL as soon as it can be read.
func TestUnreadable(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EACCES, syscall.EIO} {
		s, p := newPool(t, "10.1.0.0/29")
		for _, id := range []string{"a", "b", "c"} {
			allocate(t, p, id)
		}
		put(t, s, lastName(0), "10.1.0.6")
		s.sys = forbidding{name: "10.1.0.3", errno: errno}
		require.NoError(t, p.Release(t.Context(), owner("a")))
		require.Equal(t, "10.1.0.2/29", allocate(t, p, "d"))
		require.Equal(t, "10.1.0.5/29", allocate(t, p, "e"), "10.1.0.3 is taken")
		require.NoError(t, p.Status(t.Context()))
		problems, err := s.Damaged(t.Context())
		require.NoError(t, err)
		require.Len(t, problems, 1)
		require.Contains(t, problems[0].String(), filepath.Join(s.dir, "10.1.0.3")+": cannot be read: ")
		require.Contains(t, problems[0].String(), errno.Error())

		err = p.Retain(t.Context(), []ipam.Owner{owner("b"), owner("d")})
		require.ErrorIs(t, err, errno)
		require.ErrorContains(t, err, "10.1.0.3")
		leases := snapshot(t, s.dir)
		delete(leases, lastName(0))
		require.Equal(t, map[string]string{"10.1.0.2": "d\r\neth0", "10.1.0.3": "b\r\neth0", "lock": ""}, leases)

		s.sys = host{}
		require.NoError(t, p.Release(t.Context(), owner("b")))
		require.NotContains(t, snapshot(t, s.dir), "10.1.0.3")
	}
}

// forbidding is a system that does not let one file be read.
type forbidding struct {
	host
	name  string
	errno syscall.Errno
}

func (f forbidding) ReadFile(path string) ([]byte, error) {
	if filepath.Base(path) == f.name {
		return nil, &fs.PathError{Op: "open", Path: path, Err: f.errno}
	}
	return f.host.ReadFile(path)
}
