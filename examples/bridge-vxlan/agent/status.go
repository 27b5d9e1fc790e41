package main

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cnikit/cnikit/cni/install"
	"github.com/cnikit/cnikit/overlay"
	"github.com/cnikit/cnikit/overlay/file"
	"github.com/cnikit/cnikit/reconcile"
)

// report is what the status file says. Ready means that pods can be attached;
// problems and failing keys may concern other nodes alone.
type report struct {
	Node     string                  `json:"node"`
	Ready    bool                    `json:"ready"`
	Reason   string                  `json:"reason,omitempty"` // why not ready
	MTU      int                     `json:"mtu,omitempty"`    // of pods, in bytes
	Source   []string                `json:"source,omitempty"` // what is wrong with the topology file
	Problems []overlay.Problem       `json:"problems"`
	Targets  map[string]targetReport `json:"targets"`
}

type targetReport struct {
	Converged bool              `json:"converged"`
	Failing   map[string]string `json:"failing,omitempty"` // key to error
	Held      []string          `json:"held,omitempty"`    // deletions held back
}

// wantStatus has the status file say how things stand. What a round under way will
// settle is not published: a restart must not look like an outage.
func (a *agent) wantStatus(t overlay.Topology, mtu int) {
	status := a.engine.Status()
	reason, settled := a.unready(t, status)
	if !settled {
		return
	}
	r := report{
		Node: a.opts.node, Ready: reason == "", Reason: reason, MTU: mtu,
		Problems: t.Problems, Targets: a.reportTargets(status),
	}
	for _, err := range a.trouble {
		r.Source = append(r.Source, err.Error())
	}
	if r.Problems == nil {
		r.Problems = []overlay.Problem{}
	}
	content, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		a.log.Error("no status", "error", err)
		return
	}
	a.status.Replace(map[string]install.File{filepath.Base(a.opts.status): {Content: append(content, '\n')}})
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
	for _, target := range a.backend.Essential() {
		needed[target.Name()] = true
	}
	settled = true
	for _, target := range s.Targets {
		switch {
		case !needed[target.Name] || target.Converged:
		case len(target.Failing) > 0:
			return target.Failing[0].Error(), true
		default:
			settled = false
		}
	}
	return "", settled
}

// homeless says why the own node has no place in the topology, or why there is no
// topology. What is wrong with the file comes first: it is the cause of the rest.
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
		reasons = slices.Concat(others, absent)
	}
	return strings.Join(reasons, "; "), len(reasons) > 0
}

// ownTrouble returns what is wrong with the own entry of the topology file, and with the
// rest of the file; lost: the own entry cannot be used at all.
func (a *agent) ownTrouble() (own, others []string, lost bool) {
	for _, err := range a.trouble {
		var entry *file.EntryError
		if errors.As(err, &entry) && entry.Node == a.opts.node {
			own, lost = append(own, err.Error()), lost || !entry.Used
			continue
		}
		others = append(others, err.Error())
	}
	return own, others, lost
}

// reportTargets leaves out the status file itself: what it says must not depend on
// its being written.
func (a *agent) reportTargets(s reconcile.Status) map[string]targetReport {
	targets := make(map[string]targetReport, len(s.Targets))
	for _, t := range s.Targets {
		if t.Name == a.status.Name() {
			continue
		}
		r := targetReport{Converged: t.Converged, Held: t.Held}
		for _, e := range t.Failing {
			if r.Failing == nil {
				r.Failing = map[string]string{}
			}
			r.Failing[e.Key] = e.Err.Error()
		}
		targets[t.Name] = r
	}
	return targets
}
