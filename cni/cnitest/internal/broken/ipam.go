package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/vishvananda/netlink"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/internal/nl"
)

func ipamFaults() map[string]fault {
	return map[string]fault{
		"address-out-of-range": result("ipam", func(c *call, result object) {
			var a, b, d byte
			_, _ = fmt.Sscanf(c.env["CNI_CONTAINERID"], "%2x%2x%2x", &a, &b, &d)
			eachIn(result, "ips", func(ip map[string]any) { ip["address"] = fmt.Sprintf("10.%d.%d.%d/8", a, b, d) })
		}),
		"second-add-frees-the-first": {on: "ipam", handle: freeFirst},
		"first-range-kept":           {on: "ipam", handle: keepFirstRange},
		"del-without-namespace-frees-nothing": around("ipam", cni.CommandDel, func(inv cni.Invocation, next serve) ([]byte, error) {
			if inv.NetNS == "" {
				return nil, nil
			}
			return next(inv)
		}),
		"del-frees-all-of-the-container": around("ipam", cni.CommandDel, func(inv cni.Invocation, next serve) ([]byte, error) {
			for _, inv.IfName = range []string{"eth0", "eth1"} {
				if _, err := next(inv); err != nil {
					return nil, err
				}
			}
			return nil, nil
		}),
		"ipam-touches-the-container": {on: "ipam", handle: touch},
	}
}

// freeFirst releases what the attachment has when it asks for a certain address and has
// another.
func freeFirst(ctx context.Context, inv cni.Invocation, next cni.Handler) ([]byte, error) {
	if inv.Command != cni.CommandAdd || !strings.Contains(inv.Args, "IP=") || !reserved(inv) {
		return next.Handle(ctx, inv)
	}
	inv.Command = cni.CommandDel
	if _, err := next.Handle(ctx, inv); err != nil {
		return nil, err
	}
	return nil, cni.Errorf(100, "%s has an address already", inv.ContainerID)
}

// reserved reports whether a file names the container.
func reserved(inv cni.Invocation) bool {
	names, _ := filepath.Glob(filepath.Join(dataDir(inv), "*", "*"))
	for _, name := range names {
		if content, err := os.ReadFile(name); err == nil && strings.Contains(string(content), inv.ContainerID) {
			return true
		}
	}
	return false
}

// keepFirstRange keeps the address of the first range when there is none in the second.
func keepFirstRange(ctx context.Context, inv cni.Invocation, next cni.Handler) ([]byte, error) {
	out, err := next.Handle(ctx, inv)
	var ipam map[string]any
	decode(parse(inv.Config)["ipam"], &ipam)
	ranges, _ := ipam["ranges"].([]any)
	if inv.Command != cni.CommandAdd || err == nil || len(ranges) != 2 {
		return out, err
	}
	ipam["ranges"] = ranges[:1]
	_, _ = next.Handle(ctx, with(inv, "ipam", ipam))
	return out, err
}

// touch switches the container's loopback interface on in ADD, and off in DEL.
func touch(ctx context.Context, inv cni.Invocation, next cni.Handler) ([]byte, error) {
	out, err := next.Handle(ctx, inv)
	if err != nil {
		return out, err
	}
	change := map[cni.Command]func(*nl.Conn, netlink.Link) error{
		cni.CommandAdd: (*nl.Conn).SetUp, cni.CommandDel: (*nl.Conn).SetDown,
	}[inv.Command]
	if change != nil {
		_ = container(inv, func(c *nl.Conn) error {
			lo, err := c.Link("lo")
			if err != nil {
				return err
			}
			return change(c, lo)
		})
	}
	return out, nil
}
