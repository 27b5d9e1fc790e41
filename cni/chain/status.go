package chain

import (
	"context"
	"fmt"

	"github.com/cnikit/cnikit/cni"
)

// Status asks the plugins in order whether they can serve an ADD and returns the first error; [cni.Error] tells by its code how bad it is.
// Versions before 1.1.0 have no STATUS: nothing runs and nil is returned. A failing Status forbids nothing.
func (r Runner) Status(ctx context.Context, l *List) error {
	if err := checkList(l); err != nil {
		return fmt.Errorf("ask for status: %w", err)
	}
	if !atLeast(l.Version(), statusAndGC) {
		return nil
	}
	c := call{key: key{network: l.Name}}
	return r.run(l, c).forward(ctx, parameters{command: cni.CommandStatus})
}
