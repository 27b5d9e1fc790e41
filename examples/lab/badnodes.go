package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/cnikit/cnikit/overlay"
)

// badNodes are nodes that a cluster must survive. The last one claims the Pod CIDR of
// node1, which is older.
func badNodes() []overlay.Node {
	malformed, homeless, thief := member(maxNodes+1), member(maxNodes+2), member(maxNodes+3)
	malformed.Name, malformed.PodCIDRs = "malformed", []string{"10.244.300.0/24"}
	homeless.Name, homeless.Addresses = "homeless", nil
	thief.Name, thief.PodCIDRs = "thief", member(1).PodCIDRs
	return []overlay.Node{malformed, homeless, thief}
}

// refuseBadNodes lists bad nodes in the topology. Each agent must name each, and no good
// pair may suffer.
func (l *lab) refuseBadNodes(ctx context.Context) error {
	before, err := l.states()
	if err != nil {
		return err
	}
	bad := badNodes()
	if err := l.publish(bad...); err != nil {
		return err
	}
	if _, err := await(ctx, repairLimit, "every bad node reported by name in every agent's status", func() (string, error) {
		return l.unreported(bad)
	}); err != nil {
		return err
	}
	if _, err := l.pingAll(ctx); err != nil {
		return err
	}
	status, err := l.nodes[0].status()
	if err != nil {
		return err
	}
	for _, p := range status.Problems {
		l.out.say("- %s", p.Message)
	}
	l.out.say("reported by every agent; %s answer", l.pairs())
	if err := l.publish(); err != nil {
		return err
	}
	return l.asBefore(ctx, before)
}

// unreported lists the nodes that an agent does not report.
func (l *lab) unreported(bad []overlay.Node) (string, error) {
	var wrong []string
	for _, n := range l.nodes {
		status, err := n.status()
		if err != nil {
			return "", err
		}
		for _, b := range bad {
			named := func(p overlay.Problem) bool { return p.Node == b.Name && strings.Contains(p.Message, b.Name) }
			if !slices.ContainsFunc(status.Problems, named) {
				wrong = append(wrong, fmt.Sprintf("%s says nothing about %s", n.member.Name, b.Name))
			}
		}
	}
	return strings.Join(wrong, "\n"), nil
}
