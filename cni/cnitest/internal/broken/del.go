package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/cnikit/cnikit/cni"
)

func delFaults() map[string]fault {
	return map[string]fault{
		"del-prints": after(cni.CommandDel, func(c *call) {
			if c.exit == 0 {
				c.stdout = []byte("{}\n")
			}
		}),
		"del-in-namespace-leaves-file":      delServed(func(inv cni.Invocation) bool { return inv.NetNS == "" || !exists(inv.NetNS) }),
		"del-without-namespace-leaves-file": delServed(func(inv cni.Invocation) bool { return inv.NetNS != "" }),
		"second-del-fails": delChecked(func(inv cni.Invocation) bool {
			return previous(inv) == nil || exists(recordOf(inv))
		}, "there is no such attachment"),
		"unknown-del-fails": delChecked(func(inv cni.Invocation) bool {
			return previous(inv) != nil || exists(recordOf(inv))
		}, "there is no such attachment"),
		"del-takes-all-of-the-container": around("chained", cni.CommandDel, func(inv cni.Invocation, next serve) ([]byte, error) {
			for _, path := range records(dataDir(inv)) {
				if strings.HasPrefix(filepath.Base(path), inv.ContainerID) {
					_ = remove(path)
				}
			}
			return next(inv)
		}),
		"del-needs-namespace": delChecked(func(inv cni.Invocation) bool { return inv.NetNS != "" }, "CNI_NETNS is missing"),
		"del-needs-previous-result": delChecked(func(inv cni.Invocation) bool {
			return previous(inv) != nil || !exists(recordOf(inv))
		}, "prevResult is missing"),
		"del-needs-path": before(cni.CommandDel, func(c *call) bool {
			return c.env["CNI_PATH"] != ""
		}, "CNI_PATH is missing"),
		"masquerade-left": {on: "bridge", handle: leaveMasquerade},
	}
}

// delServed is a DEL of the chained plugin that does something only if a condition holds.
func delServed(when func(cni.Invocation) bool) fault {
	return around("chained", cni.CommandDel, func(inv cni.Invocation, next serve) ([]byte, error) {
		if !when(inv) {
			return nil, nil
		}
		return next(inv)
	})
}

// delChecked is a DEL of the chained plugin that fails unless a condition holds.
func delChecked(when func(cni.Invocation) bool, complaint string) fault {
	return around("chained", cni.CommandDel, func(inv cni.Invocation, next serve) ([]byte, error) {
		if !when(inv) {
			return nil, cni.Errorf(100, "%s", complaint)
		}
		return next(inv)
	})
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func recordOf(inv cni.Invocation) string { return record(dataDir(inv), inv.ContainerID, inv.IfName) }

// leaveMasquerade adds a masquerade rule with ipMasq, and removes it only while the
// namespace is there.
func leaveMasquerade(ctx context.Context, inv cni.Invocation, next cni.Handler) ([]byte, error) {
	masquerades := string(parse(inv.Config)["ipMasq"]) == "true"
	inv = with(inv, "ipMasq", nil)
	out, err := next.Handle(ctx, inv)
	if err != nil || !masquerades {
		return out, err
	}
	table := tableOf(recordOf(inv))
	switch {
	case inv.Command == cni.CommandAdd:
		return out, masquerade(table)
	case inv.Command == cni.CommandDel && exists(inv.NetNS):
		return out, unmasquerade(table)
	}
	return out, nil
}
