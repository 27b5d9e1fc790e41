package main

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/internal/netns"
	"github.com/cnikit/cnikit/internal/nl"
)

func checkFaults() map[string]fault {
	return map[string]fault{
		"check-fails": checkChecked("chained", func(cni.Invocation) bool { return false }, "not checked"),
		"check-prints": after(cni.CommandCheck, func(c *call) {
			if c.exit == 0 {
				c.stdout = []byte("OK\n")
			}
		}),
		"check-needs-ipam": checkChecked("bridge", func(inv cni.Invocation) bool {
			return parse(inv.Config)["ipam"] != nil
		}, "ipam.type is missing"),
		"check-compares-mac": checkChecked("bridge", func(inv cni.Invocation) bool {
			link, _ := inside(inv)
			own, _ := previous(inv).Interface(inv.IfName, inv.NetNS)
			return link == nil || link.Attrs().HardwareAddr.String() == own.MAC
		}, "the MAC address differs"),
		"check-misses-interface": checkSatisfied(func(inv cni.Invocation) bool {
			link, _ := inside(inv)
			return link == nil
		}),
		"check-misses-state": checkSatisfied(func(inv cni.Invocation) bool {
			link, _ := inside(inv)
			return link != nil && link.Attrs().Flags&net.FlagUp == 0
		}),
		"check-misses-address": checkSatisfied(func(inv cni.Invocation) bool {
			link, addrs := inside(inv)
			return link != nil && link.Attrs().Flags&net.FlagUp != 0 && len(addrs) == 0
		}),
		"check-misses-route": around("bridge", cni.CommandCheck, func(inv cni.Invocation, next serve) ([]byte, error) {
			result := previous(inv)
			result.Routes = nil
			return next(with(inv, "prevResult", result))
		}),
		"check-expects-what-is-there": around("bridge", cni.CommandCheck, func(inv cni.Invocation, next serve) ([]byte, error) {
			result := previous(inv)
			if _, addrs := inside(inv); len(addrs) == 1 && len(result.IPs) == 1 && result.IPs[0].Address.String() != addrs[0].IPNet.String() {
				return nil, nil
			}
			return next(inv)
		}),
		"check-misses-rules": {on: "chained", handle: masqueradeEach},
		"check-misses-reservation": around("ipam", cni.CommandCheck, func(inv cni.Invocation, next serve) ([]byte, error) {
			_, _ = next(inv)
			return nil, nil
		}),
	}
}

// masqueradeEach has a rule for each attachment, which CHECK does not look at.
func masqueradeEach(ctx context.Context, inv cni.Invocation, next cni.Handler) ([]byte, error) {
	before := records(dataDir(inv))
	out, err := next.Handle(ctx, inv)
	if err != nil {
		return out, err
	}
	after := records(dataDir(inv))
	for _, path := range after {
		if !slices.Contains(before, path) {
			err = masquerade(tableOf(path))
		}
	}
	for _, path := range before {
		if !slices.Contains(after, path) {
			_ = unmasquerade(tableOf(path))
		}
	}
	if err != nil {
		return nil, cni.AsError(err)
	}
	return out, nil
}

// tableOf is the name of the nftables table for an attachment's file.
func tableOf(path string) string {
	id, ifName, _ := strings.Cut(filepath.Base(path), "@")
	return id[:min(len(id), 12)] + ifName
}

// checkChecked is a CHECK that fails unless a condition holds.
func checkChecked(on string, when func(cni.Invocation) bool, complaint string) fault {
	return around(on, cni.CommandCheck, func(inv cni.Invocation, next serve) ([]byte, error) {
		out, err := next(inv)
		if err == nil && !when(inv) {
			err = cni.Errorf(100, "%s", complaint)
		}
		return out, err
	})
}

// checkSatisfied is a CHECK of the bridge that succeeds in any case if a condition holds.
func checkSatisfied(when func(cni.Invocation) bool) fault {
	return around("bridge", cni.CommandCheck, func(inv cni.Invocation, next serve) ([]byte, error) {
		if when(inv) {
			return nil, nil
		}
		return next(inv)
	})
}

// inet is AF_INET.
const inet = 2

// inside is the interface in the container with its IPv4 addresses, nil if it is not
// there.
func inside(inv cni.Invocation) (link netlink.Link, addrs []netlink.Addr) {
	_ = container(inv, func(c *nl.Conn) (err error) {
		if link, err = c.Link(inv.IfName); err != nil {
			return err
		}
		addrs, err = c.Addrs(link, inet)
		return err
	})
	return link, addrs
}

// container calls fn with a connection into the container.
func container(inv cni.Invocation, fn func(*nl.Conn) error) error {
	ns, err := netns.Open(inv.NetNS)
	if err != nil {
		return err
	}
	conn, err := nl.OpenIn(ns)
	if err != nil {
		return errors.Join(err, ns.Close())
	}
	defer conn.Close()
	return errors.Join(fn(conn), ns.Close())
}
