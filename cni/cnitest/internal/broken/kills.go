package main

import (
	"context"
	"os"
	"path/filepath"

	"github.com/cnikit/cnikit/cni"
)

func killFaults() map[string]fault {
	return map[string]fault{
		"add-in-two-steps": {on: "chained", handle: func(ctx context.Context, inv cni.Invocation, next cni.Handler) ([]byte, error) {
			if inv.Command != cni.CommandAdd {
				return next.Handle(ctx, inv)
			}
			temporary := hidden(inv, "tmp")
			if err := os.WriteFile(temporary, nil, 0o600); err != nil {
				return nil, cni.AsError(err)
			}
			out, err := next.Handle(ctx, inv)
			_ = os.Remove(temporary)
			return out, err
		}},
		"del-in-two-steps": around("chained", cni.CommandDel, func(inv cni.Invocation, next serve) ([]byte, error) {
			trash := hidden(inv, "trash")
			if err := os.Rename(recordOf(inv), trash); err == nil {
				_ = os.Remove(trash)
			}
			return next(inv)
		}),
	}
}

// hidden is a file that only the call that makes it knows.
func hidden(inv cni.Invocation, kind string) string {
	return filepath.Join(dataDir(inv), inv.ContainerID+"."+kind)
}
