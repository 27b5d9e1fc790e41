package cnitest_test

import (
	"bufio"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni/cnitest"
	"github.com/cnikit/cnikit/internal/testenv"
)

func TestNamespace(t *testing.T) {
	t.Run("anonymous: code and processes run inside", func(t *testing.T) {
		n := newNamespace(t)
		require.Contains(t, n.Name(), "netns-")
		var inside string
		require.NoError(t, n.Do(func() (err error) {
			inside, err = os.Readlink("/proc/thread-self/ns/net")
			return err
		}))
		outside, err := os.Readlink("/proc/self/ns/net")
		require.NoError(t, err)
		require.NotEqual(t, outside, inside)

		out, err := n.Command(t.Context(), "readlink", "/proc/self/ns/net").Output()
		require.NoError(t, err)
		require.Equal(t, inside, strings.TrimSpace(string(out)))
	})
	t.Run("anonymous: other processes can open its path", func(t *testing.T) {
		n := newNamespace(t)
		out, err := newNamespace(t).Command(t.Context(), testenv.Tool(t, "nsenter"), "--net="+n.Path(), "readlink", "/proc/self/ns/net").CombinedOutput()
		require.NoError(t, err, "%s", out)
		inside, err := n.Command(t.Context(), "readlink", "/proc/self/ns/net").Output()
		require.NoError(t, err)
		require.Equal(t, string(inside), string(out))
	})
	t.Run("the loopback is up", func(t *testing.T) {
		_, err := newNamespace(t).Ping(t.Context(), cnitest.Ping{To: loopback})
		require.NoError(t, err)
	})
}

func TestMountedNamespace(t *testing.T) {
	testenv.Root(t)
	dir := filepath.Join(t.TempDir(), "netns")
	n, err := cnitest.CreateNamespace(dir, "lab-a")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, n.Remove()) })
	require.Equal(t, filepath.Join(dir, "lab-a"), n.Path())

	t.Run("create/taken name", func(t *testing.T) {
		_, err := cnitest.CreateNamespace(dir, "lab-a")
		require.ErrorIs(t, err, fs.ErrExist)
	})
	t.Run("find/by prefix", func(t *testing.T) {
		found, err := cnitest.FindNamespaces(dir, "lab-")
		require.NoError(t, err)
		require.Equal(t, []string{n.Path()}, found)
		found, err = cnitest.FindNamespaces(dir, "other-")
		require.NoError(t, err)
		require.Empty(t, found)
		found, err = cnitest.FindNamespaces(filepath.Join(dir, "absent"), "")
		require.NoError(t, err)
		require.Empty(t, found)
	})
	t.Run("open/the same namespace", func(t *testing.T) {
		again, err := cnitest.OpenNamespace(n.Path())
		require.NoError(t, err)
		defer func() { require.NoError(t, again.Close()) }()
		one, err := n.State()
		require.NoError(t, err)
		other, err := again.State()
		require.NoError(t, err)
		require.Empty(t, one.Diff(other))
	})
	t.Run("remove/idempotent", func(t *testing.T) {
		require.NoError(t, n.Remove())
		require.NoFileExists(t, n.Path())
		require.NoError(t, n.Remove())
		require.NoError(t, cnitest.RemoveNamespace(n.Path()))
	})
}

func TestProcesses(t *testing.T) {
	n := newNamespace(t)
	found, err := n.Processes()
	require.NoError(t, err)
	require.Empty(t, found, "a process with a handle on the namespace does not live in it")

	polite := n.Command(t.Context(), "sleep", "1000")
	require.NoError(t, polite.Start())
	stubborn := n.Command(t.Context(), "sh", "-c", "trap '' TERM; sleep 1000 & echo ready; wait")
	ready, err := stubborn.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, stubborn.Start())
	_, err = bufio.NewReader(ready).ReadString('\n')
	require.NoError(t, err)

	found, err = n.Processes()
	require.NoError(t, err)
	require.Len(t, found, 3, "two processes and the child of one")
	require.Contains(t, found, cnitest.Process{PID: polite.Process.Pid, Command: "sleep 1000"})

	ended, err := n.EndProcesses(200 * time.Millisecond)
	require.NoError(t, err)
	require.Len(t, ended, 3)
	require.Equal(t, syscall.SIGTERM, signalOf(t, polite))
	require.Equal(t, syscall.SIGKILL, signalOf(t, stubborn))
	ended, err = n.EndProcesses(200 * time.Millisecond)
	require.NoError(t, err)
	require.Empty(t, ended)
}

func signalOf(t *testing.T, c *cnitest.Cmd) syscall.Signal {
	t.Helper()
	require.Error(t, c.Wait())
	status, ok := c.ProcessState.Sys().(syscall.WaitStatus)
	require.True(t, ok)
	return status.Signal()
}
