package chain

import (
	"context"
	"errors"
	"fmt"

	"github.com/cnikit/cnikit/cni"
)

// Check asks every plugin in order whether the attachment is as its ADD made it, and stops at the first error. Parameters that a leaves out
// come from the ADD; those it gives must be the same. Nothing runs, and nil is returned, when the configuration says disableCheck.
//
// Without a cached ADD the error matches [ErrNotAttached], with a damaged one [ErrDamaged]. Versions before 0.4.0 have no CHECK: the error
// matches errors.ErrUnsupported.
func (r Runner) Check(ctx context.Context, l *List, a Attachment) error {
	c, err := newCall(l, a)
	if err != nil {
		return fmt.Errorf("check attachment: %w", err)
	}
	if l.DisableCheck {
		return nil
	}
	if !atLeast(l.Version(), chainedDEL) {
		return fmt.Errorf("check attachment: network %s: version %s has no CHECK, it came with %s: %w", l.Name, l.Version(), chainedDEL, errors.ErrUnsupported)
	}
	cached, err := r.cache().load(c.key)
	if err != nil {
		return fmt.Errorf("check attachment: %w", err)
	}
	previous, err := cached.result(l.Version())
	if err != nil {
		return fmt.Errorf("check attachment: %s: %w", c.key, err)
	}
	c = c.recall(cached)
	return r.run(l, c).forward(ctx, parameters{command: cni.CommandCheck, capabilities: c.capabilities, previous: previous})
}
