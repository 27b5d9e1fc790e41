package main

import (
	"context"
	"fmt"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/cni/chain"
)

// deleteTwice does to DEL what runtimes do to it. Nothing of that may fail, and nothing
// may be left.
func (l *lab) deleteTwice(ctx context.Context) error {
	n := l.nodes[0]
	before, err := l.states()
	if err != nil {
		return err
	}
	held := len(leases(n.dataDir()))
	for _, part := range []struct {
		what string
		run  func(context.Context, *node) error
	}{
		{"DEL twice", l.delTwice},
		{"DEL of a namespace that is gone", l.delGone},
		{"DEL of an attachment that never was", l.delUnknown},
	} {
		if err := part.run(ctx, n); err != nil {
			return fmt.Errorf("%s: %w", part.what, err)
		}
	}
	if now := len(leases(n.dataDir())); now != held {
		return &failure{count(held, "lease") + " as before the step", fmt.Sprint(now)}
	}
	if err := l.asBefore(ctx, before); err != nil {
		return err
	}
	l.out.say("all answered with success, and nothing is left of them")
	return nil
}

func (l *lab) delTwice(ctx context.Context, n *node) error {
	p, err := l.startPod(ctx, n, "twice")
	if err != nil {
		return err
	}
	if err := p.del(ctx, network, "eth0"); err != nil {
		return err
	}
	return p.stop(ctx) // the second DEL
}

func (l *lab) delGone(ctx context.Context, n *node) error {
	p, err := l.startPod(ctx, n, "gone")
	if err != nil {
		return err
	}
	if err := p.ns.Remove(); err != nil {
		return err
	}
	return p.del(ctx, network, "eth0")
}

// delUnknown goes around the runtime, which may know better than to ask the plugin.
func (l *lab) delUnknown(ctx context.Context, n *node) error {
	p, err := l.newPod(n, "unknown")
	if err != nil {
		return err
	}
	defer func() { _ = p.ns.Remove() }()
	return n.inNetwork(network, func(r chain.Runner, list *chain.List) error {
		_, err := r.Executor.Execute(ctx, list.Plugins[0].Type, cni.Invocation{
			Command: cni.CommandDel, ContainerID: p.name, NetNS: p.ns.Path(), IfName: "eth0",
			Path: r.Path, Config: fmt.Appendf(nil, unknownConfig, network, n.dataDir()),
		})
		return err
	})
}

// unknownConfig is the least that a DEL needs to know.
const unknownConfig = `{"cniVersion": "1.0.0", "name": %q, "type": "cnikit-bridge", "ipam": {"type": "cnikit-ipam", "dataDir": %q}}`
