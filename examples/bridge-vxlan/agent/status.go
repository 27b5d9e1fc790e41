package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cnikit/cnikit/cni/install"
	"github.com/cnikit/cnikit/cni/netif"
	"github.com/cnikit/cnikit/overlay"
	"github.com/cnikit/cnikit/reconcile"
)

// report is what the status file says. Ready means that pods can be attached;
// problems and failing keys may concern other nodes alone. Plugins read "ready" and
// "reason", see package cni/bridge.
type report struct {
	Node     string                  `json:"node"`
	Ready    bool                    `json:"ready"`
	Reason   string                  `json:"reason,omitempty"`   // why not ready
	PodCIDRs []netip.Prefix          `json:"podCIDRs,omitempty"` // of this node
	MTU      int                     `json:"mtu,omitempty"`      // of pods, in bytes
	Source   []string                `json:"source,omitempty"`   // what is wrong with the source of the nodes
	Warnings []string                `json:"warnings,omitempty"` // what is wrong with this host, though pods can be attached
	Problems []overlay.Problem       `json:"problems"`           // with nodes
	Targets  map[string]targetReport `json:"targets"`
	Omitted  int                     `json:"omitted,omitempty"` // entries beyond what a list here can have
}

type targetReport struct {
	Converged bool              `json:"converged"`
	Failing   map[string]string `json:"failing,omitempty"` // key to error
	Held      []string          `json:"held,omitempty"`    // deletions held back
}

// listed is how many entries a list of the report has at most: whatever happens to a
// network of thousands of nodes, plugins read the file with every STATUS.
const listed = 100

// shorten cuts a list and counts what it cut off.
func shorten[T any](list []T, omitted *int) []T {
	*omitted += len(list) - min(len(list), listed)
	return list[:min(len(list), listed)]
}

// wantStatus has the status file and the log say how things stand. What a round under way will
// settle is not published: a restart must not look like an outage.
func (a *agent) wantStatus(t overlay.Topology, known bool, mtu int) {
	status := a.engine.Status()
	reason, settled := a.unready(t, status)
	switch {
	case a.before != nil && (!known || !settled):
		a.publish(a.stillSo())
		return
	case !settled:
		return
	}
	a.before = nil
	r := report{Node: a.opts.node, Ready: reason == "", Reason: reason, MTU: mtu}
	if t.Self != nil {
		r.PodCIDRs = t.Self.PodCIDRs
	}
	r.Source = texts(shorten(a.trouble, &r.Omitted))
	r.Warnings = shorten(a.warnings, &r.Omitted)
	if r.Ready && a.flaw != "" {
		r.Warnings = append([]string{a.flaw}, r.Warnings...)
	}
	r.Problems = append([]overlay.Problem{}, shorten(t.Problems, &r.Omitted)...)
	r.Targets = a.reportTargets(status, &r.Omitted)
	a.publish(r)
}

func (a *agent) publish(r report) {
	a.logReadiness(r)
	if a.status == nil {
		return
	}
	content, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		a.log.Error("no status", "error", err)
		return
	}
	a.status.Replace(map[string]install.File{filepath.Base(a.opts.status): {Content: append(content, '\n')}})
}

// logReadiness logs changes of what is otherwise in the status file alone, which is hard
// to get at in a cluster.
func (a *agent) logReadiness(r report) {
	if a.logged != nil && a.logged.Ready == r.Ready && a.logged.Reason == r.Reason {
		return
	}
	a.logged = &r
	if r.Ready {
		a.log.Info("ready: pods can be attached")
		return
	}
	a.log.Warn("not ready", "reason", r.Reason)
}

func texts(errs []error) []string {
	var texts []string
	for _, err := range errs {
		texts = append(texts, err.Error())
	}
	return texts
}

// lastWords returns what an earlier run of the agent has published, if that was ready.
func (a *agent) lastWords() *report {
	if a.status == nil {
		return nil
	}
	said, err := readStatus(a.opts.status)
	if err != nil || !said.Ready {
		return nil
	}
	return &said
}

// stillSo is what an earlier run has published, which holds as long as nothing newer is
// known, and the tunnel stands. A source that is away costs a node as little at the start
// of the agent as later.
func (a *agent) stillSo() report {
	r := *a.before
	r.Source = texts(a.trouble)
	if gone := a.tunnelGone(); gone != "" {
		r.Ready, r.Reason = false, strings.Join(append([]string{gone}, r.Source...), "; ")
		a.before = nil
	}
	return r
}

// tunnelGone says what became of the tunnel since the agent was there last, "" when it
// stands. What cannot be looked at counts as good.
func (a *agent) tunnelGone() string {
	host, err := netif.Current()
	if err != nil {
		return ""
	}
	defer host.Close()
	link, err := host.Link(a.opts.device)
	switch {
	case errors.Is(err, netif.ErrNotFound):
		return fmt.Sprintf("the agent has just started, and the tunnel device %s is not there", a.opts.device)
	case err == nil && !link.Up:
		return fmt.Sprintf("the agent has just started, and the tunnel device %s is down", a.opts.device)
	}
	return ""
}

// unready says why pods cannot be attached, "" when they can. It is not settled while
// the engine has yet to try.
func (a *agent) unready(t overlay.Topology, s reconcile.Status) (reason string, settled bool) {
	switch {
	case t.Self == nil:
		return a.homeless(t)
	case a.unfit != "":
		return a.unfit, true
	}
	needed := map[string]bool{a.conflist.Name(): true}
	for _, target := range a.needed() {
		needed[target.Name()] = true
	}
	settled = true
	for _, target := range s.Targets {
		switch {
		case !needed[target.Name] || target.Converged:
		case len(target.Failing) > 0:
			return explainForeign(target.Failing[0]).Error(), true
		default:
			settled = false
		}
	}
	return "", settled
}

// fewReasons is how much of what is wrong elsewhere goes into the reason.
const fewReasons = 3

// homeless says why the own node has no place in the topology, or why there is no
// topology. What is wrong with the source comes first: it is the cause of the rest.
func (a *agent) homeless(t overlay.Topology) (reason string, settled bool) {
	own, others, lost := a.ownTrouble()
	if lost {
		return strings.Join(own, "; "), true
	}
	absent, known := []string{}, []string{}
	for _, p := range t.Problems {
		switch {
		case p.Node != a.opts.node:
		case p.Kind == overlay.NotHere && p.Value == p.Node:
			absent = append(absent, p.Message)
		default:
			known = append(known, p.Message)
		}
	}
	reasons := slices.Concat(own, known)
	if len(reasons) == 0 {
		reasons = slices.Concat(others[:min(len(others), fewReasons)], absent)
	}
	return strings.Join(reasons, "; "), len(reasons) > 0
}

// reportTargets leaves out the status file itself: what it says must not depend on
// its being written.
func (a *agent) reportTargets(s reconcile.Status, omitted *int) map[string]targetReport {
	targets := make(map[string]targetReport, len(s.Targets))
	for _, t := range s.Targets {
		if a.status != nil && t.Name == a.status.Name() {
			continue
		}
		r := targetReport{Converged: t.Converged, Held: shorten(t.Held, omitted)}
		for _, e := range shorten(t.Failing, omitted) {
			if r.Failing == nil {
				r.Failing = map[string]string{}
			}
			r.Failing[e.Key] = e.Err.Error()
		}
		targets[t.Name] = r
	}
	return targets
}
