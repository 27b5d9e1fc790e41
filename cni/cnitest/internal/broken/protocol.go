package main

import (
	"context"
	"os"
	"slices"
	"strings"

	"github.com/cnikit/cnikit/cni"
)

func protocolFaults() map[string]fault {
	return map[string]fault{
		"prints-a-log-line": after(cni.CommandAdd, func(c *call) {
			if c.exit == 0 {
				c.stdout = slices.Concat([]byte("attached\n"), c.stdout)
			}
		}),
		"fails-with-status-0": {on: "bridge", process: func(c *call, serve func()) {
			serve()
			if plainFile(c) {
				c.exit = 0
			}
		}},
		"prints-no-error": {on: "chained", process: func(c *call, serve func()) {
			serve()
			if plainFile(c) {
				c.stdout, c.stderr = nil, c.stdout
			}
		}},
		"error-without-version": {on: "chained", process: func(c *call, serve func()) {
			serve()
			if failed := c.failed(); failed != nil {
				delete(failed, "cniVersion")
				c.answer(failed)
			}
		}},
		"error-with-code-8": {on: "chained", process: func(c *call, serve func()) {
			serve()
			if plainFile(c) {
				c.fail(8, "no network namespace")
			}
		}},
		"garbage-is-bad-config": {on: "chained", process: func(c *call, serve func()) {
			serve()
			if failed := c.failed(); failed["code"] != nil && string(failed["code"]) == "6" {
				failed.set("code", cni.CodeInvalidConfig)
				c.answer(failed)
			}
		}},
		"command-unknown-with-code-100": {on: "chained", process: func(c *call, serve func()) {
			serve()
			if c.command("BOGUS") {
				c.fail(100, "what is CNI_COMMAND=BOGUS?")
			}
		}},
		"help-instead-of-error": {on: "chained", process: func(c *call, serve func()) {
			serve()
			if c.env["CNI_COMMAND"] == "" {
				c.stdout, c.exit = nil, 0
			}
		}},
		"missing-variable-not-named": {on: "chained", process: func(c *call, serve func()) {
			serve()
			if c.command(cni.CommandAdd) && c.env["CNI_IFNAME"] == "" && c.exit != 0 {
				c.fail(cni.CodeInvalidEnvironment, "something is missing")
			}
		}},
		"container-id-mended": {on: "chained", process: func(c *call, serve func()) {
			id := c.env["CNI_CONTAINERID"]
			if mended := strings.Map(alphanumeric, id); mended != id {
				c.env["CNI_CONTAINERID"] = "c" + mended
			}
			serve()
		}},
		"network-name-mended": {on: "chained", process: func(c *call, serve func()) {
			if name := c.config().text("name"); name != "" {
				c.configure("name", strings.Map(alphanumeric, name))
			}
			serve()
		}},
		"interface-name-shortened": {on: "bridge", process: func(c *call, serve func()) {
			if name := c.env["CNI_IFNAME"]; len(name) > 15 {
				c.env["CNI_IFNAME"] = name[:15]
			}
			serve()
		}},
		"arguments-in-order-only": before(cni.CommandAdd, func(c *call) bool {
			args := c.env["CNI_ARGS"]
			return args == "" || strings.HasPrefix(args, "IgnoreUnknown")
		}, "CNI_ARGS: unknown argument"),
		"add-needs-path": before(cni.CommandAdd, func(c *call) bool {
			return c.env["CNI_PATH"] != ""
		}, "CNI_PATH is missing"),
		"unknown-capability-refused": before(cni.CommandAdd, func(c *call) bool {
			return c.config()["runtimeConfig"] == nil
		}, "runtimeConfig: unknown capability"),
	}
}

// after changes the outcome of a command of the chained plugin.
func after(command cni.Command, change func(*call)) fault {
	return fault{on: "chained", process: func(c *call, serve func()) {
		serve()
		if c.command(command) {
			change(c)
		}
	}}
}

// before fails a command of the chained plugin unless something holds.
func before(command cni.Command, holds func(*call) bool, complaint string) fault {
	return fault{on: "chained", process: func(c *call, serve func()) {
		if c.command(command) && !holds(c) {
			c.fail(cni.CodeInvalidEnvironment, "%s", complaint)
			return
		}
		serve()
	}}
}

// plainFile reports whether the call was an ADD that failed for a plain file in the place
// of the namespace.
func plainFile(c *call) bool {
	info, err := os.Stat(c.env["CNI_NETNS"])
	return c.command(cni.CommandAdd) && c.exit != 0 && err == nil && info.Mode().IsRegular() && info.Size() == 0 &&
		strings.HasSuffix(c.env["CNI_NETNS"], "no-namespace")
}

func alphanumeric(r rune) rune {
	if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
		return r
	}
	return -1
}

// serve is the rest of the plugin.
type serve func(cni.Invocation) ([]byte, error)

// around wraps one command of a plugin.
func around(on string, command cni.Command, wrap func(inv cni.Invocation, next serve) ([]byte, error)) fault {
	return fault{on: on, handle: func(ctx context.Context, inv cni.Invocation, next cni.Handler) ([]byte, error) {
		serve := func(inv cni.Invocation) ([]byte, error) { return next.Handle(ctx, inv) }
		if inv.Command != command {
			return serve(inv)
		}
		return wrap(inv, serve)
	}}
}
