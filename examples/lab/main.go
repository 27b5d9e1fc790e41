// Command lab is the whole project at work on one machine: a cluster of nodes that are
// network namespaces, joined by an underlay bridge, with one node agent running in each
// as a process, and pods that are attached by executing the CNI plugin from the conflist
// that the agent wrote. It then does to the cluster what happens to clusters (drift, a
// node that joins, one that leaves, bad nodes, a killed agent), measures what pods see of
// it, and proves that nothing is left at the end.
//
//	cnikit-lab [-nodes 3] [-pods 2] [-name lab] [-bin DIR] [-keep | -down]
//
// It needs root, Linux, iproute2, and the executables cnikit-agent, cnikit-bridge,
// cnikit-ipam and cnitool beside it or in -bin; "make lab" builds and runs it. The network
// of the machine itself is never touched.
//
// The exit code is 0 when every step found what it had to, 1 when one did not, 2 when the
// lab could not run, and 130 when it was interrupted. The clean-up runs in any case.
//
// Read steps.go for the list of steps; each is in the file of its subject.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Exit codes.
const (
	exitOK          = 0
	exitFailed      = 1
	exitCannotRun   = 2
	exitInterrupted = 130
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the first signal starts the clean-up, a second one ends the process
	// The PATH that su leaves may lack the directories of ip and bridge.
	if err := os.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin:/sbin"); err != nil {
		fmt.Fprintln(os.Stderr, "cnikit-lab:", err)
		os.Exit(exitCannotRun)
	}
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr, nil))
}

// hook is called before each step; tests break the cluster in it.
type hook func(ctx context.Context, step string, l *lab) error

// run is the program. before may be nil.
func run(ctx context.Context, args []string, stdout, stderr io.Writer, before hook) int {
	opts, err := parseOptions(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return exitOK
	}
	if err == nil {
		err = opts.requirements()
	}
	if err != nil {
		fmt.Fprintln(stderr, "cnikit-lab:", err)
		return exitCannotRun
	}
	unlock, err := lockDir(opts.dir())
	if err != nil {
		fmt.Fprintln(stderr, "cnikit-lab:", err)
		return exitCannotRun
	}
	defer unlock()
	l := &lab{options: opts, out: newConsole(stdout), before: before}
	switch {
	case opts.down:
		return l.takeAway()
	case opts.isKept():
		fmt.Fprintf(stderr, "cnikit-lab: lab %q is up, -keep left it; take it down with: %s\n", opts.name, opts.downCommand())
		return exitCannotRun
	}
	return l.run(ctx)
}
