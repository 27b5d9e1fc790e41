package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

const (
	pollInterval = 20 * time.Millisecond
	stopGrace    = 5 * time.Second // between SIGTERM and SIGKILL
	tailSize     = 4096            // bytes of a log that an error quotes
)

// component is a long-running process of a machine.
type component struct {
	name string
	log  string // file
	cmd  *exec.Cmd
	done chan struct{}
}

// startComponent starts a component whose output is appended to logs/NAME.log.
func (m *machine) startComponent(logs, name string, env []string, program string, args ...string) (*component, error) {
	c := &component{name: name, log: filepath.Join(logs, name+".log"), done: make(chan struct{})}
	out, err := os.OpenFile(c.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	defer func() { _ = out.Close() }() // the component has its own
	c.cmd = exec.Command(program, args...)
	c.cmd.Env, c.cmd.Stdout, c.cmd.Stderr = env, out, out
	if err := m.start(c.cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		_ = c.cmd.Wait() // ProcessState says it
		close(c.done)
	}()
	return c, nil
}

// stop ends the component with SIGTERM or, when that does not help, SIGKILL.
func (c *component) stop(ctx context.Context) error {
	return c.end(ctx, syscall.SIGTERM)
}

// kill ends the component with SIGKILL.
func (c *component) kill(ctx context.Context) error {
	return c.end(ctx, syscall.SIGKILL)
}

func (c *component) end(ctx context.Context, s syscall.Signal) error {
	if c == nil {
		return nil
	}
	if err := c.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop %s: %w", c.name, err)
	}
	grace := time.NewTimer(stopGrace)
	defer grace.Stop()
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
	case <-grace.C:
	}
	_ = c.cmd.Process.Kill() // fails only when it has ended
	<-c.done
	return nil
}

// runs reports whether the component was started and has not ended.
func (c *component) runs() bool { return c != nil && c.failed() == nil }

// failed says how a component ended that should not have; nil while it runs.
func (c *component) failed() error {
	select {
	case <-c.done:
		return fmt.Errorf("%s ended: %s; the last lines of its log:\n%s", c.name, c.cmd.ProcessState, tail(c.log))
	default:
		return nil
	}
}

// tail is the end of a file, from the start of a line.
func tail(file string) []byte {
	f, err := os.Open(file)
	if err != nil {
		return []byte(err.Error())
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return []byte(err.Error())
	}
	skipped := max(info.Size()-tailSize, 0)
	data, err := io.ReadAll(io.NewSectionReader(f, skipped, tailSize))
	if err != nil {
		return []byte(err.Error())
	}
	if _, rest, cut := bytes.Cut(data, []byte("\n")); cut && skipped > 0 {
		data = rest
	}
	return data
}

// await polls until check succeeds. It gives up when ctx ends or a component does.
func await(ctx context.Context, what string, check func(context.Context) error, needed ...*component) error {
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		for _, c := range needed {
			if failure := c.failed(); failure != nil {
				return fmt.Errorf("wait until %s: %w", what, failure)
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait until %s: %w (%w)", what, ctx.Err(), err)
		case <-time.After(pollInterval):
		}
	}
}

// parallel runs all steps and returns the first error; it cancels the others, and waits
// for them.
func parallel(ctx context.Context, steps ...func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan error)
	for _, step := range steps {
		go func() { done <- step(ctx) }()
	}
	var first error
	for range steps {
		if err := <-done; err != nil && first == nil {
			first = err
			cancel()
		}
	}
	return first
}
