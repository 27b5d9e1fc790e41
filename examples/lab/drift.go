package main

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"github.com/cnikit/cnikit/overlay"
)

// repairLimit is how long a repair may take on a machine with other things to do. The
// agents look at nothing without a cause, so it is events that tell them.
const repairLimit = 15 * time.Second

// drift is something that an operator breaks, and the command that breaks it.
type drift struct {
	what    string
	command []string
}

// drifts break what a node has for another one.
func drifts(n *node, other overlay.Node) []drift {
	tunnel := tunnelAddrs(other)
	mac, outer := overlay.TunnelMAC(other.UID).String(), other.Addresses[0]
	commands := []struct{ what, command string }{
		{"route, IPv4", "ip route del " + other.PodCIDRs[0]},
		{"route, IPv6", "ip -6 route del " + other.PodCIDRs[1]},
		{"neighbour, IPv4", "ip neigh del " + tunnel[0] + " dev " + device},
		{"neighbour, IPv6", "ip neigh del " + tunnel[1] + " dev " + device},
		{"forwarding entry", "bridge fdb del " + mac + " dev " + device + " dst " + outer},
		{"device down", "ip link set " + device + " down"},
		{"device deleted", "ip link del " + device},
		{"conflist deleted", "rm " + filepath.Join(n.confDir(), "10-"+network+".conflist")},
	}
	var all []drift
	for _, c := range commands {
		all = append(all, drift{c.what, strings.Fields(c.command)})
	}
	return all
}

// repairDrift breaks one thing after the other and waits until the node's state is, to
// the last object, what it was before.
func (l *lab) repairDrift(ctx context.Context) error {
	first, second := l.nodes[0], l.nodes[1]
	var rows [][]string
	for _, d := range drifts(first, second.member) {
		took, err := first.breakAndWait(ctx, d)
		if err != nil {
			return err
		}
		for _, f := range families() {
			if _, err := first.pods[0].ping(ctx, second.pods[0], f); err != nil {
				return &failure{"traffic after the repair of: " + d.what, err.Error()}
			}
		}
		rows = append(rows, []string{d.what, strings.ReplaceAll(strings.Join(d.command, " "), first.confDir(), "CONF"), milliseconds(took)})
	}
	l.out.table([]string{"BROKEN", "BY", "REPAIRED AFTER"}, rows)
	return nil
}

// breakAndWait runs the command and measures from its start.
func (n *node) breakAndWait(ctx context.Context, d drift) (time.Duration, error) {
	before, err := n.state()
	if err != nil {
		return 0, err
	}
	start := time.Now()
	if err := n.operate(ctx, d.command...); err != nil {
		return 0, err
	}
	want := "that the agent repairs \"" + strings.Join(d.command, " ") + "\""
	_, err = await(ctx, repairLimit, want, func() (string, error) {
		now, err := n.state()
		return before.Diff(now), err
	})
	return time.Since(start), err
}
