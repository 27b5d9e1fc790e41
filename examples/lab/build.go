package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/cnikit/cnikit/cni/chain"
	"github.com/cnikit/cnikit/cni/cnitest"
)

// buildNodes makes the underlay and the nodes.
func (l *lab) buildNodes(ctx context.Context) (err error) {
	if l.wire, err = cnitest.CreateNamespace(namespaceDir, l.namespace("underlay")); err != nil {
		return err
	}
	if l.underlay, err = cnitest.NewUnderlay(l.wire, underlayMTU); err != nil {
		return err
	}
	var rows [][]string
	for range l.nodeCount {
		n, err := l.addNode(ctx)
		if err != nil {
			return err
		}
		rows = append(rows, []string{n.member.Name, n.ns.Name(), n.member.Addresses[0], strings.Join(n.member.PodCIDRs, ", ")})
	}
	l.out.table([]string{"NODE", "NAMESPACE", "UNDERLAY", "PODS"}, rows)
	return l.publish()
}

// startAgents starts an agent in each node and waits until they are done.
func (l *lab) startAgents(ctx context.Context) error {
	for _, n := range l.nodes {
		if err := n.startAgent(ctx); err != nil {
			return err
		}
	}
	took, err := l.settle(ctx)
	if err != nil {
		return err
	}
	for _, n := range l.nodes {
		if err := n.inNetwork(network, func(r chain.Runner, list *chain.List) error { return r.Status(ctx, list) }); err != nil {
			return fmt.Errorf("STATUS on %s: %w", n.member.Name, err)
		}
	}
	l.out.say("ready after %s: tunnel, routes, neighbours, forwarding entries, conflist; STATUS agrees", milliseconds(took))
	return nil
}

// attachPods starts the pods of every node.
func (l *lab) attachPods(ctx context.Context) error {
	start := time.Now()
	for _, n := range l.nodes {
		if err := l.fill(ctx, n); err != nil {
			return err
		}
	}
	took := time.Since(start)
	var rows [][]string
	for _, p := range l.pods() {
		if err := p.check(ctx, network, "eth0"); err != nil {
			return fmt.Errorf("CHECK of %s: %w", p.name, err)
		}
		rows = append(rows, []string{p.name, p.addrs[ipv4].String(), p.addrs[ipv6].String()})
	}
	l.out.table([]string{"POD", "IPV4", "IPV6"}, rows)
	l.out.say("%s for each ADD, and CHECK agrees", milliseconds(took/time.Duration(len(rows))))
	return nil
}

// fill starts the pods of one node.
func (l *lab) fill(ctx context.Context, n *node) error {
	for i := range l.podCount {
		p, err := l.startPod(ctx, n, fmt.Sprintf("pod%d", i+1))
		if err != nil {
			return err
		}
		n.pods = append(n.pods, p)
	}
	return nil
}
