package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/cnikit/cnikit/cni/cnitest"
	"github.com/cnikit/cnikit/overlay"
)

// agentStatus is what the lab reads of an agent's status file.
type agentStatus struct {
	Ready    bool              `json:"ready"`
	Reason   string            `json:"reason"`
	MTU      int               `json:"mtu"`
	Problems []overlay.Problem `json:"problems"`
	Targets  map[string]struct {
		Converged bool              `json:"converged"`
		Failing   map[string]string `json:"failing"`
	} `json:"targets"`
}

func (n *node) status() (agentStatus, error) {
	var s agentStatus
	data, err := os.ReadFile(n.statusFile())
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	return s, err
}

// unready says why the agent does not consider its work done, or "".
func (n *node) unready() string {
	s, err := n.status()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Sprintf("the agent of %s has written no status%s", n.member.Name, n.lastWords())
	case err != nil:
		return err.Error()
	case !s.Ready:
		return fmt.Sprintf("the agent of %s says: not ready, %s", n.member.Name, s.Reason)
	}
	var wrong []string
	for name, target := range s.Targets {
		if !target.Converged {
			wrong = append(wrong, fmt.Sprintf("the agent of %s says: target %s has not converged %v", n.member.Name, name, target.Failing))
		}
	}
	slices.Sort(wrong)
	return strings.Join(wrong, "\n")
}

// lastWords is the end of the node's log.
func (n *node) lastWords() string {
	data, err := os.ReadFile(n.log.Name())
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	if err != nil || lines[0] == "" {
		return ""
	}
	return "; its last words:\n" + strings.Join(lines[max(0, len(lines)-5):], "\n")
}

// missing says what of another node is not in the state, or "".
func missing(s cnitest.State, other overlay.Node) string {
	text := s.String()
	var wrong []string
	for _, want := range wanted(other) {
		if !strings.Contains(text, want) {
			wrong = append(wrong, "no "+strings.TrimSpace(want))
		}
	}
	return strings.Join(wrong, ", ")
}

// wanted is what a node must have for another one: per family a route and a neighbour,
// and one FDB entry.
func wanted(other overlay.Node) []string {
	want := []string{"fdb " + overlay.TunnelMAC(other.UID).String() + " dev " + device + " dst " + other.Addresses[0]}
	for i, addr := range tunnelAddrs(other) {
		family := []string{"ipv4", "ipv6"}[i]
		want = append(want, "route "+family+" "+other.PodCIDRs[i]+" ", "neighbour "+addr+" dev "+device+" ")
	}
	return want
}

// settle waits until every agent is done and every node has what it needs for every
// other one.
func (l *lab) settle(ctx context.Context) (time.Duration, error) {
	return await(ctx, patience, "all agents ready and every node known to every other", func() (string, error) {
		for _, n := range l.nodes {
			if wrong := n.unready(); wrong != "" {
				return wrong, nil
			}
			state, err := n.state()
			if err != nil {
				return "", err
			}
			for _, other := range l.nodes {
				if wrong := missing(state, other.member); other != n && wrong != "" {
					return n.member.Name + " lacks of " + other.member.Name + ": " + wrong, nil
				}
			}
		}
		return "", nil
	})
}
