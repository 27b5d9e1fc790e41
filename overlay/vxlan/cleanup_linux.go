package vxlan

import (
	"context"
	"errors"
	"fmt"

	"github.com/cnikit/cnikit/internal/nl"
)

// Cleanup implements [overlay.Backend]: it removes our device and everything on it,
// left-overs with its mark, and our direct routes. Sysctls stay as they are: somebody
// else may rely on them by now. No engine may run on the backend's targets. It needs
// no topology, and works for what another process left. A VXLAN device
// of our name and VNI that has no mark at all stays, and is an error: it may be ours,
// from before it was marked.
func (b *Backend) Cleanup(ctx context.Context) error {
	conn, err := b.kernel.connect()
	if err != nil {
		return fmt.Errorf("clean up vxlan: %w", err)
	}
	if err := errors.Join(b.cleanLinks(ctx, conn), b.cleanRoutes(ctx)); err != nil {
		return fmt.Errorf("clean up vxlan: %w", err)
	}
	return nil
}

func (b *Backend) cleanLinks(ctx context.Context, conn *nl.Conn) error {
	links, err := conn.Links()
	errs := []error{err}
	for _, l := range links {
		v, ours := b.kernel.ours(l)
		switch {
		case ctx.Err() != nil:
		case ours:
			errs = append(errs, conn.DelLink(l))
		case v != nil && v.Name == b.config.Device && v.VxlanId == b.config.VNI && v.Alias == "":
			errs = append(errs, fmt.Errorf("device %s: left alone, it has our name but not our mark; if it is a left-over, remove it by hand",
				b.config.Device))
		}
	}
	return errors.Join(append(errs, ctx.Err())...)
}

// cleanRoutes removes the routes that did not go with the device.
func (b *Backend) cleanRoutes(ctx context.Context) error {
	store := &routes{k: b.kernel}
	seen, err := store.Observe(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for key, r := range seen {
		if ctx.Err() == nil {
			errs = append(errs, store.Delete(ctx, key, r))
		}
	}
	return errors.Join(append(errs, ctx.Err())...)
}
