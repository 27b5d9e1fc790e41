// Command agent is the node agent of the bridge + VXLAN example: it keeps the
// tunnel, its routes and the conflist of one node as the topology says.
//
//	cnikit-agent -node worker-1 -topology /etc/cnikit/topology.json
//
// The topology is the file that package overlay/file describes. The agent is
// the packages of this module and nothing else: a source (overlay/file) feeds a
// planner (overlay), a backend (overlay/vxlan) and the conflist (cni/install)
// contribute targets to one engine (reconcile). It can be killed at any time:
// what it set up stays, and the next start takes it over without a write.
//
// With -cleanup it removes what it set up, and exits.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := command(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// command is the program; it returns the exit code.
func command(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	err := run(ctx, args, stdout, slog.New(slog.NewTextHandler(stderr, nil)))
	if err == nil || errors.Is(err, flag.ErrHelp) {
		return 0
	}
	fmt.Fprintln(stderr, "cnikit-agent:", err)
	return 1
}

func run(ctx context.Context, args []string, help io.Writer, log *slog.Logger) error {
	opts, err := parseOptions(args, help)
	if err != nil {
		return err
	}
	a, err := newAgent(opts, log)
	if err != nil {
		return err
	}
	if opts.cleanup {
		return a.cleanup(ctx)
	}
	return a.run(ctx)
}
