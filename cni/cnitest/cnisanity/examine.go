package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/cnikit/cnikit/cni/cnitest"
)

// examine runs the cases and writes the reports.
func (o *options) examine(ctx context.Context, t *target, stdout, stderr io.Writer) (int, error) {
	out, err := o.open(stdout)
	if err != nil {
		return unable, err
	}
	defer out.close()
	if err := hideMachine(t.Dirs, t.needed()); err != nil {
		return unable, err
	}
	if err := t.possible(); err != nil {
		return unable, err
	}
	if err := t.link(); err != nil {
		return unable, err
	}
	defer t.close()
	o.announce(t, stderr)
	if err := completePath(); err != nil {
		return unable, err
	}
	progress := newProgress(stderr, terminal(stderr) && !o.plain)
	report, err := progress.runWith(ctx, func() (*cnitest.Report, error) {
		return cnitest.Examine(ctx, t.Target, o.kit(progress))
	})
	if report == nil {
		return unable, err
	}
	return o.conclude(report, err, out)
}

// conclude writes the reports and decides on the exit status.
func (o *options) conclude(report *cnitest.Report, interrupted error, out *outputs) (int, error) {
	if len(report.Outcomes) == 0 && interrupted == nil {
		return unable, errors.New("no case of this profile is left by -run and -skip; see cnisanity -list")
	}
	if n := blocked(report); n > len(report.Outcomes)/3 {
		report.Notes = append(report.Notes, fmt.Sprintf("%d cases had nothing to look at, because ADD does not work with this configuration: "+
			"repair that first, or give another configuration with -conf", n))
	}
	err := out.write(report, o)
	switch {
	case err != nil:
		return unable, err
	case interrupted != nil:
		return unable, fmt.Errorf("interrupted after %d cases: %w", len(report.Outcomes), interrupted)
	}
	switch report.Verdict() {
	case cnitest.Broken:
		return broken, nil
	case cnitest.FailedToRun, cnitest.Skipped:
		return unable, nil
	default:
		return kept, nil
	}
}

// blocked counts the cases that were skipped because ADD does not work.
func blocked(report *cnitest.Report) int {
	n := 0
	for _, outcome := range report.Outcomes {
		if outcome.Verdict == cnitest.Skipped && strings.HasPrefix(outcome.Reason, "needs "+report.Plugin+" ADD to work") {
			n++
		}
	}
	return n
}

// announce says where the plugin works.
func (o *options) announce(t *target, stderr io.Writer) {
	if unprivileged() {
		fmt.Fprintln(stderr, "not root: the plugin is examined in a user namespace, in which it is root; what needs more is skipped, with the reason")
	}
	if o.conf == "" && o.verbose {
		fmt.Fprintf(stderr, "configuration: %s\n", t.Config)
	}
}

// completePath adds the directories of system programs, which an ordinary user's PATH
// may lack: plugins execute iptables and others.
func completePath() error {
	path := os.Getenv("PATH")
	for _, dir := range []string{"/usr/local/sbin", "/usr/sbin", "/sbin"} {
		if !strings.Contains(":"+path+":", ":"+dir+":") {
			path += ":" + dir
		}
	}
	return os.Setenv("PATH", path)
}

// possible says what of the kernel a well-known plugin lacks.
func (t *target) possible() error {
	kinds := map[string][]string{
		"bridge": {"bridge"}, "cnikit-bridge": {"bridge"}, "macvlan": {"macvlan"}, "ipvlan": {"ipvlan"},
		"vlan": {"vlan"}, "dummy": {"dummy"}, "vrf": {"vrf"}, "bandwidth": {"ifb"},
	}
	err := cnitest.Supports(append([]string{"veth"}, kinds[t.Plugin]...)...)
	if err != nil {
		return fmt.Errorf("the kernel lacks what it takes to examine a plugin of type %s: %w", t.Plugin, err)
	}
	return nil
}
