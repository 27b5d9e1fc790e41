package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/vishvananda/netlink"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/internal/nl"
)

func addFaults() map[string]fault {
	return map[string]fault{
		"interface-stays-down": around("bridge", cni.CommandAdd, func(inv cni.Invocation, next serve) ([]byte, error) {
			out, err := next(inv)
			if err != nil {
				return out, err
			}
			return out, onInterface(inv, (*nl.Conn).SetDown)
		}),
		"host-interface-taken": around("bridge", cni.CommandAdd, func(inv cni.Invocation, next serve) ([]byte, error) {
			out, err := next(inv)
			if err == nil {
				_ = node(func(c *nl.Conn) error {
					link, err := c.Link("eth0")
					if err != nil {
						return err
					}
					return c.DelLink(link)
				})
			}
			return out, err
		}),
		"existing-interface-replaced": around("bridge", cni.CommandAdd, func(inv cni.Invocation, next serve) ([]byte, error) {
			if link, addrs := inside(inv); link != nil && len(addrs) == 0 {
				if err := onInterface(inv, (*nl.Conn).DelLink); err != nil {
					return nil, err
				}
			}
			return next(inv)
		}),
		"second-add-takes-the-first": around("bridge", cni.CommandAdd, func(inv cni.Invocation, next serve) ([]byte, error) {
			if link, addrs := inside(inv); link != nil && len(addrs) > 0 {
				if err := onInterface(inv, (*nl.Conn).DelLink); err != nil {
					return nil, err
				}
				return nil, cni.Errorf(100, "%s was there already", inv.IfName)
			}
			return next(inv)
		}),
		"no-add-after-del": {on: "chained", handle: addOnce},
		"one-interface-only": around("bridge", cni.CommandAdd, func(inv cni.Invocation, next serve) ([]byte, error) {
			if inv.IfName != "eth0" {
				return nil, cni.Errorf(100, "a container has one interface")
			}
			return next(inv)
		}),
		"failed-add-leaves-link":  {on: "bridge", handle: leaveLink},
		"failed-add-confuses-del": {on: "bridge", handle: rememberFailure},
	}
}

// onInterface changes the container's interface; there is nothing to do without it.
func onInterface(inv cni.Invocation, change func(*nl.Conn, netlink.Link) error) error {
	err := container(inv, func(c *nl.Conn) error {
		link, err := c.Link(inv.IfName)
		if err != nil {
			return err
		}
		return change(c, link)
	})
	if err != nil {
		return cni.AsError(err)
	}
	return nil
}

// beside is a file in the directory of the namespace, which is none of the plugin's own:
// a memory that no case looks at.
func beside(inv cni.Invocation, what string) string {
	return filepath.Join(filepath.Dir(inv.NetNS), inv.ContainerID+"-"+what)
}

func remember(inv cni.Invocation, what string) error {
	if inv.NetNS == "" {
		return nil
	}
	if err := os.WriteFile(beside(inv, what), nil, 0o600); err != nil {
		return cni.AsError(err)
	}
	return nil
}

func addOnce(ctx context.Context, inv cni.Invocation, next cni.Handler) ([]byte, error) {
	const deleted = "deleted"
	switch {
	case inv.Command == cni.CommandAdd && exists(beside(inv, deleted)):
		return nil, cni.Errorf(100, "%s was deleted", inv.ContainerID)
	case inv.Command == cni.CommandDel:
		if err := remember(inv, deleted); err != nil {
			return nil, err
		}
	}
	return next.Handle(ctx, inv)
}

// late reports whether ADD failed for the routes of its delegate.
func late(err error) bool { return err != nil && strings.Contains(err.Error(), "203.0.113.") }

func leaveLink(ctx context.Context, inv cni.Invocation, next cni.Handler) ([]byte, error) {
	out, err := next.Handle(ctx, inv)
	switch {
	case inv.Command == cni.CommandAdd && late(err):
		_ = node(func(c *nl.Conn) error { return c.AddLink(pair(inv)) })
	case inv.Command == cni.CommandDel:
		_ = node(func(c *nl.Conn) error { return c.DelLink(pair(inv)) })
	}
	return out, err
}

// pair is a pair of interfaces of the node.
func pair(inv cni.Invocation) *netlink.Veth {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = "l" + inv.ContainerID[:10]
	return &netlink.Veth{LinkAttrs: attrs, PeerName: "r" + inv.ContainerID[:10]}
}

// node calls fn with a connection into the node.
func node(fn func(*nl.Conn) error) error {
	conn, err := nl.Open()
	if err != nil {
		return err
	}
	defer conn.Close()
	return fn(conn)
}

func rememberFailure(ctx context.Context, inv cni.Invocation, next cni.Handler) ([]byte, error) {
	const failed = "failed"
	out, err := next.Handle(ctx, inv)
	switch {
	case inv.Command == cni.CommandAdd && late(err):
		_ = remember(inv, failed)
	case inv.Command == cni.CommandDel && exists(beside(inv, failed)):
		return nil, cni.Errorf(100, "its ADD failed")
	}
	return out, err
}
