package cni

import (
	"context"
	"errors"
	"io"
	"time"
)

// Exec is the [Executor] that runs executables found in the invocation's Path,
// with the invocation's environment and no other. When the context ends, the
// plugin and all its children get SIGTERM and, after Grace, SIGKILL.
type Exec struct {
	Grace  time.Duration // between SIGTERM and SIGKILL; default 1s
	Stderr io.Writer     // where standard error of the plugins goes; default os.Stderr
}

var _ Executor = Exec{}

// Execute runs the plugin.
func (x Exec) Execute(ctx context.Context, plugin string, inv Invocation) ([]byte, error) {
	return nil, errors.ErrUnsupported
}
