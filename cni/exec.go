package cni

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Exec is the [Executor] that runs executables found in the invocation's Path,
// with the invocation's environment and no other. The zero value is ready to use.
//
// When the context ends, the plugin and its children, which form a process group
// of their own on Unix, get SIGTERM and, after Grace, SIGKILL. Execute does not
// wait longer, but for some 200 ms, even if a process that left the group holds
// standard output open or Stderr blocks; nor does it wait longer than Grace, once
// for each of the two outputs, when the plugin is done and a child of it is not.
// On Linux the plugin is killed with the process that executes it.
//
// Processes are started by the calling goroutine, which may be locked to a thread
// in another network namespace.
type Exec struct {
	Grace time.Duration // between SIGTERM and SIGKILL; default 1s

	// Stderr is where standard error of the plugins goes; default os.Stderr. It gets
	// one write at a time from each call of Execute, so it must be safe for concurrent
	// use if the Exec is used concurrently. A write that blocks does not keep Execute;
	// it may then still be going on when Execute has returned.
	Stderr io.Writer
}

var _ Executor = Exec{}

// Execute runs the plugin. What it printed is returned for ADD, where it must be a
// JSON object, and for VERSION; for other commands, which have no result, it is
// logged. The error of a plugin that printed an error document is that [*Error].
func (x Exec) Execute(ctx context.Context, plugin string, inv Invocation) ([]byte, error) {
	path, err := find(plugin, inv.Path)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("execute plugin %q: %w", plugin, err)
	}
	runtime.LockOSThread() // for dieWithParent: the thread stays as long as the process
	defer runtime.UnlockOSThread()
	run, err := x.start(ctx, path, inv)
	if err != nil {
		return nil, fmt.Errorf("execute plugin %q: %w", plugin, err)
	}
	return run.verdict(ctx, run.wait(ctx), inv)
}

// run is one process of a plugin.
type run struct {
	cmd    *exec.Cmd
	stdout bytes.Buffer
	stderr *stderr
}

// margin is how long the copying of output may take when its end is due.
const margin = 100 * time.Millisecond

// start starts the executable, and tries again for about a second when it is open
// for writing somewhere (ETXTBSY): somebody installs it, or a process that was
// forked while it was written has yet to exec.
func (x Exec) start(ctx context.Context, path string, inv Invocation) (*run, error) {
	const pause = 20 * time.Millisecond
	var busy error
	for tries := 50; ; tries-- {
		r, err := x.prepare(ctx, path, inv)
		if err != nil {
			return nil, err
		}
		err = r.cmd.Start()
		r.stderr.begin(err == nil)
		switch {
		case errors.Is(err, syscall.ETXTBSY) && tries > 0:
			busy = err
		case err != nil && busy != nil:
			return nil, fmt.Errorf("%w (%w)", busy, err)
		default:
			return r, err
		}
		select {
		case <-ctx.Done(): // Start says so
		case <-time.After(pause):
		}
	}
}

func (x Exec) prepare(ctx context.Context, path string, inv Invocation) (*run, error) {
	if x.Stderr == nil {
		x.Stderr = os.Stderr
	}
	stderr, err := openStderr(x.Stderr)
	if err != nil {
		return nil, err
	}
	r := &run{cmd: exec.CommandContext(ctx, path), stderr: stderr}
	r.cmd.Env = inv.environ()
	r.cmd.Stdin = bytes.NewReader(inv.Config)
	r.cmd.Stdout = &r.stdout
	r.cmd.Stderr = stderr.write
	r.cmd.WaitDelay = x.Grace
	if x.Grace <= 0 {
		r.cmd.WaitDelay = time.Second
	}
	isolate(r.cmd)
	return r, nil
}

// wait waits for the process. os/exec bounds that by WaitDelay from the end of the
// context or of the process, whichever is first, and kills the process then; what
// it started is killed here.
func (r *run) wait(ctx context.Context) error {
	err := r.cmd.Wait()
	ended, delayed := ctx.Err() != nil, errors.Is(err, exec.ErrWaitDelay)
	if ended {
		killGroup(r.cmd.Process)
	}
	limit := r.cmd.WaitDelay
	if ended || delayed { // it has passed
		limit = margin
	}
	r.stderr.end(limit)
	if delayed {
		return nil // it succeeded, and a child holds its standard output
	}
	return err
}

// environ is the environment of a plugin: Env and the variables of the protocol.
func (inv Invocation) environ() []string {
	env := slices.DeleteFunc(slices.Clone(inv.Env), func(entry string) bool {
		key, _, _ := strings.Cut(entry, "=")
		return isProtocolVariable(key)
	})
	for _, v := range []struct{ key, value string }{
		{"CNI_COMMAND", string(inv.Command)},
		{"CNI_CONTAINERID", inv.ContainerID},
		{"CNI_NETNS", inv.NetNS},
		{"CNI_IFNAME", inv.IfName},
		{"CNI_ARGS", inv.Args},
		{"CNI_PATH", strings.Join(inv.Path, string(os.PathListSeparator))},
	} {
		if v.value != "" {
			env = append(env, v.key+"="+v.value)
		}
	}
	return env
}

func isProtocolVariable(key string) bool {
	switch key {
	case "CNI_COMMAND", "CNI_CONTAINERID", "CNI_NETNS", "CNI_IFNAME", "CNI_ARGS", "CNI_PATH":
		return true
	}
	return false
}
