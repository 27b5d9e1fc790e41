package cnitest_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni/cnitest"
)

// TestRulesDocument keeps docs/conformance-rules.md in step with the cases. Set
// CNITEST_UPDATE=1 to write it.
func TestRulesDocument(t *testing.T) {
	const file = "../../docs/conformance-rules.md"
	want := rulesDocument()
	if os.Getenv(cnitest.GoldenUpdate) == "1" {
		require.NoError(t, os.WriteFile(file, []byte(want), 0o644))
	}
	have, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, want, string(have), "run the test with %s=1", cnitest.GoldenUpdate)
}

func rulesDocument() string {
	var b strings.Builder
	b.WriteString(`# The rules, and the cases that look at them

The rules of the CNI specification 1.1.0, and of its main branch where that goes further, in this project's words and with its
numbers, and the cases of the conformance kit ([conformance-ci.md](conformance-ci.md)) that look at them. This file is written by
a test of ` + "`cni/cnitest`" + `.

## Cases

| case | strength | rules | profiles | the rule in one sentence | how to keep it |
|---|---|---|---|---|---|
`)
	for _, c := range cnitest.Cases("") {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s | %s |\n", c.ID(), c.Strength, numbers(c.Rows), profilesOf(c), cell(c.About), cell(c.Fix))
	}
	b.WriteString("\n## Rules for plugins that no case looks at\n\n| rule | why |\n|---|---|\n")
	for _, u := range cnitest.UncoveredRules() {
		fmt.Fprintf(&b, "| %d: %s | %s |\n", u.Rule.Number, cell(u.Rule.Text), cell(u.Reason))
	}
	b.WriteString("\n## Rules\n\n| number | who | strength | section | rule | cases |\n|---|---|---|---|---|---|\n")
	for _, r := range cnitest.Rules() {
		source := map[string]string{"main branch": " (main branch)", "implied": " (implied)"}[r.Source]
		fmt.Fprintf(&b, "| %d | %s | %s | %s | %s%s | %s |\n",
			r.Number, strings.Join(r.Actors, ", "), r.Strength, cnitest.SectionTitle(r.Section), cell(r.Text), source, casesOf(r.Number))
	}
	return b.String()
}

func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

func numbers(rows []int) string {
	texts := make([]string, len(rows))
	for i, row := range rows {
		texts[i] = fmt.Sprint(row)
	}
	return strings.Join(texts, ", ")
}

func profilesOf(c cnitest.CaseInfo) string {
	var names []string
	for _, p := range cnitest.Profiles() {
		if slices.ContainsFunc(cnitest.Cases(p), func(other cnitest.CaseInfo) bool { return other.ID() == c.ID() }) {
			names = append(names, string(p))
		}
	}
	if len(names) == len(cnitest.Profiles()) {
		return "all"
	}
	return strings.Join(names, ", ")
}

func casesOf(rule int) string {
	var ids []string
	for _, c := range cnitest.Cases("") {
		if slices.Contains(c.Rows, rule) {
			ids = append(ids, "`"+c.ID()+"`")
		}
	}
	return strings.Join(ids, ", ")
}
