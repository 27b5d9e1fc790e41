package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cnikit/cnikit/overlay"
)

// joinNode adds a node with pods.
func (l *lab) joinNode(ctx context.Context) error {
	n, err := l.addNode(ctx)
	if err != nil {
		return err
	}
	if err := l.publish(); err != nil {
		return err
	}
	if err := n.startAgent(ctx); err != nil {
		return err
	}
	took, err := l.settle(ctx)
	if err != nil {
		return err
	}
	if err := l.fill(ctx, n); err != nil {
		return err
	}
	if _, err := l.pingAll(ctx); err != nil {
		return err
	}
	l.out.say("%s is ready and known to all after %s; %s answer", n.member.Name, milliseconds(took), l.pairs())
	return nil
}

// leaveNode retires the last node, and wants no trace of it on the others.
func (l *lab) leaveNode(ctx context.Context) error {
	last := l.nodes[len(l.nodes)-1]
	if err := last.retire(ctx); err != nil {
		return err
	}
	l.nodes = l.nodes[:len(l.nodes)-1]
	if err := l.publish(); err != nil {
		return err
	}
	took, err := await(ctx, repairLimit, "no trace of "+last.member.Name+" on the other nodes", func() (string, error) {
		return l.traces(last.member)
	})
	if err != nil {
		return err
	}
	if err := errors.Join(last.unlike(ctx), last.ns.Remove()); err != nil {
		return err
	}
	last.release()
	if _, err := l.pingAll(ctx); err != nil {
		return err
	}
	l.out.say("its routes, neighbours and forwarding entries are gone from the others after %s; %s answer", milliseconds(took), l.pairs())
	return nil
}

// retire detaches the pods of a node, stops its agent and has the agent remove what it
// set up.
func (n *node) retire(ctx context.Context) error {
	for len(n.pods) > 0 {
		if err := n.pods[0].stop(ctx); err != nil {
			return err
		}
		n.pods = n.pods[1:]
	}
	if n.agent != nil {
		if err := n.stopAgent(); err != nil {
			return err
		}
	}
	// The plugins are the lab's own, and in use by the other nodes.
	if err := n.agentCommand(ctx, "uninstall", "-bin-dir=").Run(); err != nil {
		return fmt.Errorf("uninstall the agent of %s: %w%s", n.member.Name, err, n.lastWords())
	}
	return nil
}

// unlike returns a failure when the node's state is not what it was before the agent ran.
func (n *node) unlike(ctx context.Context) error {
	_, err := await(ctx, repairLimit, "the state of "+n.member.Name+" as it was before the agent ran", func() (string, error) {
		now, err := n.state()
		return n.before.Diff(now), err
	})
	return err
}

// traces lists what the nodes have of a node that is not there.
func (l *lab) traces(gone overlay.Node) (string, error) {
	marks := slices.Concat(gone.PodCIDRs, gone.Addresses, tunnelAddrs(gone), []string{overlay.TunnelMAC(gone.UID).String()})
	var found []string
	for _, n := range l.nodes {
		state, err := n.state()
		if err != nil {
			return "", err
		}
		for _, line := range state {
			words := strings.Fields(line)
			if slices.ContainsFunc(marks, func(mark string) bool { return slices.Contains(words, mark) }) {
				found = append(found, n.member.Name+": "+line)
			}
		}
	}
	return strings.Join(found, "\n"), nil
}
