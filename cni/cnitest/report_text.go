package cnitest

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"
)

// TextOptions are for [Report.WriteText]. The zero value is what a file or a log wants.
type TextOptions struct {
	Color   bool   // mark what matters, for a terminal
	Verbose bool   // tell of every case, list every skipped one, and shorten no line of an outcome
	Command string // the command line that a case can be run again with, to which -run and -seed are added; "": Options are named instead
}

// WriteText writes the report for a person: a line for each group, the notes, what is
// wrong with the rule, what was seen and how to fix it, what was skipped and why, and the
// verdict.
func (r *Report) WriteText(w io.Writer, o TextOptions) error {
	t := &text{report: r, o: o}
	t.head()
	t.groups()
	t.notes()
	for _, v := range []Verdict{Broken, Warned, FailedToRun} {
		for _, outcome := range r.Outcomes {
			if outcome.Verdict == v {
				t.finding(outcome)
			}
		}
	}
	t.skips()
	t.tail()
	if _, err := w.Write(t.Bytes()); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// text is a report in the making.
type text struct {
	bytes.Buffer
	report *Report
	o      TextOptions
}

func (t *text) head() {
	r := t.report
	fmt.Fprintf(t, "%s, examined as %s plugin", t.bold(r.Plugin), r.Profile)
	if len(r.Versions) > 0 {
		fmt.Fprintf(t, ", speaks CNI %s", strings.Join(r.Versions, " "))
	}
	fmt.Fprintf(t, "\n\n")
}

// groups writes a line for each group; verbose, also one for each case.
func (t *text) groups() {
	width := 0
	for _, group := range t.report.Groups() {
		width = max(width, len(group))
	}
	for _, group := range t.report.Groups() {
		var outcomes []Outcome
		for _, o := range t.report.Outcomes {
			if o.Group == group {
				outcomes = append(outcomes, o)
			}
		}
		fmt.Fprintf(t, "  %-*s%s\n", width, group, t.columns(outcomes))
		if t.o.Verbose {
			t.cases(outcomes)
		}
	}
}

// columns tells how many outcomes have each verdict, with a place for each.
func (t *text) columns(outcomes []Outcome) string {
	r := Report{Outcomes: outcomes}
	var s strings.Builder
	gap := 0
	for _, v := range verdicts() {
		column := fmt.Sprintf(" %3d %s ", r.Count(v), v)
		if r.Count(v) == 0 {
			gap += len(column)
			continue
		}
		fmt.Fprintf(&s, "%*s%s", gap, "", t.verdict(v, strings.TrimRight(column, " ")))
		gap = 1
	}
	return s.String()
}

func (t *text) cases(outcomes []Outcome) {
	for _, o := range outcomes {
		fmt.Fprintf(t, "    %s %s", t.verdict(o.Verdict, fmt.Sprintf("%-13s", o.Verdict)), o.Name)
		if o.Took >= 100*time.Millisecond {
			fmt.Fprintf(t, " (%s)", o.Took.Round(10*time.Millisecond))
		}
		t.WriteByte('\n')
	}
}

// finding writes what a person needs to repair a plugin.
func (t *text) finding(o Outcome) {
	fmt.Fprintf(t, "\n%s %s\n", t.verdict(o.Verdict, strings.ToUpper(string(o.Verdict))), t.bold(o.ID()))
	t.prose("rule", o.About)
	t.prose("", o.citation())
	if o.Verdict == FailedToRun {
		t.prose("why", o.Reason)
	} else {
		t.lines("seen", t.shortened(o.Seen))
		t.prose("fix", o.Fix)
	}
}

// again is how to run one case and no other.
func (t *text) again(o Outcome) string {
	run := "^" + regexp.QuoteMeta(o.ID()) + "$"
	if t.o.Command == "" {
		return fmt.Sprintf("cnitest.Options{Run: %q, Seed: %d}", run, t.report.Seed)
	}
	return fmt.Sprintf("%s -run '%s' -seed %d", t.o.Command, run, t.report.Seed)
}

// raced adds to a command that repeats a case what it cannot repeat.
func (c CaseInfo) raced(command string) string {
	if c.Group != "concurrency" {
		return command
	}
	return command + "\nno seed repeats a race: run it several times"
}

// namedSkips is how many skipped cases are named for one reason, if not all are.
const namedSkips = 4

// skips writes the reasons, and under each the cases.
func (t *text) skips() {
	var reasons []string
	cases := map[string][]string{}
	for _, o := range t.report.Outcomes {
		if o.Verdict != Skipped {
			continue
		}
		if cases[o.Reason] == nil {
			reasons = append(reasons, o.Reason)
		}
		cases[o.Reason] = append(cases[o.Reason], o.ID())
	}
	if len(reasons) == 0 {
		return
	}
	fmt.Fprintf(t, "\n%s\n", t.verdict(Skipped, "SKIPPED"))
	slices.SortStableFunc(reasons, func(a, b string) int { return len(cases[b]) - len(cases[a]) })
	for _, reason := range reasons {
		ids := cases[reason]
		t.prose(fmt.Sprintf("%4d", len(ids)), t.shortened(reason))
		if more := len(ids) - namedSkips; more > 1 && !t.o.Verbose {
			ids = append(slices.Clone(ids[:namedSkips]), fmt.Sprintf("and %d more", more))
		}
		t.prose("", strings.Join(ids, ", "))
	}
}

func (t *text) notes() {
	if len(t.report.Notes) == 0 {
		return
	}
	fmt.Fprintf(t, "\n%s\n", t.bold("NOTES"))
	for _, note := range t.report.Notes {
		t.prose("", note)
	}
}

// tail writes the verdict, and how to look at the first finding alone.
func (t *text) tail() {
	v := t.report.Verdict()
	fmt.Fprintf(t, "\n%s\n", t.verdict(v, t.report.summary()))
	for _, v := range []Verdict{Broken, Warned, FailedToRun} {
		for _, o := range t.report.Outcomes {
			if o.Verdict == v {
				fmt.Fprintf(t, "one case again: %s\n", o.raced(printable(t.again(o))))
				return
			}
		}
	}
	fmt.Fprintf(t, "seed %d\n", t.report.Seed)
}

func (t *text) bold(s string) string { return t.paint("1", s) }

// verdict paints a text in the color of a verdict.
func (t *text) verdict(v Verdict, s string) string {
	switch v {
	case Broken, FailedToRun:
		return t.paint("1;31", s)
	case Warned:
		return t.paint("33", s)
	case Kept:
		return t.paint("32", s)
	default:
		return t.paint("2", s)
	}
}

func (t *text) paint(code, s string) string {
	if !t.o.Color {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}
