package cni

import (
	"context"
	"io"
)

// Process is what the operating system gives to a plugin that is executed.
type Process struct {
	Env            []string // "KEY=value"
	Stdin          io.Reader
	Stdout, Stderr io.Writer
}

// Run serves one invocation: it reads the environment and standard input, calls
// the handler and writes one JSON document to Stdout. It returns the exit code.
func (p Process) Run(ctx context.Context, h Handler) int { return 1 }

// Main serves the invocation of the running process and exits.
func Main(h Handler) {}
