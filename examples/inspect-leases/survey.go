package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/cnikit/cnikit/ipam"
	"github.com/cnikit/cnikit/ipam/hostlocal"
)

// survey is what was found.
type survey struct {
	network  string
	dir      string
	leases   []lease // by address
	usage    ipam.Usage
	problems []hostlocal.Problem
}

// lease is a reservation and what is remarkable about it.
type lease struct {
	ipam.Reservation
	orphan  bool // nothing that is attached has it, and it is from before
	young   bool // nothing that is attached has it, but an ADD may be under way
	stale   bool // it is from before the machine was started
	outside bool // no range gives it out
}

func (s *survey) orphans() []lease {
	return slices.DeleteFunc(slices.Clone(s.leases), func(l lease) bool { return !l.orphan })
}

func (s *survey) young() []lease {
	return slices.DeleteFunc(slices.Clone(s.leases), func(l lease) bool { return !l.young })
}

func (s *survey) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(w, "network %s, %s: %s\n", s.network, s.dir, count(len(s.leases), "lease"))
	for _, l := range s.leases {
		_, _ = fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("  %s\t%s\t%s", l.Address, l.Owner, l.remarks()), "\t"))
	}
	for i, set := range s.usage.Sets {
		for _, r := range set.Ranges {
			_, _ = fmt.Fprintf(w, "set %d, %s: %s%s\n", i, r.Range, r.Figures, share(r.Figures))
		}
	}
	for _, p := range s.problems {
		_, _ = fmt.Fprintln(w, "problem:", p)
	}
	return w.Flush() // which has the errors of all
}

func (l lease) remarks() string {
	var remarks []string
	for _, r := range []struct {
		is   bool
		text string
	}{{l.orphan, "orphan"}, {l.stale, "from before the machine was started"}, {l.outside, "outside of the ranges"}} {
		if r.is {
			remarks = append(remarks, r.text)
		}
	}
	return strings.Join(remarks, ", ")
}

// share is the part that can be had now: neither used nor resting.
func share(f ipam.Figures) string {
	if f.Size == 0 {
		return ""
	}
	return fmt.Sprintf(" (%.1f %% free)", 100*float64(f.Free())/float64(f.Size))
}
