package binaries

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// slowGo is a go command that writes half a program and then does what the shell's text
// says: tell file descriptor 9 that it has started, and take for ever.
type slowGo struct {
	path string // value of PATH that has it
	fifo string
}

func newSlowGo(t *testing.T, forever string) slowGo {
	t.Helper()
	installed, err := exec.LookPath("go")
	require.NoError(t, err)
	dir := t.TempDir()
	s := slowGo{path: dir + ":" + os.Getenv("PATH"), fifo: filepath.Join(dir, "fifo")}
	require.NoError(t, unix.Mkfifo(s.fifo, 0o600))
	script := `#!/bin/sh
[ "$1" = build ] || exec ` + installed + ` "$@"
while [ "$1" != -o ]; do shift; done
echo half >"$2/hello"
echo half >"$2/bonjour"
exec 9>` + s.fifo + `
` + forever
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go"), []byte(script), 0o755))
	return s
}

// started returns once the build is under way. Reading on ends when no process of the
// build is left.
func (s slowGo) started(t *testing.T) io.Reader {
	t.Helper()
	f, err := os.Open(s.fifo)
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	processes := bufio.NewReader(f)
	line, err := processes.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "started\n", line)
	return processes
}

func TestKilledBuildDoesNotCount(t *testing.T) {
	repository, dir := newRepository(t), t.TempDir()
	slow := newSlowGo(t, "echo started >&9; exec sleep 1000\n")
	child := exec.CommandContext(t.Context(), os.Args[0])
	child.Env = append(os.Environ(), childRepository+"="+repository, childCache+"="+dir, "PATH="+slow.path)
	require.NoError(t, child.Start())
	processes := slow.started(t)
	require.NoError(t, child.Process.Kill())
	require.Error(t, child.Wait())
	_, err := io.ReadAll(processes)
	require.NoError(t, err, "the go command ends with who started it")

	left := names(t, dir)
	require.Len(t, left, 2, "the test is of what a killed build leaves: %q", left)
	require.True(t, strings.HasPrefix(left[0], tmpPrefix), "%q", left)

	log := newBuffer()
	set, err := ensure(t.Context(), repository, []part{hello()}, Options{Log: log, Dir: dir})
	require.NoError(t, err)
	assert.NotContains(t, log.String(), "waiting", "the kernel unlocked it")
	assert.Contains(t, log.String(), "built")
	assert.NoFileExists(t, filepath.Join(dir, left[0]))
	require.NoError(t, exec.Command(set.Path("hello")).Run())
}

func TestCancelledBuildEndsItsProcesses(t *testing.T) {
	repository, dir := newRepository(t), t.TempDir()
	slow := newSlowGo(t, "sleep 1000 & echo started >&9; wait\n") // what a compiler is to the go command
	t.Setenv("PATH", slow.path)
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() {
		_, err := ensure(ctx, repository, []part{hello()}, Options{Dir: dir})
		result <- err
	}()
	processes := slow.started(t)
	cancel()
	err := <-result
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "build hello")
	_, err = io.ReadAll(processes)
	require.NoError(t, err)
	assert.Equal(t, []string{lockName}, names(t, dir))
}
