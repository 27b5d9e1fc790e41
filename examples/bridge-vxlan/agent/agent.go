package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"path/filepath"
	"sync"

	"github.com/cnikit/cnikit/cni/install"
	"github.com/cnikit/cnikit/overlay"
	"github.com/cnikit/cnikit/overlay/vxlan"
	"github.com/cnikit/cnikit/reconcile"
)

// The rest comes after the data path, which has the phases below eight.
const (
	bridgePhase      = 8
	executablesPhase = 9
	conflistPhase    = 10
	statusPhase      = 11
)

// agent is the wiring: what feeds what.
type agent struct {
	opts options
	log  *slog.Logger

	source      overlay.Source
	tracker     *overlay.Tracker
	backend     *vxlan.Backend
	gateways    *gateways
	executables *install.Executables // nil: they are somebody else's affair
	conflist    *install.Files
	status      *install.Files // nil: no status file
	engine      *reconcile.Engine

	hostHas []netip.Prefix // destinations that the planner knows of; used at the start and by rounds only
	looked  bool

	updating sync.Mutex     // conflist and status follow one thing at a time
	trouble  []error        // with the source, as it is now
	unfit    string         // why no pod can be attached by a conflist
	flaw     string         // why no new conflist can be made, while the one that is there will do
	kept     []byte         // that one; nil: not needed yet, or none is there
	madeFor  []netip.Prefix // Pod CIDRs of the conflist that is there; nil: not known
	logged   *report        // what the log says of readiness; nil: nothing yet
	warnings []string       // of this host, as last looked for
	before   *report        // what an earlier run has published, while nothing newer is known; nil: nothing, or not ready
}

func newAgent(opts options, log *slog.Logger) (*agent, error) {
	a := &agent{opts: opts, log: log}
	if err := a.addTargets(); err != nil {
		return nil, err
	}
	var err error
	a.engine, err = reconcile.New(reconcile.Options{Targets: a.targets(), Resync: opts.resync, Log: log, OnRound: a.onRound})
	if err != nil {
		return nil, err
	}
	a.tracker = overlay.NewTracker(a.backend, overlay.TrackerOptions{
		Local:      overlay.Local{NodeName: opts.node},
		OnTopology: a.onTopology,
		OnProblems: a.onProblems,
		OnError:    func(err error) { log.Error("topology refused", "error", err) },
	})
	a.source, err = a.newSource()
	return a, err
}

func (a *agent) addTargets() (err error) {
	o := a.opts
	if a.backend, err = vxlan.New(o.tunnel()); err != nil {
		return err
	}
	a.gateways = newGateways(o.bridge)
	if o.binDir != "" {
		if a.executables, err = o.newExecutables(executablesPhase); err != nil {
			return err
		}
	}
	a.conflist, err = install.NewFiles("conflist", o.confDir, install.Options{
		Names: []string{o.conflist, o.conflist + asideSuffix}, MakeDir: true, Phase: conflistPhase, After: a.needed(),
	})
	if err != nil || o.status == "" {
		return err
	}
	a.status, err = install.NewFiles("status", filepath.Dir(o.status), install.Options{
		Names: []string{filepath.Base(o.status)}, MakeDir: true, Phase: statusPhase,
	})
	return err
}

// needed are the targets without which no pod can be attached, whatever ails single
// peers. The conflist waits for them.
func (a *agent) needed() []reconcile.Target {
	needed := append(a.backend.Essential(), a.gateways)
	if a.executables != nil {
		needed = append(needed, a.executables)
	}
	return needed
}

func (a *agent) targets() []reconcile.Target {
	targets := append(a.backend.Targets(), a.gateways)
	if a.executables != nil {
		targets = append(targets, a.executables)
	}
	targets = append(targets, a.conflist)
	if a.status != nil {
		targets = append(targets, a.status)
	}
	return targets
}

// run works until ctx ends or a part of the agent cannot go on.
func (a *agent) run(ctx context.Context) error {
	unlock, err := a.opts.lock(ctx, a.log)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	defer unlock()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer a.backend.Close() //nolint:errcheck // what it set up stays
	if a.before = a.lastWords(); a.before != nil {
		a.madeFor = a.before.PodCIDRs
	}
	a.lookAround()
	a.lookForWarnings()
	a.update()
	var parts sync.WaitGroup
	for name, run := range a.parts() {
		parts.Go(func() {
			if err := run(ctx); err != nil {
				cancel(fmt.Errorf("%s: %w", name, err))
			}
		})
	}
	parts.Wait()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// parts are what runs side by side.
func (a *agent) parts() map[string]func(context.Context) error {
	parts := map[string]func(context.Context) error{
		"topology": func(ctx context.Context) error { return a.source.Run(ctx, a.tracker) },
		"engine":   a.engine.Run,
		"tunnel":   func(ctx context.Context) error { return a.backend.Watch(ctx, a.engine.Trigger) },
		"conflist": func(ctx context.Context) error { return a.conflist.Watch(ctx, a.engine.Trigger) },
	}
	if a.executables != nil {
		parts["executables"] = func(ctx context.Context) error { return a.executables.Watch(ctx, a.engine.Trigger) }
	}
	if a.status != nil {
		parts["status"] = func(ctx context.Context) error { return a.status.Watch(ctx, a.engine.Trigger) }
	}
	return parts
}

func (a *agent) onTopology(overlay.Topology) {
	a.lookForWarnings()
	a.update()
}

func (a *agent) onProblems(problems []overlay.Problem) {
	for _, p := range problems {
		a.log.Warn("node left out, in whole or in part", "node", p.Node, "kind", p.Kind, "reason", p.Message)
	}
}

// onRound brings the planner, conflist and status up to date with what only the kernel
// knows, such as the routes of the host and the MTU of the underlay.
func (a *agent) onRound(r reconcile.Round) {
	if r.Looks > 0 {
		a.lookAround()
		a.lookForWarnings()
	}
	logRound(a.log, r)
	a.update()
}

// logRound tells of changes. Of failures the engine tells.
func logRound(log *slog.Logger, r reconcile.Round) {
	if r.Applied+r.Deleted > 0 {
		log.Info("round", "number", r.Number, "took", r.Took, "applied", r.Applied, "deleted", r.Deleted, "held", r.Held)
	}
}

// update says anew what conflist and status should contain. What is the same as
// before is not written.
//
// A bridge that is none holds back the first conflist only. Later, pods may be attached,
// which a runtime cannot delete without one, and STATUS says what is wrong. Runtimes that
// have no STATUS (CNI 1.0) go on to schedule pods here, whose ADD fails with the plugin's
// own error.
func (a *agent) update() {
	a.updating.Lock()
	defer a.updating.Unlock()
	topology, known := a.tracker.Topology()
	mtu := a.backend.MTU()
	if reason := badBridge(a.opts.bridge); reason != "" {
		a.unfit = reason
	} else if topology.Self != nil && mtu != 0 {
		a.wantConflist(*topology.Self, mtu)
	}
	a.wantStatus(topology, known, mtu)
}
