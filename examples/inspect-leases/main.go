// Command inspect-leases shows who holds which address of a network, how much of its
// ranges is in use, and which leases no container has any more. It reads the directory
// of host-local and of cnikit-ipam:
//
//	inspect-leases -conf /etc/cni/net.d/10-pods.conflist
//
// Which containers are attached is what the runtime's cache says, or a list such as GC
// gets, -attachments. Nothing is changed unless -delete is given.
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
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "inspect-leases:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	conf        string
	cache       string
	attachments string
	grace       time.Duration
	remove      bool
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	n, err := open(o.conf)
	if err != nil {
		return err
	}
	live, err := o.live(n.name)
	if err != nil {
		return err
	}
	s, err := n.inspect(ctx, live, time.Now().Add(-o.grace))
	if err != nil {
		return err
	}
	if err := s.print(stdout); err != nil {
		return err
	}
	orphans := s.orphans()
	switch {
	case len(orphans) == 0:
		return nil
	case !o.remove:
		_, err = fmt.Fprintf(stdout, "\n%d of them are orphans; -delete releases those\n", len(orphans))
		return err
	}
	if err := n.release(ctx, orphans); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "\n%d orphans released\n", len(orphans))
	return err
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("inspect-leases", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.conf, "conf", "", "`file` with the network's configuration")
	f.StringVar(&o.cache, "cache", "/var/lib/cni", "cache `directory` of the runtime, as libcni writes it")
	f.StringVar(&o.attachments, "attachments", "", "`file` with the attachments there are, instead of the cache: [{\"containerID\": \"…\", \"ifname\": \"eth0\"}]")
	f.DurationVar(&o.grace, "grace", 10*time.Minute, "how old a lease must be to be an orphan: a younger one may belong to an ADD that is not done")
	f.BoolVar(&o.remove, "delete", false, "release the orphans; without it, nothing is changed")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	switch {
	case f.NArg() > 0:
		return o, fmt.Errorf("argument %q: there are only flags; see -help", f.Arg(0))
	case o.conf == "":
		return o, errors.New("-conf is missing: name the file that configures the network")
	}
	return o, nil
}
