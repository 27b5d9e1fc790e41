package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/cnikit/cnikit/cni/cnitest"
)

const (
	// flowInterval makes a hundred messages a second.
	flowInterval = 10 * time.Millisecond
	// perPhase is how many answers each flow must get before, between and after.
	perPhase = 100
)

// flow is traffic between two pods.
type flow struct {
	*cnitest.Flow
	name   string
	result cnitest.FlowReport // when it has ended
}

// openFlows opens a UDP echo and a TCP stream per family.
func openFlows(ctx context.Context, from, to *pod) ([]*flow, error) {
	var all []*flow
	for _, f := range families() {
		udp, err := cnitest.OpenUDP(ctx, from.ns, to.ns, to.addrs[f], flowInterval)
		if err != nil {
			return all, err
		}
		all = append(all, &flow{Flow: udp, name: "UDP echo, " + string(f)})
		tcp, err := cnitest.OpenTCP(ctx, from.ns, to.ns, to.addrs[f], flowInterval)
		if err != nil {
			return all, err
		}
		all = append(all, &flow{Flow: tcp, name: "TCP stream, " + string(f)})
	}
	return all, nil
}

// runWhile keeps the flows running while fn runs, and then ends them.
func runWhile(ctx context.Context, flows []*flow, fn func() error) error {
	running, stop := context.WithCancel(ctx)
	var workers sync.WaitGroup
	for _, f := range flows {
		workers.Go(func() { f.result = f.Run(running) })
	}
	err := fn()
	stop()
	workers.Wait()
	return err
}

// phase waits until each flow got its answers once more.
func phase(ctx context.Context, flows []*flow) error {
	until := map[*flow]int{}
	for _, f := range flows {
		until[f] = f.Report().Back + perPhase
	}
	_, err := await(ctx, patience, fmt.Sprintf("%d more answers in each flow", perPhase), func() (string, error) {
		for _, f := range flows {
			if report := f.Report(); report.Back < until[f] {
				return f.name + ": " + report.String(), nil
			}
		}
		return "", nil
	})
	return err
}

// restartAgents kills the agents of two nodes under traffic between them and starts them
// again. No packet may be lost, and the new agents must find everything as they want it.
func (l *lab) restartAgents(ctx context.Context) error {
	nodes := l.nodes[:2]
	flows, err := openFlows(ctx, nodes[0].pods[0], nodes[1].pods[0])
	if err != nil {
		for _, f := range flows {
			f.Close()
		}
		return err
	}
	err = runWhile(ctx, flows, func() error { return l.killAndRestart(ctx, nodes, flows) })
	if err != nil {
		return err
	}
	var rows [][]string
	var wrong []error
	for _, f := range flows {
		r := f.result
		rows = append(rows, []string{f.name, fmt.Sprint(r.Sent), fmt.Sprint(r.Lost()), milliseconds(r.MaxGap)})
		if r.Lost() > 0 || r.Err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %s", f.name, r))
		}
	}
	if len(wrong) > 0 {
		return &failure{"no packet lost and no stream reset", errors.Join(wrong...).Error()}
	}
	l.out.table([]string{"FLOW", "SENT", "LOST", "LONGEST GAP"}, rows)
	l.out.say("from %s to %s, before, without and with the new agents; no reset. The restart wrote nothing",
		nodes[0].pods[0].name, nodes[1].pods[0].name)
	return nil
}

func (l *lab) killAndRestart(ctx context.Context, nodes []*node, flows []*flow) error {
	if err := phase(ctx, flows); err != nil {
		return err
	}
	for _, n := range nodes {
		if err := n.killAgent(); err != nil {
			return err
		}
	}
	if err := phase(ctx, flows); err != nil {
		return err
	}
	m, err := listen(nodes...)
	if err != nil {
		return err
	}
	err = l.restart(ctx, nodes, flows)
	return errors.Join(err, m.silence("while agents restarted on nodes where everything is in place"))
}

func (l *lab) restart(ctx context.Context, nodes []*node, flows []*flow) error {
	for _, n := range nodes {
		if err := n.startAgent(ctx); err != nil {
			return err
		}
	}
	if _, err := l.settle(ctx); err != nil {
		return err
	}
	return phase(ctx, flows)
}
