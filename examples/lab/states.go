package main

import (
	"context"
	"strings"

	"github.com/cnikit/cnikit/cni/cnitest"
)

// states are those of all nodes.
func (l *lab) states() ([]cnitest.State, error) {
	var all []cnitest.State
	for _, n := range l.nodes {
		state, err := n.state()
		if err != nil {
			return nil, err
		}
		all = append(all, state)
	}
	return all, nil
}

// asBefore waits until the nodes have the states that they had.
func (l *lab) asBefore(ctx context.Context, before []cnitest.State) error {
	_, err := await(ctx, repairLimit, "every node as it was before the step", func() (string, error) {
		now, err := l.states()
		if err != nil {
			return "", err
		}
		var wrong []string
		for i, n := range l.nodes {
			if diff := before[i].Diff(now[i]); diff != "" {
				wrong = append(wrong, n.member.Name+":\n"+diff)
			}
		}
		return strings.Join(wrong, "\n"), nil
	})
	return err
}
