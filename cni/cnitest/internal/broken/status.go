package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/cnikit/cnikit/cni"
)

func statusFaults() map[string]fault {
	return map[string]fault{
		"status-fails": around("chained", cni.CommandStatus, func(cni.Invocation, serve) ([]byte, error) {
			return nil, cni.Errorf(cni.CodeNotAvailable, "never ready")
		}),
		"status-prints": after(cni.CommandStatus, func(c *call) { c.stdout = []byte("{}\n") }),
		"status-needs-path": before(cni.CommandStatus, func(c *call) bool {
			return c.env["CNI_PATH"] != ""
		}, "CNI_PATH is missing"),
		"status-misses-delegate": around("bridge", cni.CommandStatus, func(inv cni.Invocation, next serve) ([]byte, error) {
			_, err := next(inv)
			if err != nil && strings.Contains(err.Error(), "plugin not found") {
				return nil, nil
			}
			return nil, err
		}),
		"status-blind-to-exhaustion": around("ipam", cni.CommandStatus, func(inv cni.Invocation, next serve) ([]byte, error) {
			if _, err := next(inv); errors.Is(err, syscall.EROFS) {
				return nil, err
			}
			return nil, nil
		}),
		"status-with-code-100": around("ipam", cni.CommandStatus, func(inv cni.Invocation, next serve) ([]byte, error) {
			_, err := next(inv)
			if err != nil {
				err = cni.Errorf(100, "%s", err.Error())
			}
			return nil, err
		}),
		"status-is-believed": {on: "ipam", handle: believeStatus},
	}
}

// believeStatus serves no ADD any more once a STATUS failed.
func believeStatus(ctx context.Context, inv cni.Invocation, next cni.Handler) ([]byte, error) {
	mark := filepath.Join(dataDir(inv), "not-ready")
	if inv.Command == cni.CommandAdd && exists(mark) {
		return nil, cni.Errorf(cni.CodeNotAvailable, "STATUS said so")
	}
	out, err := next.Handle(ctx, inv)
	if inv.Command == cni.CommandStatus && err != nil {
		if err := os.WriteFile(mark, nil, 0o600); err != nil {
			return nil, cni.AsError(err)
		}
	}
	return out, err
}
