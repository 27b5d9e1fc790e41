package cnitest

import (
	"context"

	"github.com/cnikit/cnikit/cni"
)

// Executor returns an executor that has x run each plugin inside the namespace: the
// namespace plays the node. Without it, or [Namespace.Do], a plugin works on the network
// of the machine that the test runs on.
func (n *Namespace) Executor(x cni.Executor) cni.Executor { return executor{n, x} }

type executor struct {
	node *Namespace
	next cni.Executor
}

var _ cni.Executor = executor{}

// Execute implements [cni.Executor].
func (e executor) Execute(ctx context.Context, plugin string, inv cni.Invocation) (out []byte, err error) {
	// What the plugin answers and what Do says are kept apart: an error of the plugin
	// must come back as it is.
	doErr := e.node.Do(func() error {
		out, err = e.next.Execute(ctx, plugin, inv)
		return nil
	})
	if doErr != nil {
		return nil, doErr
	}
	return out, err
}
