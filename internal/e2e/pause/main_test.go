package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/cnikit/cnikit/internal/testenv"
)

func TestPauseReapsOrphansAndEndsWhenTold(t *testing.T) {
	testenv.Root(t)
	nsenter := testenv.Tool(t, "nsenter")
	runtime.LockOSThread() // Pdeathsig is of the thread
	defer runtime.UnlockOSThread()
	pause := exec.Command(testenv.Build(t, "."))
	pause.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID, Pdeathsig: syscall.SIGKILL}
	require.NoError(t, pause.Start())
	t.Cleanup(func() { _ = pause.Process.Kill() })

	shell := exec.Command(nsenter, "--pid", "--target", strconv.Itoa(pause.Process.Pid), "sh", "-c", "sleep 1000 >/dev/null 2>&1 &")
	out, err := shell.CombinedOutput()
	require.NoError(t, err, "%s", out)
	orphan := children(t, pause.Process.Pid)
	require.Len(t, orphan, 1, "it is the process's child now")
	pid, err := strconv.Atoi(orphan[0])
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	awaitReaped(t, pause.Process.Pid)

	endPause(t, pause)
}

// The kernel tells of a child's end once: before the process listens, nobody hears it.
func TestPauseReapsWhatEndedBeforeItListened(t *testing.T) {
	const becomes = "CNIKIT_TEST_BECOMES"
	if pause := os.Getenv(becomes); pause != "" {
		becomeWithDeadChild(t, pause)
	}
	runtime.LockOSThread() // Pdeathsig is of the thread
	defer runtime.UnlockOSThread()
	process := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	process.Env = append(os.Environ(), becomes+"="+testenv.Build(t, "."))
	process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(t, process.Start())
	t.Cleanup(func() { _ = process.Process.Kill() })
	await(t, "it is the program", func() bool {
		program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", process.Process.Pid))
		require.NoError(t, err)
		return filepath.Base(program) == "pause"
	})
	awaitReaped(t, process.Process.Pid)

	endPause(t, process)
}

// becomeWithDeadChild replaces this process with a program that has a zombie for a child.
func becomeWithDeadChild(t *testing.T, program string) {
	t.Helper()
	child, err := os.StartProcess("/bin/true", []string{"true"}, &os.ProcAttr{})
	require.NoError(t, err)
	require.NoError(t, unix.Waitid(unix.P_PID, child.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil))
	require.NoError(t, syscall.Exec(program, []string{program}, os.Environ()))
}

// endPause tells the process to end. Having reaped, it listens to that signal, too.
func endPause(t *testing.T, pause *exec.Cmd) {
	t.Helper()
	require.NoError(t, pause.Process.Signal(syscall.SIGTERM))
	require.NoError(t, pause.Wait(), "exit code 0")
}

func awaitReaped(t *testing.T, pid int) {
	t.Helper()
	await(t, "all children are reaped", func() bool { return len(children(t, pid)) == 0 }) // a zombie is listed, too
}

func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for !holds() {
		require.NoError(t, ctx.Err(), what)
		time.Sleep(time.Millisecond)
	}
}

func children(t *testing.T, pid int) []string {
	t.Helper()
	list, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	require.NoError(t, err)
	return strings.Fields(string(list))
}
