package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/internal/testenv"
)

func TestPauseReapsOrphansAndEndsWhenTold(t *testing.T) {
	testenv.Root(t)
	nsenter := testenv.Tool(t, "nsenter")
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
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for len(children(t, pause.Process.Pid)) > 0 { // a zombie is listed, too
		require.NoError(t, ctx.Err(), "not reaped")
		time.Sleep(time.Millisecond)
	}

	require.NoError(t, pause.Process.Signal(syscall.SIGTERM))
	require.NoError(t, pause.Wait(), "exit code 0")
}

func children(t *testing.T, pid int) []string {
	t.Helper()
	list, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	require.NoError(t, err)
	return strings.Fields(string(list))
}
