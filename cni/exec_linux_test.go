package cni_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni"
)

// A file that somebody has open for writing cannot be executed (ETXTBSY), as when a
// plugin is being installed.
func TestExecBusy(t *testing.T) {
	dir := script(t, "p", ":")
	path := filepath.Join(dir, "p")
	openForWriting := func(t *testing.T) *os.File {
		writer, err := os.OpenFile(path, os.O_WRONLY, 0)
		require.NoError(t, err)
		return writer
	}
	t.Run("it is tried again until the file is closed", func(t *testing.T) {
		writer := openForWriting(t)
		time.AfterFunc(100*time.Millisecond, func() { writer.Close() })
		_, err := cni.Exec{}.Execute(context.Background(), "p", invocation(cni.CommandDel, dir))
		assert.NoError(t, err)
	})
	writer := openForWriting(t)
	defer writer.Close()
	if err := exec.Command(path).Run(); !errors.Is(err, syscall.ETXTBSY) {
		return // Linux 6.11 and 6.12 execute such a file
	}
	t.Run("not for ever, and then it is an error", func(t *testing.T) {
		_, err := cni.Exec{}.Execute(context.Background(), "p", invocation(cni.CommandDel, dir))
		assert.ErrorIs(t, err, syscall.ETXTBSY)
		assert.Equal(t, cni.CodeTryAgain, cni.AsError(err).Code)
	})
	t.Run("not beyond the context", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), 900*time.Millisecond) // tries last a second
		defer cancel()
		_, err := cni.Exec{}.Execute(ctx, "p", invocation(cni.CommandDel, dir))
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		assert.ErrorIs(t, err, syscall.ETXTBSY)
	})
}

func TestExecDiesWithItsParent(t *testing.T) {
	x := buildProgram(t)
	pids := filepath.Join(x.dir, "pids")
	body := "#!/bin/sh\necho $$ >" + pids + "; : >" + x.ready + "; while :; do :; done\n"
	require.NoError(t, os.WriteFile(filepath.Join(x.dir, "pool"), []byte(body), 0o700))
	cmd, _, _ := x.add("delegate")
	cmd.Env = environment("ADD", "CNI_PATH="+x.dir)
	require.NoError(t, cmd.Start())
	x.waitReady(t)
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait())
	left := listed(t, pids)
	require.Len(t, left, 1)
	if !assert.Eventually(t, func() bool { return gone(left[0]) }, patience, 10*time.Millisecond, "the delegate goes on") {
		_ = syscall.Kill(left[0], syscall.SIGKILL)
	}
}
