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
	anyType     bool
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if err != nil {
		return err
	}
	n, err := open(o.conf, o.anyType)
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
	return o.settle(ctx, n, s, stdout)
}

// settle releases the orphans, or says that it would.
func (o options) settle(ctx context.Context, n *network, s *survey, stdout io.Writer) error {
	var text string
	if young := len(s.young()); young > 0 {
		text = fmt.Sprintf("\n%s of no attachment %s younger than %s (-grace) and %s left alone\n",
			count(young, "lease"), choose(young, "is", "are"), o.grace, choose(young, "was", "were"))
	}
	orphans := s.orphans()
	switch number := len(orphans); {
	case number == 0:
	case o.remove:
		if err := n.release(ctx, orphans); err != nil {
			return err
		}
		text += fmt.Sprintf("\n%s released\n", count(number, "orphan"))
	default:
		text += fmt.Sprintf("\n%s %s; -delete releases %s\n", count(number, "lease"), choose(number, "is an orphan", "are orphans"), choose(number, "it", "them"))
	}
	_, err := io.WriteString(stdout, text)
	return err
}

// count is a number and what is counted.
func count(n int, noun string) string { return fmt.Sprintf("%d %s", n, choose(n, noun, noun+"s")) }

func choose(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

func parse(args []string, stderr io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("inspect-leases", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.conf, "conf", "", "`file` with the network's configuration")
	f.StringVar(&o.cache, "cache", "/var/lib/cni", "cache `directory` of the runtime, as libcni writes it")
	f.StringVar(&o.attachments, "attachments", "", "`file` with the attachments there are, instead of the cache: [{\"containerID\": \"…\", \"ifname\": \"eth0\"}]")
	f.DurationVar(&o.grace, "grace", 10*time.Minute, "how old a lease must be to be an orphan: a younger one may belong to an ADD that is not done")
	f.BoolVar(&o.anyType, "any-type", false, "take the ipam.type, whatever it is, for one with leases in a directory of host-local")
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
