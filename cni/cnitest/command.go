package cnitest

import (
	"bytes"
	"context"
	"os/exec"
)

// Cmd is an [exec.Cmd] whose process runs inside a namespace. Use its own methods to
// start it.
type Cmd struct {
	*exec.Cmd
	inside *Namespace
}

// Command prepares a process inside the namespace; see [exec.CommandContext]. Only the
// network is another one: files, processes and mounts are those of the caller.
func (n *Namespace) Command(ctx context.Context, name string, args ...string) *Cmd {
	return &Cmd{Cmd: exec.CommandContext(ctx, name, args...), inside: n}
}

// Start starts the process; [exec.Cmd.Wait] must be called.
func (c *Cmd) Start() error { return c.inside.Do(c.Cmd.Start) }

// Run starts the process and waits for it.
func (c *Cmd) Run() error {
	if err := c.Start(); err != nil {
		return err
	}
	return c.Wait()
}

// CombinedOutput runs the process and returns what it wrote to both outputs.
func (c *Cmd) CombinedOutput() ([]byte, error) {
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	err := c.Run()
	return out.Bytes(), err
}

// Output runs the process and returns what it wrote to standard output.
func (c *Cmd) Output() ([]byte, error) {
	var out bytes.Buffer
	c.Stdout = &out
	err := c.Run()
	return out.Bytes(), err
}
