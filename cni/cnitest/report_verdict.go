package cnitest

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Verdict sums the report up: [Broken] if a rule that must be kept is not, or with [Options.Strict] any, else
// [FailedToRun] if a case could not be run, else [Warned], else [Kept]; [Skipped] if no
// case said anything.
func (r *Report) Verdict() Verdict {
	for _, v := range []Verdict{Broken, FailedToRun, Warned, Kept} {
		if r.Count(v) > 0 {
			return v
		}
	}
	return Skipped
}

// Groups returns the groups in the order in which they were run.
func (r *Report) Groups() []string {
	var groups []string
	for _, o := range r.Outcomes {
		if !slices.Contains(groups, o.Group) {
			groups = append(groups, o.Group)
		}
	}
	return groups
}

// summary is the verdict in one line.
func (r *Report) summary() string {
	return fmt.Sprintf("%s %s: %s, in %s", r.Plugin, r.sentence(), counts(r.Outcomes), r.Took.Round(100*time.Millisecond))
}

func (r *Report) sentence() string {
	switch r.Verdict() {
	case Broken:
		if !slices.ContainsFunc(r.Outcomes, func(o Outcome) bool { return o.Verdict == Broken && o.Strength == Must }) {
			return "breaks rules that should be kept"
		}
		return "breaks rules that must be kept"
	case FailedToRun:
		return "was not examined in full"
	case Warned:
		return "keeps what must be kept, with warnings"
	case Kept:
		return "keeps the specification"
	default:
		return "was not examined"
	}
}

// counts tells how many outcomes have each verdict.
func counts(outcomes []Outcome) string {
	r := Report{Outcomes: outcomes}
	var parts []string
	for _, v := range verdicts() {
		if n := r.Count(v); n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, v))
		}
	}
	if len(parts) == 0 {
		return "no case was run"
	}
	return strings.Join(parts, ", ")
}

// verdicts are all verdicts in the order of reports.
func verdicts() []Verdict { return []Verdict{Kept, Broken, Warned, Skipped, FailedToRun} }

// citation tells how binding a case is, its rules by number, and where in the
// specification they stand.
func (c CaseInfo) citation() string {
	var places []string
	rows := map[string][]int{}
	for _, rule := range Rules() {
		if !slices.Contains(c.Rows, rule.Number) {
			continue
		}
		place := "section " + SectionTitle(rule.Section) + rule.origin()
		if rows[place] == nil {
			places = append(places, place)
		}
		rows[place] = append(rows[place], rule.Number)
	}
	for i, place := range places {
		places[i] = fmt.Sprintf("%s (%s)", rulesText(rows[place]), place)
	}
	return fmt.Sprintf("%s; CNI specification, %s", c.Strength, strings.Join(places, ", "))
}

// origin tells of a rule that version 1.1.0 does not have in these words.
func (r Rule) origin() string {
	switch r.Source {
	case "implied":
		return ", implied"
	case "main branch":
		return ", only on the main branch"
	default:
		return ""
	}
}
