package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"

	"github.com/cnikit/cnikit/cni/cnitest"
	"github.com/cnikit/cnikit/overlay"
	"github.com/cnikit/cnikit/overlay/file"
)

// lab is one run: a cluster and the steps that it goes through.
type lab struct {
	options
	out    *console
	before hook

	wire     *cnitest.Namespace // holds the underlay
	underlay *cnitest.Underlay
	nodes    []*node
}

// run goes through the steps and cleans up.
func (l *lab) run(ctx context.Context) int {
	l.out.banner(l.options)
	if err := l.removeLeftovers(); err != nil {
		l.out.fail("leftovers", err, l.dir())
		return exitFailed
	}
	code := l.walk(ctx)
	if l.keep && code == exitOK {
		return l.leaveUp()
	}
	return l.finish(code)
}

// walk goes through the steps until one fails.
func (l *lab) walk(ctx context.Context) int {
	for _, s := range l.steps() {
		err := l.walkStep(ctx, s)
		switch {
		case err == nil:
		case ctx.Err() != nil:
			l.out.say("interrupted in step %q", s.name)
			return exitInterrupted
		default:
			l.out.fail(s.name, err, l.saveLogs())
			return exitFailed
		}
	}
	return exitOK
}

func (l *lab) walkStep(ctx context.Context, s step) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l.out.title(s.name, s.about)
	if l.before != nil {
		if err := l.before(ctx, s.name, l); err != nil {
			return err
		}
	}
	return s.run(l, ctx)
}

// pods are those of all nodes.
func (l *lab) pods() []*pod {
	var all []*pod
	for _, n := range l.nodes {
		all = append(all, n.pods...)
	}
	return all
}

func (l *lab) topologyFile() string { return filepath.Join(l.dir(), "topology.json") }

// publish tells the agents who is in the cluster: its nodes, and others beside them.
func (l *lab) publish(others ...overlay.Node) error {
	var members []overlay.Node
	for _, n := range l.nodes {
		members = append(members, n.member)
	}
	return file.Write(l.topologyFile(), slices.Concat(members, others))
}

// saveLogs copies what the run wrote to a place that the clean-up does not touch.
func (l *lab) saveLogs() string {
	saved, err := os.MkdirTemp("", "cnikit-lab-"+l.name+"-failed-")
	if err != nil {
		return "none: " + err.Error()
	}
	if err := os.CopyFS(filepath.Join(saved, l.name), os.DirFS(l.dir())); err != nil {
		return saved + " (incomplete: " + err.Error() + ")"
	}
	return filepath.Join(saved, l.name)
}
