package main

import (
	"context"
	"fmt"
)

// step is one thing that the lab does and the proof that it worked.
type step struct {
	name  string
	about string
	run   func(*lab, context.Context) error
}

// steps is the story of the lab. Each step leaves the cluster as it found it, but for the
// first ones, which build it, and the last ones, which take it down.
func (l *lab) steps() []step {
	build := []step{
		{"underlay", fmt.Sprintf("%s, each a network namespace, on a bridge with MTU %d", count(l.nodeCount, "node"), underlayMTU), (*lab).buildNodes},
		{"agents", "a node agent in each, which sets up the tunnel and writes the conflist", (*lab).startAgents},
		{"pods", fmt.Sprintf("%s on each node, by executing the plugins of that conflist", count(l.podCount, "pod")), (*lab).attachPods},
	}
	check := []step{
		{"ping", "every pod to every other pod, each way, in both families", (*lab).pingPairs},
		{"mtu", "the largest packet that passes unfragmented", (*lab).measureMTU},
		{"idle", "a cluster in which nothing happens, and agents that have nothing to do", (*lab).stayIdle},
		{"drift", "an operator breaks things on node1; its agent learns of it by events alone", (*lab).repairDrift},
		{"join", "a new node", (*lab).joinNode},
		{"leave", "the new node goes again", (*lab).leaveNode},
		{"bad nodes", "three nodes that must not be believed", (*lab).refuseBadNodes},
		{"cnitool", "one more pod, attached by the runtime of the CNI project", (*lab).runCNITool},
		{"net1", "a second interface, from a second network that has no default route", (*lab).attachSecondNetwork},
		{"restart", "agents killed with -9 and started again, while traffic flows", (*lab).restartAgents},
		{"delete", "DEL twice, DEL of a namespace that is gone, DEL of what never was", (*lab).deleteTwice},
	}
	takeDown := []step{
		{"take down", "pods detached, agents stopped and uninstalled", (*lab).takeDown},
		{"sweep", "what is left", (*lab).sweep},
	}
	if l.keep {
		takeDown = nil
	}
	return append(append(build, check...), takeDown...)
}
