package main

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/internal/netns"
	"github.com/cnikit/cnikit/internal/nl"
)

// worldFaults are those of plugins that believe in a perfect world.
func worldFaults() map[string]fault {
	all := namespaceFaults()
	for _, more := range []map[string]fault{interfaceFaults(), previousFaults(), delegateFaults(), stateFaults()} {
		maps.Copy(all, more)
	}
	return all
}

func namespaceFaults() map[string]fault {
	return map[string]fault{
		"namespace-not-looked-at": around("bridge", cni.CommandAdd, func(inv cni.Invocation, next serve) ([]byte, error) {
			if !isNamespace(inv) {
				return marshal(map[string]any{"cniVersion": parse(inv.Config).text("cniVersion")}), nil
			}
			return next(inv)
		}),
		"namespace-looked-at-late": around("bridge", cni.CommandAdd, func(inv cni.Invocation, next serve) ([]byte, error) {
			if !isNamespace(inv) {
				leave(inv)
			}
			return next(inv)
		}),
		"lost-namespace-fails": around("chained", cni.CommandDel, func(inv cni.Invocation, next serve) ([]byte, error) {
			if inv.NetNS != "" && !isNamespace(inv) {
				return nil, cni.Errorf(100, "%s is no namespace", inv.NetNS)
			}
			return next(inv)
		}),
		"host-refused-late": around("bridge", cni.CommandAdd, func(inv cni.Invocation, next serve) ([]byte, error) {
			if isHost(inv) {
				leave(inv)
			}
			return next(inv)
		}),
		"host-interface-deleted": around("bridge", cni.CommandDel, func(inv cni.Invocation, next serve) ([]byte, error) {
			if isHost(inv) {
				_ = onInterface(inv, (*nl.Conn).DelLink)
			}
			return next(inv)
		}),
		"any-interface-deleted": around("bridge", cni.CommandDel, func(inv cni.Invocation, next serve) ([]byte, error) {
			if !isHost(inv) {
				_ = onInterface(inv, (*nl.Conn).DelLink)
			}
			return next(inv)
		}),
	}
}

func isNamespace(inv cni.Invocation) bool {
	ns, err := netns.Open(inv.NetNS)
	if err != nil {
		return false
	}
	_ = ns.Close()
	return true
}

func isHost(inv cni.Invocation) bool {
	ns, err := netns.Open(inv.NetNS)
	if err != nil {
		return false
	}
	defer func() { _ = ns.Close() }()
	own, err := netns.Open("/proc/self/ns/net")
	if err != nil {
		return false
	}
	defer func() { _ = own.Close() }()
	return ns.Equal(own)
}

// leave leaves a file of the attachment that DEL does not know.
func leave(inv cni.Invocation) { _ = os.WriteFile(hidden(inv, "left"), nil, 0o600) }

func interfaceFaults() map[string]fault {
	return map[string]fault{
		"missing-interface-fails": around("bridge", cni.CommandDel, func(inv cni.Invocation, next serve) ([]byte, error) {
			if link, _ := inside(inv); link == nil && isNamespace(inv) && reserved(inv) && previous(inv) != nil && !otherEnd(inv) {
				return nil, cni.Errorf(100, "%s is missing", inv.IfName)
			}
			return next(inv)
		}),
		"missing-interface-is-all": around("bridge", cni.CommandDel, func(inv cni.Invocation, next serve) ([]byte, error) {
			if link, _ := inside(inv); link == nil && isNamespace(inv) && otherEnd(inv) {
				return nil, nil
			}
			return next(inv)
		}),
		"missing-bridge-fails": around("bridge", cni.CommandDel, func(inv cni.Invocation, next serve) ([]byte, error) {
			if previous(inv) == nil {
				return next(inv)
			}
			name := parse(inv.Config).text("bridge")
			err := node(func(c *nl.Conn) error {
				_, err := c.Link(name)
				return err
			})
			if err != nil {
				return nil, cni.Errorf(100, "%s is missing", name)
			}
			return next(inv)
		}),
	}
}

// otherEnd reports whether an interface that the result has on the host is still there.
func otherEnd(inv cni.Invocation) bool {
	bridge, there := parse(inv.Config).text("bridge"), false
	r := previous(inv)
	if r == nil {
		return false
	}
	_ = node(func(c *nl.Conn) error {
		for _, i := range r.Interfaces {
			if _, err := c.Link(i.Name); i.Sandbox == "" && i.Name != bridge && err == nil {
				there = true
			}
		}
		return nil
	})
	return there
}

func previousFaults() map[string]fault {
	return map[string]fault{
		"empty-previous-fails": around("chained", cni.CommandDel, func(inv cni.Invocation, next serve) ([]byte, error) {
			if r := previous(inv); r != nil && len(r.Interfaces) == 0 {
				return nil, cni.Errorf(100, "prevResult has no interfaces")
			}
			return next(inv)
		}),
		"previous-not-converted": around("chained", cni.CommandDel, func(inv cni.Invocation, next serve) ([]byte, error) {
			config := parse(inv.Config)
			if v := parse(config["prevResult"]).text("cniVersion"); v != "" && v != config.text("cniVersion") {
				return nil, cni.Errorf(100, "prevResult is of version %s", v)
			}
			return next(inv)
		}),
		"all-of-previous-deleted": around("bridge", cni.CommandDel, func(inv cni.Invocation, next serve) ([]byte, error) {
			if r := previous(inv); r != nil {
				deleteAll(r, parse(inv.Config).text("bridge"))
			}
			return next(inv)
		}),
		"index-without-interface": {on: "chained", process: func(c *call, serve func()) {
			if strings.Contains(string(c.stdin), `"interface":7`) {
				c.exit, c.stderr = 2, []byte("panic: runtime error: index out of range [7] with length 0\n")
				return
			}
			serve()
		}},
	}
}

// deleteAll deletes all interfaces on the host that a result has, but one.
func deleteAll(r *cni.Result, but string) {
	for _, i := range r.Interfaces {
		if i.Sandbox != "" || i.Name == but {
			continue
		}
		_ = node(func(c *nl.Conn) error {
			attrs := netlink.NewLinkAttrs()
			attrs.Name = i.Name
			return c.DelLink(&netlink.Veth{LinkAttrs: attrs})
		})
	}
}

func delegateFaults() map[string]fault {
	return map[string]fault{
		"missing-delegate-not-named": around("bridge", cni.CommandAdd, func(inv cni.Invocation, next serve) ([]byte, error) {
			out, err := next(inv)
			if err != nil && strings.Contains(err.Error(), "plugin not found") {
				return nil, cni.Errorf(100, "no addresses")
			}
			return out, err
		}),
		"impatient": {on: "bridge", delegate: func(ctx context.Context, plugin string, inv cni.Invocation, next cni.Executor) ([]byte, error) {
			ctx, cancel := context.WithTimeout(ctx, 1900*time.Millisecond) // the slow one takes two seconds
			defer cancel()
			return next.Execute(ctx, plugin, inv)
		}},
		"noise-passed-on": {on: "bridge", process: func(c *call, serve func()) {
			serve()
			if c.command(cni.CommandAdd) && c.exit != 0 && bytes.Contains(c.stdout, []byte("read its result")) {
				c.stdout = append([]byte("this is a log line\n"), c.stdout...)
			}
		}},
		"unfinished-add-remembered": {on: "bridge", handle: rememberBegin},
	}
}

// rememberBegin does not serve DEL as long as an ADD has not ended.
func rememberBegin(ctx context.Context, inv cni.Invocation, next cni.Handler) ([]byte, error) {
	const begun = "begun"
	switch inv.Command {
	case cni.CommandAdd:
		_ = remember(inv, begun)
		defer func() { _ = os.Remove(beside(inv, begun)) }()
	case cni.CommandDel:
		if exists(beside(inv, begun)) {
			return nil, cni.Errorf(100, "its ADD has not ended")
		}
	}
	return next.Handle(ctx, inv)
}

func stateFaults() map[string]fault {
	return map[string]fault{
		"failed-removal-forgiven": around("chained", cni.CommandDel, func(inv cni.Invocation, next serve) ([]byte, error) {
			_, _ = next(inv)
			return nil, nil
		}),
		"status-tries-nothing": around("chained", cni.CommandStatus, func(cni.Invocation, serve) ([]byte, error) { return nil, nil }),
		"file-left-when-full": around("ipam", cni.CommandAdd, func(inv cni.Invocation, next serve) ([]byte, error) {
			out, err := next(inv)
			if errors.Is(err, syscall.ENOSPC) {
				leave(inv)
			}
			return out, err
		}),
		"empty-file-crashes": {on: "ipam", process: func(c *call, serve func()) {
			leases, _ := filepath.Glob(filepath.Join(dataDir(cni.Invocation{Config: c.stdin}), "*", "10.*"))
			for _, lease := range leases {
				if info, err := os.Stat(lease); err == nil && info.Size() == 0 {
					c.exit, c.stderr = 2, []byte("panic: runtime error: index out of range [0] with length 0\n")
					return
				}
			}
			serve()
		}},
	}
}
