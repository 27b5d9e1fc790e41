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
	"log/slog"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if err := run(ctx, os.Args[1:], log); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "cnikit-agent:", err)
		}
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, log *slog.Logger) error {
	opts, err := parseOptions(args, os.Stderr)
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
