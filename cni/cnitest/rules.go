package cnitest

import (
	_ "embed" // for the table
	"strconv"
	"strings"
)

// The rules of the CNI specification 1.1.0, and of its main branch where that goes
// further, numbered by this project and in its words: number, actors, strength, section,
// source and text, separated by tabs.
//
//go:embed rules.tsv
var rulesTable string

// Rule is a rule of the specification. The number is this project's, which reports and
// documents use.
type Rule struct {
	Number   int      `json:"number"`
	Actors   []string `json:"actors"`   // who has to keep it: "runtime", "plugin", "delegating plugin", "IPAM plugin"
	Strength string   `json:"strength"` // "must", "should", "may", "must not", "should not"; "is": a definition
	Section  string   `json:"section"`  // see [SectionTitle]
	Source   string   `json:"source"`   // "text"; "main branch": not in version 1.1.0; "implied": the text leaves no other reading
	Text     string   `json:"text"`
}

// Rules returns all rules in order.
func Rules() []Rule {
	lines := strings.Split(strings.TrimSpace(rulesTable), "\n")
	rules := make([]Rule, 0, len(lines)-1)
	for _, line := range lines[1:] {
		f := strings.Split(line, "\t")
		number, err := strconv.Atoi(f[0])
		if err != nil || len(f) != 6 {
			panic("rules.tsv: " + line) // a test reads it
		}
		rules = append(rules, Rule{number, strings.Split(f[1], ","), f[2], f[3], f[4], f[5]})
	}
	return rules
}

// SectionTitle names a section of the specification, "2d" as "2, ADD". Several are
// separated by a slash.
func SectionTitle(section string) string {
	titles := map[string]string{
		"1a": "1, configuration format", "1b": "1, plugin configuration objects", "1c": "1, version considerations",
		"2a": "2, overview", "2b": "2, parameters", "2c": "2, errors", "2d": "2, ADD", "2e": "2, DEL", "2f": "2, CHECK",
		"2g": "2, STATUS", "2h": "2, VERSION", "2i": "2, GC",
		"3a": "3, lifecycle", "3b": "3, attachment parameters", "3c": "3, adding an attachment",
		"3d": "3, deleting an attachment", "3e": "3, checking an attachment", "3f": "3, garbage-collecting a network",
		"3g": "3, deriving request configuration", "3h": "3, deriving runtimeConfig",
		"4a": "4, plugin delegation", "4b": "4, delegated plugin execution", "4c": "4, delegating plugins",
		"5a": "5, ADD success", "5b": "5, delegated plugins", "5c": "5, VERSION success", "5d": "5, error",
	}
	var out []string
	for part := range strings.SplitSeq(section, "/") {
		title := titles[part]
		if title == "" {
			title = part
		}
		out = append(out, title)
	}
	return strings.Join(out, "; ")
}
