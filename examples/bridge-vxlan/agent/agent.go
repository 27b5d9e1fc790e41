package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"path/filepath"
	"sync"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/cni/bridge"
	"github.com/cnikit/cnikit/cni/install"
	"github.com/cnikit/cnikit/cni/netif"
	"github.com/cnikit/cnikit/overlay"
	"github.com/cnikit/cnikit/overlay/file"
	"github.com/cnikit/cnikit/overlay/vxlan"
	"github.com/cnikit/cnikit/reconcile"
)

// The files come after the data path, which has the phases below ten.
const (
	conflistPhase = 10
	statusPhase   = 11
)

// agent is the wiring: what feeds what.
type agent struct {
	opts options
	log  *slog.Logger

	source   *file.Source
	tracker  *overlay.Tracker
	backend  *vxlan.Backend
	conflist *install.Files
	status   *install.Files // nil: no status file
	engine   *reconcile.Engine

	hostHas []netip.Prefix // destinations that the planner knows of; used at the start and by rounds only
	looked  bool

	updating sync.Mutex // conflist and status follow one thing at a time
	trouble  []error    // with the topology file, as it is now
	unfit    string     // why there can be no conflist for this node
}

func newAgent(opts options, log *slog.Logger) (*agent, error) {
	a := &agent{opts: opts, log: log}
	if err := a.addTargets(); err != nil {
		return nil, err
	}
	targets := append(a.backend.Targets(), a.conflist)
	if a.status != nil {
		targets = append(targets, a.status)
	}
	var err error
	a.engine, err = reconcile.New(reconcile.Options{Targets: targets, Resync: opts.resync, Log: log, OnRound: a.onRound})
	if err != nil {
		return nil, err
	}
	a.tracker = overlay.NewTracker(a.backend, overlay.TrackerOptions{
		Local:      overlay.Local{NodeName: opts.node},
		OnTopology: func(overlay.Topology) { a.update() },
		OnProblems: a.onProblems,
		OnError:    func(err error) { log.Error("topology refused", "error", err) },
	})
	a.source = file.New(opts.topology, file.Options{
		Log: log, OnError: a.onSourceError, OnGood: func() { a.onSourceError(nil) },
	})
	return a, nil
}

func (a *agent) addTargets() (err error) {
	o := a.opts
	a.backend, err = vxlan.New(o.tunnel())
	if err != nil {
		return err
	}
	// Pods can be attached when the tunnel stands, whatever ails single peers.
	a.conflist, err = install.NewFiles("conflist", o.confDir, install.Options{
		Names: []string{o.conflist}, MakeDir: true, Phase: conflistPhase, After: a.backend.Essential(),
	})
	if err != nil || o.status == "" {
		return err
	}
	a.status, err = install.NewFiles("status", filepath.Dir(o.status), install.Options{
		Names: []string{filepath.Base(o.status)}, MakeDir: true, Phase: statusPhase,
	})
	return err
}

// run works until ctx ends or a part of the agent cannot go on.
func (a *agent) run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer a.backend.Close() //nolint:errcheck // what it set up stays
	a.lookAround()
	a.update()
	var parts sync.WaitGroup
	for name, run := range map[string]func(context.Context) error{
		"topology": func(ctx context.Context) error { return a.source.Run(ctx, a.tracker) },
		"engine":   a.engine.Run,
		"tunnel":   func(ctx context.Context) error { return a.backend.Watch(ctx, a.engine.Trigger) },
		"conflist": func(ctx context.Context) error { return a.conflist.Watch(ctx, a.engine.Trigger) },
	} {
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

func (a *agent) onProblems(problems []overlay.Problem) {
	for _, p := range problems {
		a.log.Warn("node left out, in whole or in part", "node", p.Node, "kind", p.Kind, "reason", p.Message)
	}
}

func (a *agent) onSourceError(err error) {
	a.updating.Lock()
	a.trouble = flatten(err)
	a.updating.Unlock()
	a.update()
}

// flatten returns the errors that [errors.Join] has joined.
func flatten(err error) []error {
	var joined interface{ Unwrap() []error }
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &joined):
		return []error{err}
	}
	var errs []error
	for _, e := range joined.Unwrap() {
		errs = append(errs, flatten(e)...)
	}
	return errs
}

// onRound brings the planner, conflist and status up to date with what only the kernel
// knows, such as the routes of the host and the MTU of the underlay.
func (a *agent) onRound(r reconcile.Round) {
	if r.Looks > 0 {
		a.lookAround()
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
func (a *agent) update() {
	a.updating.Lock()
	defer a.updating.Unlock()
	topology, _ := a.tracker.Topology()
	mtu := a.backend.MTU()
	if reason := badBridge(a.opts.bridge); reason != "" {
		a.unfit = reason
		a.conflist.Replace(nil) // no pod could be attached
	} else if topology.Self != nil && mtu != 0 {
		a.wantConflist(*topology.Self, mtu)
	}
	if a.status != nil {
		a.wantStatus(topology, mtu)
	}
}

// badBridge says why the bridge plugin could not use an interface of that name, "" when
// it could, or would make it. What cannot be looked at counts as good: the plugin will
// say what is wrong.
func badBridge(name string) string {
	host, err := netif.Current()
	if err != nil {
		return ""
	}
	defer host.Close()
	link, err := host.Link(name)
	if err != nil || link.Kind == "bridge" {
		return ""
	}
	return (&cni.FieldError{
		Key: "-bridge", Value: name, Reason: fmt.Sprintf("is an interface of kind %q, not a bridge", link.Kind),
		Fix: "use the name of a bridge, or one that no interface has",
	}).Error()
}

// wantConflist leaves the conflist as it is when it cannot be made.
func (a *agent) wantConflist(self overlay.Peer, mtu int) {
	content, err := a.opts.render(self.PodCIDRs, mtu)
	if err != nil {
		a.unfit = fmt.Sprintf("conflist: %v", err)
		return
	}
	a.unfit = ""
	a.conflist.Replace(map[string]install.File{a.opts.conflist: {Content: content}})
}

// cleanup removes what an agent with the same options has set up. Pods must be
// gone: a bridge with ports is left alone, with an error.
func (a *agent) cleanup(ctx context.Context) error {
	errs := []error{a.conflist.Cleanup(ctx), a.backend.Cleanup(ctx), bridge.Cleanup(ctx, a.opts.bridge)}
	if a.status != nil {
		errs = append(errs, a.status.Cleanup(ctx))
	}
	return errors.Join(append(errs, a.backend.Close())...)
}
