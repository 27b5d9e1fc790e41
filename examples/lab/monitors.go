package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cnikit/cnikit/cni/cnitest"
)

// quiet is how long the lab listens in a cluster in which nothing happens.
const quiet = 1500 * time.Millisecond

// monitors listen to what the kernel announces on some nodes.
type monitors struct {
	nodes []*node
	open  []*cnitest.Monitor
}

func listen(nodes ...*node) (*monitors, error) {
	m := &monitors{nodes: nodes}
	for _, n := range nodes {
		one, err := n.ns.Monitor()
		if err != nil {
			return nil, errors.Join(err, m.silence("nothing"))
		}
		m.open = append(m.open, one)
	}
	return m, nil
}

// silence stops listening. It returns a failure when a node announced anything.
func (m *monitors) silence(when string) error {
	var heard []string
	for i, one := range m.open {
		changes, err := one.Changes()
		one.Close()
		if err != nil {
			heard = append(heard, err.Error())
		}
		for _, c := range changes {
			heard = append(heard, m.nodes[i].member.Name+": "+c.String())
		}
	}
	m.open = nil
	if len(heard) > 0 {
		return &failure{"no write on any node " + when, fmt.Sprintf("%s announced:\n%s", count(len(heard), "change"), strings.Join(heard, "\n"))}
	}
	return nil
}

// stayIdle tells the agents again what they know, so that each has something to look at
// and nothing to do, and wants no write from them.
func (l *lab) stayIdle(ctx context.Context) error {
	if err := l.calmDown(ctx); err != nil {
		return err
	}
	m, err := listen(l.nodes...)
	if err != nil {
		return err
	}
	if err := l.publish(); err != nil {
		return errors.Join(err, m.silence("meanwhile"))
	}
	select {
	case <-ctx.Done():
		return errors.Join(context.Cause(ctx), m.silence("meanwhile"))
	case <-time.After(quiet):
	}
	if err := m.silence("while nothing changed"); err != nil {
		return err
	}
	l.out.say("for %s no node announced a change of a link, address, route, rule, neighbour or forwarding entry", quiet)
	return nil
}

// calmDown waits for what the kernel still does because of the steps before: it tries out
// new link-local addresses for a second or two and then announces them (RFC 4862, DAD).
func (l *lab) calmDown(ctx context.Context) error {
	_, err := await(ctx, patience, "no tentative address on any node", func() (string, error) {
		for _, n := range l.nodes {
			out, err := n.ns.Command(ctx, "ip", "-6", "-oneline", "address", "show", "tentative").Output()
			if err != nil || len(out) > 0 {
				return n.member.Name + ": " + string(out), err
			}
		}
		return "", nil
	})
	return err
}
