// Command cnisanity examines a CNI plugin, in whatever language it is written: does it
// keep the specification, and what does it leave when the world around it misbehaves?
//
//	cnisanity -plugin PATH [-conf FILE] [flags]
//
// Well-known types need no configuration. It prints what is broken, what was seen, and
// how to fix it. The exit status is 0 if the plugin keeps what it must, 1 if it does not,
// 2 if that could not be examined.
//
// The plugin works on network namespaces that are made for it, and sees empty directories
// /run and /var/lib, a /sys with the devices of that network alone, and no processes but its
// own; what it mounts is seen by nobody else, and what it starts is ended. (Where a sandbox
// covers parts of /proc, the processes are those of the machine, and only those in its
// network namespaces are ended.) Everything else is that of the machine: other directories
// (a log file, /etc, /tmp), kernel modules, and settings outside net. Root is not needed:
// the command then takes a user namespace, and the plugin has no more rights than the user.
// Examine a plugin that you do not trust that way, or on a machine of its own.
//
// Package cnitest has the same as a Go test, and what the cases are.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/ipam/plugin"
)

// The exit statuses.
const (
	kept   = 0
	broken = 1
	unable = 2
)

func main() {
	if builtin(filepath.Base(os.Args[0])) {
		cni.Main(plugin.Plugin().Handler())
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM) //nolint:forbidigo // the program's own
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// run is the command, with the exit status as its result.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parseOptions(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return kept
	}
	status := kept
	if err == nil {
		status, err = o.run(ctx, args, stdout, stderr)
	}
	if err != nil {
		fmt.Fprintf(stderr, "cnisanity: %v\n", err)
		return unable
	}
	return status
}

func (o *options) run(ctx context.Context, args []string, stdout, stderr io.Writer) (int, error) {
	if o.list {
		return kept, o.writeList(stdout)
	}
	target, err := o.target()
	if err != nil {
		return unable, err
	}
	again := child{args: args, config: target.Config, stdout: stdout, stderr: stderr}
	switch {
	case !inside():
		return again.enter(ctx)
	case first():
		return again.lead(ctx)
	}
	return o.examine(ctx, target, stdout, stderr)
}
