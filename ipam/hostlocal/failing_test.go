package hostlocal

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each system call of an operation fails once, as on a disk that is about to die or in a
// process that has too many files open. An operation that says it succeeded has done what
// it should, but for what lies where the disk cannot be read; after one that failed nothing
// is lost, and its DEL gives back what it took.
func TestFailingCalls(t *testing.T) {
	for name, c := range crashes() {
		t.Run(name, func(t *testing.T) {
			for _, errno := range []syscall.Errno{syscall.EIO, syscall.EMFILE} {
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
	before := leasesOf(t, s)
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
	} else if errno != syscall.EIO {
		require.True(t, c.done(leasesOf(t, s)), "it said so")
	}
	if c.bare {
		age(t, s)
	}
	c.check(t, s, p, before)
	return system.seen >= fail
}
