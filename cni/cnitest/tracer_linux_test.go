//go:build amd64 || arm64

package cnitest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/cnikit/cnikit/internal/testenv"
)

// tracing gives a namespace to trace commands in.
func tracing(t *testing.T) *Namespace {
	t.Helper()
	testenv.NetAdmin(t)
	n, err := NewNamespace()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, n.Remove()) })
	return n
}

// trace is [trace] inside the namespace.
func (n *Namespace) trace(ctx context.Context, c command, at moment) (*traced, error) {
	return traceOn(ctx, n.Do, c, at)
}

// shell is a shell script as a command; DIR in it is a fresh directory.
func shell(t *testing.T, lines ...string) (c command, dir string) {
	t.Helper()
	dir = t.TempDir()
	text := strings.ReplaceAll("#!/bin/sh\n"+strings.Join(lines, "\n")+"\n", "DIR", dir)
	c = command{path: filepath.Join(t.TempDir(), "plugin"), env: []string{"PATH=" + os.Getenv("PATH")}}
	require.NoError(t, os.WriteFile(c.path, []byte(text), 0o755))
	return c, dir
}

// everyChange is a script that changes files and the network in many ways, in
// children of its own, and what is recorded of it. An RTM_NEWLINK without more is ip(8),
// which asks what the kernel can do.
func everyChange(t *testing.T) (command, string, []string) {
	c, dir := shell(t,
		"mkdir DIR/sub; mkdir -p DIR/sub", "echo one >DIR/sub/a", "mv DIR/sub/a DIR/b", "ln DIR/b DIR/c", "ln -s b DIR/d",
		"ip link add lan0 type veth peer name lan1", "ip link show >/dev/null", "ip link set lan0 up",
		"ip addr add 192.0.2.1/24 dev lan0", "ip route add 198.51.100.0/24 via 192.0.2.2",
		"rm DIR/c DIR/d; rm -f DIR/none", "cat DIR/b >/dev/null; echo two >>DIR/b; echo three >DIR/b", "rmdir DIR/sub",
		"nft 'add table ip left; add chain ip left forward'", "nft list ruleset >/dev/null",
		"echo 1 >/proc/sys/net/ipv4/ip_forward",
	)
	sh, err := filepath.EvalSymlinks("/bin/sh")
	require.NoError(t, err)
	for _, tool := range []string{"ip", "nft"} {
		testenv.Tool(t, tool)
	}
	want := strings.ReplaceAll(`mkdir: create DIR/sub
SH: create DIR/sub/a
SH: write DIR/sub/a
mv: rename DIR/sub/a DIR/b
ln: link DIR/b DIR/c
ln: symlink DIR/d
ip: RTM_NEWLINK
ip: RTM_NEWLINK lan0
ip: RTM_NEWLINK
ip: RTM_NEWLINK
ip: RTM_NEWLINK #3 up
ip: RTM_NEWADDR 192.0.2.1/24
ip: RTM_NEWROUTE 198.51.100.0/24
rm: remove DIR/c
rm: remove DIR/d
SH: write DIR/b
SH: truncate DIR/b
SH: write DIR/b
rmdir: remove DIR/sub
nft: NFT_MSG_NEWTABLE, NFT_MSG_NEWCHAIN
SH: write /proc/sys/net/ipv4/ip_forward`, "DIR", dir)
	return c, dir, strings.Split(strings.ReplaceAll(want, "SH", filepath.Base(sh)), "\n")
}

func lines(changes []change) (text []string) {
	for _, c := range changes {
		text = append(text, c.String())
	}
	return text
}

func TestTraceRecordsEveryChange(t *testing.T) {
	c, _, want := everyChange(t)
	done, err := tracing(t).trace(t.Context(), c, moment{})
	require.NoError(t, err)
	require.Equal(t, want, lines(done.changes), "%s", done.stderr)
	require.Zero(t, done.exit)
	require.False(t, done.killed)
}

// TestTraceKills looks at the world after a kill at each moment: it is that of a run
// that was killed one moment earlier, and exactly one change more.
func TestTraceKills(t *testing.T) {
	t.Parallel()
	kill := func(t *testing.T, at moment) State {
		t.Helper()
		c, dir, want := everyChange(t)
		n := tracing(t)
		done, err := n.trace(t.Context(), c, at)
		require.NoError(t, err)
		require.True(t, done.killed, at.String())
		require.Equal(t, -1, done.exit)
		require.Equal(t, want[:at.number], lines(done.changes))
		left, err := n.Processes()
		require.NoError(t, err)
		require.Empty(t, left)
		s, err := n.State(dir)
		require.NoError(t, err)
		forward, err := sysctl(n, "net/ipv4/ip_forward")
		require.NoError(t, err)
		s = append(s, forward)
		mac := regexp.MustCompile("mac [0-9a-f:]+ ?")
		var same State
		for _, line := range s {
			if !strings.Contains(line, "ipv6") && !strings.Contains(line, "addr fe80") { // come in their own time
				same = append(same, mac.ReplaceAllString(strings.ReplaceAll(line, dir, "DIR"), ""))
			}
		}
		return same
	}
	_, _, changes := everyChange(t)
	for number := range len(changes) {
		t.Run(fmt.Sprintf("%d", number+1), func(t *testing.T) {
			t.Parallel()
			before, after := kill(t, moment{number: number + 1}), kill(t, moment{number: number + 1, after: true})
			if !strings.HasSuffix(changes[number], "RTM_NEWLINK") {
				require.NotEmpty(t, before.Diff(after))
			}
			if number+1 < len(changes) {
				require.Empty(t, after.Diff(kill(t, moment{number: number + 2})))
			}
		})
	}
}

func sysctl(n *Namespace, name string) (value string, err error) {
	err = n.Do(func() error {
		content, err := os.ReadFile("/proc/sys/" + name)
		value = string(content)
		return err
	})
	return value, err
}

func TestTracePassesOn(t *testing.T) {
	n := tracing(t)
	t.Run("streams and exit status", func(t *testing.T) {
		c, _ := shell(t, "cat; echo oops >&2; exit 3")
		c.stdin = []byte("in")
		done, err := n.trace(t.Context(), c, moment{})
		require.NoError(t, err)
		require.Equal(t, &traced{exit: 3, stdout: []byte("in"), stderr: []byte("oops\n")}, done)
	})
	t.Run("signals", func(t *testing.T) {
		c, _ := shell(t, "trap 'echo trapped' USR1", "kill -USR1 $$", "kill -TERM $$", "echo not reached")
		done, err := n.trace(t.Context(), c, moment{})
		require.NoError(t, err)
		require.Equal(t, &traced{exit: -1, stdout: []byte("trapped\n"), stderr: []byte{}}, done)
	})
	t.Run("stopping and continuing", func(t *testing.T) {
		c, _ := shell(t,
			// A tracer hides whether a process is stopped, so it is continued until it ends.
			"(sleep 0.2; echo continuing; while kill -CONT $$; do sleep 0.2; done) &",
			"kill -STOP $$", "echo continued")
		done, err := n.trace(t.Context(), c, moment{})
		require.NoError(t, err)
		require.Equal(t, "continuing\ncontinued\n", string(done.stdout))
	})
	t.Run("a program that is not there", func(t *testing.T) {
		_, err := n.trace(t.Context(), command{path: filepath.Join(t.TempDir(), "none")}, moment{})
		require.ErrorIs(t, err, os.ErrNotExist)
	})
}

// TestTraceEnds: nothing outlives the trace, whichever way it ends.
func TestTraceEnds(t *testing.T) {
	n := tracing(t)
	descriptors, goroutines := openFiles(t), runtime.NumGoroutine()
	daemon := "setsid sleep 1000 & (setsid sleep 1001; echo) &"
	t.Run("with the command", func(t *testing.T) {
		c, _ := shell(t, daemon, "exit 0")
		done, err := n.trace(t.Context(), c, moment{})
		require.NoError(t, err)
		require.Zero(t, done.exit)
	})
	t.Run("with the context", func(t *testing.T) {
		c, dir := shell(t, daemon, "touch DIR/begun", "sleep 1002")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var watcher sync.WaitGroup
		watcher.Go(func() {
			for ; ctx.Err() == nil; time.Sleep(time.Millisecond) {
				if _, err := os.Stat(filepath.Join(dir, "begun")); err == nil {
					cancel()
				}
			}
		})
		done, err := n.trace(ctx, c, moment{})
		require.ErrorIs(t, err, context.Canceled)
		watcher.Wait() // it would count as one left
		require.Equal(t, -1, done.exit)
	})
	t.Run("at the moment", func(t *testing.T) {
		c, _ := shell(t, daemon, "touch DIR/begun", "sleep 1003")
		done, err := n.trace(t.Context(), c, moment{number: 1})
		require.NoError(t, err)
		require.True(t, done.killed)
	})
	left, err := n.Processes()
	require.NoError(t, err)
	require.Empty(t, left)
	require.Equal(t, descriptors, openFiles(t))
	requireGoroutines(t, goroutines)
}

// requireGoroutines waits for those that are on their way out.
func requireGoroutines(t *testing.T, most int) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for runtime.NumGoroutine() > most {
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<20)
			require.Fail(t, "goroutines are left", "%s", stacks[:runtime.Stack(stacks, true)])
		}
		time.Sleep(time.Millisecond)
	}
}

func openFiles(t *testing.T) int {
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(entries)
}

// TestTraceLeavesOtherChildrenAlone: what else the thread is the parent of is neither
// waited for nor reaped.
func TestTraceLeavesOtherChildrenAlone(t *testing.T) {
	n := tracing(t)
	c, _ := shell(t, "exit 0")
	require.NoError(t, n.Do(func() error {
		require.True(t, childless())
		other := exec.CommandContext(t.Context(), "sleep", "1000")
		require.NoError(t, other.Start())
		require.False(t, childless())
		_, err := n.trace(t.Context(), c, moment{})
		require.NoError(t, err)
		require.NoError(t, other.Process.Kill())
		require.EqualError(t, other.Wait(), "signal: killed")
		return nil
	}))
}

// TestTraceFollowsGoPrograms runs one with many threads, one of which calls exec.
func TestTraceFollowsGoPrograms(t *testing.T) {
	n := tracing(t)
	dir := t.TempDir()
	c := command{path: testenv.Build(t, "./testdata/threads"), env: []string{"PATH=" + os.Getenv("PATH"), "DIR=" + dir}}
	done, err := n.trace(t.Context(), c, moment{})
	require.NoError(t, err)
	require.Zero(t, done.exit, "%s", done.stderr)
	require.Len(t, done.changes, 65)
	require.Equal(t, "touch: create "+dir+"/last", done.changes[64].String())
	for number := 1; number <= 65; number += 8 {
		dir := t.TempDir()
		c.env[1] = "DIR=" + dir
		done, err := n.trace(t.Context(), c, moment{number: number})
		require.NoError(t, err)
		require.True(t, done.killed)
		made, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Less(t, len(made), 65)
		require.GreaterOrEqual(t, len(made), number-1-16, "threads whose call was seen may be killed before it")
	}
}

// TestTraceCountsARestartOnce: the kernel has a write to a setting of the network start
// anew as long as somebody else changes the network.
func TestTraceCountsARestartOnce(t *testing.T) {
	n := tracing(t)
	for range 3 {
		busy := tracing(t).Command(t.Context(), "sh", "-c", "while :; do ip link add a0 type veth peer name a1; ip link del a0; done")
		busy.Cancel = func() error { return unix.Kill(-busy.Process.Pid, unix.SIGKILL) }
		busy.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		require.NoError(t, busy.Start())
		defer busy.Wait()   //nolint:errcheck // it is killed
		defer busy.Cancel() //nolint:errcheck // as above
	}
	c, _ := shell(t,
		"for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do echo 1 >/proc/sys/net/ipv4/ip_forward; done; exit 0")
	for range 3 {
		done, err := n.trace(t.Context(), c, moment{})
		require.NoError(t, err)
		writes := slices.DeleteFunc(lines(done.changes), func(line string) bool { return !strings.Contains(line, "write") })
		require.Len(t, writes, 20)
	}
	require.True(t, restarts(^uint64(512)))
	require.False(t, restarts(^uint64(3)))
	require.False(t, restarts(513))
}

func TestTraceRefused(t *testing.T) {
	for _, errno := range []unix.Errno{unix.EPERM, unix.ENOSYS} {
		require.ErrorIs(t, refused(fmt.Errorf("x: %w", errno)), errors.ErrUnsupported)
	}
	require.NotErrorIs(t, refused(unix.ENOENT), errors.ErrUnsupported)
}
