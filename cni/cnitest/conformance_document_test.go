package cnitest_test

import (
	"fmt"
	"strings"

	"github.com/cnikit/cnikit/cni/cnitest"
)

const documentHead = `# Conformance of CNI plugins

What [cnitest](../cni/cnitest), the conformance kit, finds in the reference plugins and in our own, with the configurations that
` + "`cnisanity`" + ` uses by default. Written by ` + "`make conformance`" + ` from a run of all cases; nothing here is typed by hand.

A cell counts cases: those that were kept, after **−** the broken ones, of rules that must be kept, and after ~ those that got a warning,
of rules that should be kept. Cases that do not apply to a plugin are not counted; – says that none of the group does.
A number is no mark: many cases are about what happens when the world around a plugin misbehaves, and one fault may break several.
[conformance-rules.md](conformance-rules.md) has what each case is about. A race that a plugin loses in one run, it may win in the next;
those of the groups concurrency and faults stay in the record once they were lost, until the plugin's version changes.
`

// document renders the record.
func (r *conformance) document() string {
	var s strings.Builder
	s.WriteString(documentHead)
	r.table(&s)
	r.findings(&s)
	caseTable(&s)
	return s.String()
}

func (r *conformance) table(s *strings.Builder) {
	groups := caseGroups()
	fmt.Fprintf(s, "\n| plugin | profile | %s |\n|---|---|%s\n", strings.Join(groups, " | "), strings.Repeat("---|", len(groups)))
	for _, p := range r.Peers {
		if p.Unable != "" {
			continue
		}
		fmt.Fprintf(s, "| %s | %s |", p.Plugin, p.Profile)
		for _, group := range groups {
			fmt.Fprintf(s, " %s |", p.cell(group))
		}
		s.WriteString("\n")
	}
}

// findings lists what was found, plugin by plugin.
func (r *conformance) findings(s *strings.Builder) {
	s.WriteString("\n## What was found\n")
	for _, p := range r.Peers {
		fmt.Fprintf(s, "\n### %s\n\nFrom %s.", p.Plugin, p.From)
		if p.Unable != "" {
			fmt.Fprintf(s, " It could not be examined: %s.\n", p.Unable)
			continue
		}
		found := p.listed(cnitest.Broken) + p.listed(cnitest.Warned) + p.listed(cnitest.FailedToRun)
		if found == "" {
			s.WriteString(" Nothing.\n")
			continue
		}
		s.WriteString("\n\n" + found)
	}
}

// listed is a list of the cases that a plugin has the verdict of.
func (p *recordedPeer) listed(verdict cnitest.Verdict) string {
	var s strings.Builder
	for _, c := range cnitest.Cases("") {
		if p.Verdicts[c.ID()] == verdict {
			fmt.Fprintf(&s, "- %s: `%s` %s\n", verdict, c.ID(), c.About)
		}
	}
	return s.String()
}

// caseTable counts the cases.
func caseTable(s *strings.Builder) {
	s.WriteString("\n## Cases\n\n| group | cases | of what must be | should be |\n|---|---|---|---|\n")
	total := map[cnitest.Strength]int{}
	for _, group := range caseGroups() {
		count := map[cnitest.Strength]int{}
		for _, c := range cnitest.Cases("") {
			if c.Group == group {
				count[c.Strength]++
				total[c.Strength]++
			}
		}
		caseRow(s, group, count)
	}
	caseRow(s, "all", total)
}

func caseRow(s *strings.Builder, name string, n map[cnitest.Strength]int) {
	must, should := n[cnitest.Must], n[cnitest.Should]
	fmt.Fprintf(s, "| %s | %d | %d | %d |\n", name, must+should, must, should)
}
