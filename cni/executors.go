package cni

import (
	"context"
	"errors"
	"fmt"
)

// Builtin is an [Executor] with plugins that are linked into the program, by type.
// It must not be changed while in use.
type Builtin map[string]Handler

var _ Executor = Builtin(nil)

// Execute calls the handler, on the calling goroutine. The error of a handler never
// matches [ErrPluginNotFound], which would say that the handler did not run.
func (b Builtin) Execute(ctx context.Context, plugin string, inv Invocation) ([]byte, error) {
	h, ok := b[plugin]
	if !ok {
		return nil, fmt.Errorf("execute plugin %q: %w: it is not built in", plugin, ErrPluginNotFound)
	}
	out, err := h.Handle(ctx, inv)
	return out, sealed(err)
}

// Executors tries executors in order; the first that does not answer with
// [ErrPluginNotFound] decides. If none has the plugin, the error is that of the
// last.
type Executors []Executor

var _ Executor = Executors(nil)

// Execute asks the executors.
func (x Executors) Execute(ctx context.Context, plugin string, inv Invocation) ([]byte, error) {
	err := fmt.Errorf("execute plugin %q: %w: there is no executor", plugin, ErrPluginNotFound)
	for _, executor := range x {
		var out []byte
		out, err = executor.Execute(ctx, plugin, inv)
		if !errors.Is(err, ErrPluginNotFound) {
			return out, err
		}
	}
	return nil, err
}
