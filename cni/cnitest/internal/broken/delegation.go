package main

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/cnikit/cnikit/cni"
)

func delegationFaults() map[string]fault {
	return map[string]fault{
		"first-directory-only": delegating(func(inv cni.Invocation, plugin string, next serve) ([]byte, error) {
			if !exists(filepath.Join(inv.Path[0], plugin)) {
				return nil, fmt.Errorf("%w: %s is not in %s", cni.ErrPluginNotFound, plugin, inv.Path[0])
			}
			return next(inv)
		}),
		"delegate-without-arguments": delegating(func(inv cni.Invocation, _ string, next serve) ([]byte, error) {
			inv.Args = ""
			return next(inv)
		}),
		"delegate-without-unknown-keys": delegating(func(inv cni.Invocation, _ string, next serve) ([]byte, error) {
			for key := range parse(inv.Config) {
				if strings.Contains(key, "unknown") {
					inv = with(inv, key, nil)
				}
			}
			return next(inv)
		}),
		"another-address": delegating(func(inv cni.Invocation, _ string, next serve) ([]byte, error) {
			out, err := next(inv)
			return []byte(strings.ReplaceAll(string(out), "198.18.0.5/24", "198.18.0.77/24")), err
		}),
		"standard-error-dropped": delegating(func(inv cni.Invocation, _ string, next serve) ([]byte, error) {
			var err error
			if os.Stderr, err = os.OpenFile(os.DevNull, os.O_WRONLY, 0); err != nil {
				return nil, err
			}
			return next(inv)
		}),
		"type-with-path-mended": {on: "bridge", process: func(c *call, serve func()) {
			var ipam map[string]any
			if decode(c.config()["ipam"], &ipam); ipam["type"] != nil {
				ipam["type"] = path.Base(fmt.Sprint(ipam["type"]))
				c.configure("ipam", ipam)
			}
			serve()
		}},
		"del-not-forwarded": delegating(func(inv cni.Invocation, _ string, next serve) ([]byte, error) {
			if inv.Command == cni.CommandDel && previous(inv) != nil && inv.NetNS != "" && exists(inv.NetNS) {
				return nil, nil
			}
			return next(inv)
		}),
		"del-without-namespace-not-forwarded": delegating(func(inv cni.Invocation, _ string, next serve) ([]byte, error) {
			if inv.Command == cni.CommandDel && inv.NetNS == "" {
				return nil, nil
			}
			return next(inv)
		}),
		"check-not-forwarded":          notForwarded(cni.CommandCheck),
		"gc-not-forwarded":             notForwarded(cni.CommandGC),
		"status-not-forwarded":         notForwarded(cni.CommandStatus),
		"delegate-add-forgiven":        forgiven(cni.CommandAdd, `{"cniVersion": "1.1.0", "ips": [{"address": "198.18.0.9/24"}]}`),
		"delegate-del-forgiven":        forgiven(cni.CommandDel, ""),
		"delegate-check-forgiven":      forgiven(cni.CommandCheck, ""),
		"delegate-gc-forgiven":         forgiven(cni.CommandGC, ""),
		"delegate-status-forgiven":     forgiven(cni.CommandStatus, ""),
		"no-del-after-failed-delegate": noDelAfter(func(err error) bool { return err != nil }),
		"no-del-after-delegate":        noDelAfter(func(err error) bool { return err == nil }),
	}
}

// delegating wraps the calls of the bridge's delegate.
func delegating(wrap func(inv cni.Invocation, plugin string, next serve) ([]byte, error)) fault {
	return fault{on: "bridge", delegate: func(ctx context.Context, plugin string, inv cni.Invocation, next cni.Executor) ([]byte, error) {
		return wrap(inv, plugin, func(inv cni.Invocation) ([]byte, error) { return next.Execute(ctx, plugin, inv) })
	}}
}

// notForwarded is a command that the delegate does not get.
func notForwarded(command cni.Command) fault {
	return delegating(func(inv cni.Invocation, _ string, next serve) ([]byte, error) {
		if inv.Command == command {
			return nil, nil
		}
		return next(inv)
	})
}

// forgiven is a command whose failure, as the kit scripts it, is taken for an answer.
func forgiven(command cni.Command, answer string) fault {
	return delegating(func(inv cni.Invocation, _ string, next serve) ([]byte, error) {
		out, err := next(inv)
		if inv.Command == command && err != nil && strings.Contains(err.Error(), "scripted trouble") {
			return []byte(answer), nil
		}
		return out, err
	})
}

// noDelAfter never gives a delegate the DEL that follows, in the same process, an ADD
// with such an outcome.
func noDelAfter(outcome func(error) bool) fault {
	holds := false
	return delegating(func(inv cni.Invocation, _ string, next serve) ([]byte, error) {
		if inv.Command == cni.CommandDel && holds {
			return nil, nil
		}
		out, err := next(inv)
		if inv.Command == cni.CommandAdd {
			holds = outcome(err)
		}
		return out, err
	})
}
