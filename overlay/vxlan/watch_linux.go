package vxlan

import (
	"context"
	"fmt"

	"github.com/cnikit/cnikit/internal/nl"
	"github.com/cnikit/cnikit/reconcile"
)

// Watch implements [overlay.Backend]: it triggers a look at what an event of the
// kernel may have changed, and at everything when it starts, when a link concerned
// changed, or when events were lost. Our own changes make events, too, and so one
// look more. It returns an error when the kernel cannot be watched.
func (b *Backend) Watch(ctx context.Context, trigger func(...reconcile.Target)) error {
	conn, err := b.kernel.connect()
	if err != nil {
		return fmt.Errorf("watch vxlan: %w", err)
	}
	events, err := nl.Subscribe(conn.NS(), nl.LinkEvent, nl.AddrEvent, nl.RouteEvent, nl.NeighEvent, nl.NetconfEvent)
	if err != nil {
		return fmt.Errorf("watch vxlan: %w", err)
	}
	defer func() { _ = events.Close() }()
	trigger(b.Targets()...)
	for {
		batch, err := events.Receive(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("watch vxlan: %w", err)
		}
		if targets := b.concerned(batch); len(targets) > 0 {
			trigger(targets...)
		}
	}
}

// concerned returns the targets whose state may have changed.
func (b *Backend) concerned(events []nl.Event) []reconcile.Target {
	tunnel, parent := b.kernel.seen()
	hit := map[reconcile.Target]bool{}
	for _, e := range events {
		for _, t := range b.concernedBy(e, tunnel, parent) {
			hit[t] = true
		}
	}
	var targets []reconcile.Target
	for _, t := range b.Targets() {
		if hit[t] {
			targets = append(targets, t)
		}
	}
	return targets
}

// concernedBy knows what the kernel does without saying so: a device that goes down
// or changes its MAC address loses routes and neighbours, one that loses its last
// IPv4 address loses IPv4 routes. While the device or its underlay is missing, any
// link may become it; an underlay address may appear on any link.
func (b *Backend) concernedBy(e nl.Event, tunnel, parent int) []reconcile.Target {
	onTunnel, onParent := e.Link == tunnel && tunnel != 0, e.Link == parent && parent != 0
	switch e.Kind {
	case nl.Overflow:
		return b.Targets()
	case nl.LinkEvent:
		if onTunnel || onParent || tunnel == 0 || parent == 0 {
			return b.Targets()
		}
	case nl.AddrEvent:
		if onTunnel {
			return []reconcile.Target{b.addresses, b.routes}
		}
		return []reconcile.Target{b.devices, b.routes}
	case nl.RouteEvent:
		if onTunnel || onParent || e.Link == 0 { // 0: over several links
			return []reconcile.Target{b.routes}
		}
	case nl.NeighEvent:
		if onTunnel {
			return []reconcile.Target{b.neighbors, b.fdb}
		}
	case nl.NetconfEvent:
		if onTunnel {
			return []reconcile.Target{b.devices, b.sysctls}
		}
		if e.Link < 0 {
			return []reconcile.Target{b.sysctls}
		}
	case nl.RuleEvent:
	}
	return nil
}
