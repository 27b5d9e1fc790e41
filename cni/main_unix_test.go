//go:build unix

package cni_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/internal/testenv"
)

// program is a plugin as somebody would write it, except for what its ADD does.
const program = `package main

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"syscall"

	"github.com/cnikit/cnikit/cni"
)

type config struct {
	Do    string
	Ready string // a FIFO: opened when the ADD wants a signal
	Undo  string // a file: made by the undo
}

func main() {
	cni.Main(cni.Plugin[config]{
		Type:           "program",
		Add:            add,
		Del:            func(context.Context, *cni.Request[config]) error { fmt.Println("del"); return nil },
		Check:          cni.NoState[config],
		Status:         cni.Ready[config],
		GC:             cni.NoState[config],
		AllowHostNetNS: true,
	}.Handler())
}

func add(ctx context.Context, r *cni.Request[config]) (*cni.Result, error) {
	r.Undo("file", func(ctx context.Context) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return os.WriteFile(r.Config.Undo, nil, 0o600)
	})
	switch r.Config.Do {
	case "print":
		fmt.Println("from fmt.Println")
		syscall.Write(1, []byte("from file descriptor 1\n"))
		println("from println")
		child := exec.Command("/bin/sh", "-c", "echo from a child; for fd in 3 4 5 6 7 8 9; do eval \"echo from a leaked descriptor >&$fd\"; done 2>/dev/null; true")
		child.Stdout = os.Stdout
		if err := child.Run(); err != nil {
			return nil, err
		}
	case "panic":
		fmt.Println("before the panic")
		panic("boom")
	case "wait":
		os.WriteFile(r.Config.Ready, nil, 0)
		<-ctx.Done()
		return nil, fmt.Errorf("set up link: %w", ctx.Err())
	case "ignore":
		os.WriteFile(r.Config.Ready, nil, 0)
		<-ctx.Done()
		os.WriteFile(r.Config.Ready, nil, 0)
		select {}
	case "delegate":
		return r.Delegate("pool").Add(ctx)
	case "broken":
		for range 3 {
			fmt.Println("nobody reads this")
			fmt.Fprintln(os.Stderr, "nor this")
		}
	}
	return &cni.Result{IPs: []cni.IP{{Address: netip.MustParsePrefix("10.0.0.5/24")}}}, nil
}
`

// executable is the program, built, with a directory for files.
type executable struct {
	path, dir   string
	ready, undo string
}

func buildProgram(t *testing.T) executable {
	t.Helper()
	dir := t.TempDir()
	x := executable{path: filepath.Join(dir, "program"), dir: dir, ready: filepath.Join(dir, "ready"), undo: filepath.Join(dir, "undo")}
	source := filepath.Join(dir, "main.go")
	require.NoError(t, os.WriteFile(source, []byte(program), 0o600))
	require.NoError(t, syscall.Mkfifo(x.ready, 0o600))
	build := exec.Command(testenv.Tool(t, "go"), "build", "-o", x.path, source) // in this directory, and so in this module
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return x
}

// add prepares the program to be executed with ADD.
func (x executable) add(do string) (*exec.Cmd, *bytes.Buffer, *bytes.Buffer) {
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(x.path)
	cmd.Env = environment("ADD")
	cmd.Stdin = strings.NewReader(network("1.0.0", `"do":"`+do+`","ready":"`+x.ready+`","undo":"`+x.undo+`"`))
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	return cmd, &stdout, &stderr
}

const programResult = `{"cniVersion":"1.0.0","ips":[{"address":"10.0.0.5/24"}]}` + "\n"

func TestMainProgram(t *testing.T) {
	x := buildProgram(t)

	t.Run("standard output belongs to the result", func(t *testing.T) {
		cmd, stdout, stderr := x.add("print")
		require.NoError(t, cmd.Run(), "%s", stderr)
		assert.Equal(t, programResult, stdout.String())
		for _, from := range []string{"fmt.Println", "file descriptor 1", "println", "a child"} {
			assert.Contains(t, stderr.String(), "from "+from)
		}
		assert.NoFileExists(t, x.undo)
	})
	t.Run("a panic is an error document, and undone", func(t *testing.T) {
		cmd, stdout, stderr := x.add("panic")
		e := answer{code: exitCode(t, cmd.Run()), stdout: stdout.String()}.failed(t)
		assert.Equal(t, cni.CodeInternal, e.Code)
		assert.Equal(t, "panic: boom", e.Msg)
		assert.Contains(t, stderr.String(), "before the panic")
		assert.Contains(t, stderr.String(), "main.add", "the stack")
		require.NoError(t, os.Remove(x.undo), "the undo ran")
	})
	for _, signal := range []os.Signal{syscall.SIGTERM, syscall.SIGINT} {
		t.Run(signal.String()+" is an error document, and undone", func(t *testing.T) {
			cmd, stdout, stderr := x.add("wait")
			require.NoError(t, cmd.Start())
			x.waitReady(t)
			require.NoError(t, cmd.Process.Signal(signal))
			e := answer{code: exitCode(t, cmd.Wait()), stdout: stdout.String()}.failed(t)
			assert.Equal(t, cni.CodeTryAgain, e.Code, "%s", stderr)
			assert.Contains(t, e.Msg, "set up link: context canceled")
			assert.Empty(t, e.Details)
			require.NoError(t, os.Remove(x.undo), "the undo ran")
		})
	}
	t.Run("a second signal ends what ignores the first", func(t *testing.T) {
		cmd, _, _ := x.add("ignore")
		require.NoError(t, cmd.Start())
		x.waitReady(t)
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		x.waitReady(t)
		kill := time.NewTicker(20 * time.Millisecond) // the handler may be removed a moment after the context ended
		defer kill.Stop()
		giveUp := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
		defer giveUp.Stop()
		done := make(chan error, 1)
		go func() { done <- cmd.Wait() }()
		for ended := false; !ended; {
			select {
			case err := <-done:
				assert.Error(t, err)
				ended = true
			case <-kill.C:
				_ = cmd.Process.Signal(syscall.SIGTERM)
			}
		}
		assert.Equal(t, "signal: terminated", cmd.ProcessState.String())
	})
	t.Run("a runtime that closed standard error does not kill the plugin", func(t *testing.T) {
		cmd, stdout, _ := x.add("broken")
		read, write, err := os.Pipe()
		require.NoError(t, err)
		cmd.Stderr = write
		require.NoError(t, read.Close())
		require.NoError(t, cmd.Run())
		write.Close()
		assert.Equal(t, programResult, stdout.String())
	})
	t.Run("standard output may be closed", func(t *testing.T) {
		cmd := exec.Command("/bin/sh", "-c", x.path+" >&-")
		cmd.Env, cmd.Stdin = environment("DEL"), strings.NewReader(network("1.0.0"))
		out, err := cmd.CombinedOutput()
		require.NoError(t, err)
		assert.Equal(t, "del\n", string(out), "what the handler printed went to standard error")
	})
	t.Run("without CNI_PATH a delegate is found beside the program", func(t *testing.T) {
		pool := filepath.Join(x.dir, "pool")
		require.NoError(t, os.WriteFile(pool, []byte("#!/bin/sh\necho words of the pool >&2\necho \"{\\\"path\\\":\\\"$CNI_PATH\\\"}\"\n"), 0o700))
		for _, change := range []string{"CNI_PATH", "CNI_PATH="} {
			cmd, stdout, stderr := x.add("delegate")
			cmd.Env = environment("ADD", change)
			require.NoError(t, cmd.Run(), "%s", stdout)
			assert.JSONEq(t, `{"cniVersion":"1.0.0","path":"`+x.dir+`"}`, stdout.String(), "%s", stderr)
			assert.Contains(t, stderr.String(), "words of the pool")
		}
		cmd, stdout, _ := x.add("delegate")
		e := answer{code: exitCode(t, cmd.Run()), stdout: stdout.String()}.failed(t)
		assert.Contains(t, e.Msg, "in no directory of CNI_PATH (/nowhere)", "where the runtime says, and nowhere else")
	})
	t.Run("by hand", func(t *testing.T) {
		cmd := exec.Command(x.path)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		stdout, err := cmd.Output()
		e := answer{code: exitCode(t, err), stdout: string(stdout)}.failed(t)
		assert.Equal(t, cni.CodeInvalidEnvironment, e.Code)
		assert.Contains(t, stderr.String(), "CNI plugin program\nCNI protocol versions supported: ")
	})
}

func exitCode(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	return exit.ExitCode()
}

// waitReady waits until the program opens its FIFO.
func (x executable) waitReady(t *testing.T) {
	t.Helper()
	fifo, err := os.Open(x.ready)
	require.NoError(t, err)
	require.NoError(t, fifo.Close())
}

// Who imports this package must not pay for the rest of the module.
func TestImporterDependencies(t *testing.T) {
	source := filepath.Join(t.TempDir(), "main.go")
	require.NoError(t, os.WriteFile(source, []byte(program), 0o600))
	list := exec.Command(testenv.Tool(t, "go"), "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", source)
	list.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := list.Output()
	require.NoError(t, err)
	packages := strings.Fields(string(out))
	t.Logf("a program that imports cni is made of %d packages outside the standard library:\n%s", len(packages), out)
	for _, name := range packages {
		assert.Truef(t, name == "command-line-arguments" || name == "github.com/cnikit/cnikit/cni" ||
			strings.HasPrefix(name, "github.com/containernetworking/cni/pkg/"), "%s", name)
	}
	assert.Contains(t, packages, "github.com/cnikit/cnikit/cni")
	assert.Less(t, len(packages), 15)
}
