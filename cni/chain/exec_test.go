//go:build unix

package chain

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni"
)

// shell makes an executable plugin of a shell script.
func shell(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	require.NoError(t, os.WriteFile(path+".new", []byte("#!/bin/sh\n"+text), 0o700))
	require.NoError(t, os.Rename(path+".new", path))
}

// TestDeadline runs a plugin that hangs with a child that holds standard output, after one that works.
func TestDeadline(t *testing.T) {
	k := newKit(t, true, nil)
	k.Timeout = 5 * time.Second // which the others must not need
	k.Executor = cni.Exec{Grace: 100 * time.Millisecond}
	shell(t, k.dir, "scripted-a", fmt.Sprintf(`echo $CNI_COMMAND a >> %s/order; echo '{"cniVersion":"1.1.0"}'`, k.dir))
	shell(t, k.dir, "scripted-b", fmt.Sprintf(`
		echo $CNI_COMMAND b >> %[1]s/order
		[ $CNI_COMMAND = DEL ] && exit
		trap '' TERM
		sleep 300 & echo $! > %[1]s/child
		wait
		sleep 300`, k.dir))
	started := time.Now()
	_, err := k.Add(t.Context(), conflist(t, "1.1.0", "a", "b"), pod())
	took := time.Since(started)
	t.Logf("ADD with a hanging plugin took %s", took)
	assert.Less(t, took, time.Minute)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "ADD network net: plugin scripted-b (plugins[1]): no answer within 5s: ")
	var rollback *RollbackError
	require.NotErrorAs(t, err, &rollback)
	order, err := os.ReadFile(filepath.Join(k.dir, "order"))
	require.NoError(t, err)
	assert.Equal(t, "ADD a\nADD b\nDEL b\nDEL a\n", string(order), "the plugin that hung is asked to clean up too")
	text, err := os.ReadFile(filepath.Join(k.dir, "child"))
	require.NoError(t, err)
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	assert.Eventually(t, func() bool { return ended(pid) }, time.Minute, 10*time.Millisecond, "its child is ended too")
}

// ended reports whether the process is gone or a zombie that nobody has waited for yet.
func ended(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(stat), ") Z ")
}

func TestNoDeadline(t *testing.T) {
	k := newKit(t, false, map[string]script{"a": nil})
	k.Timeout = -1
	k.Executor = hook{k.Executor, func(ctx context.Context, _ cni.Invocation) {
		_, limited := ctx.Deadline()
		assert.False(t, limited)
	}}
	require.NoError(t, k.Status(t.Context(), conflist(t, "1.1.0", "a")))
	k.Timeout = 0
	k.Executor = hook{k.Executor.(hook).Executor, func(ctx context.Context, _ cni.Invocation) {
		deadline, limited := ctx.Deadline()
		assert.True(t, limited)
		assert.WithinDuration(t, time.Now().Add(DefaultTimeout), deadline, 30*time.Second)
	}}
	require.NoError(t, k.Status(t.Context(), conflist(t, "1.1.0", "a")))
}

func TestPluginDiesWithoutAWord(t *testing.T) {
	k := newKit(t, true, nil)
	k.Executor = cni.Exec{Stderr: new(strings.Builder)}
	shell(t, k.dir, "scripted-a", "echo 'panic: oh' >&2; exit 2")
	_, err := k.Add(t.Context(), conflist(t, "1.1.0", "a"), pod())
	require.ErrorContains(t, err, "panic: oh")
	var rollback *RollbackError
	require.ErrorAs(t, err, &rollback)
	require.ErrorContains(t, err, "the rollback could not undo scripted-a")
}
