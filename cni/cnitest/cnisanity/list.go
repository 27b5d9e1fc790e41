package main

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/cnikit/cnikit/cni/cnitest"
)

// writeList tells what cases there are, for a profile if one is chosen.
func (o *options) writeList(stdout io.Writer) error {
	cases, err := o.cases()
	if err != nil {
		return err
	}
	out, err := o.open(stdout)
	if err != nil {
		return err
	}
	defer out.close()
	if out.json != nil {
		encoder := json.NewEncoder(out.json)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		return encoder.Encode(cases)
	}
	width := 0
	for _, c := range cases {
		width = max(width, len(c.ID()))
	}
	for _, c := range cases {
		if _, err := fmt.Fprintf(stdout, "%-*s  %-6s  %-12s  %s\n", width, c.ID(), c.Strength, rows(c), c.About); err != nil {
			return err
		}
		if o.verbose {
			if err := writeRules(stdout, c); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeRules writes what the numbers of a case stand for.
func writeRules(stdout io.Writer, c cnitest.CaseInfo) error {
	for _, rule := range cnitest.Rules() {
		if !slices.Contains(c.Rows, rule.Number) {
			continue
		}
		_, err := fmt.Fprintf(stdout, "  %3d  %s %s: %s (section %s)\n",
			rule.Number, strings.Join(rule.Actors, ", "), rule.Strength, rule.Text, cnitest.SectionTitle(rule.Section))
		if err != nil {
			return err
		}
	}
	return nil
}

func rows(c cnitest.CaseInfo) string {
	return strings.Trim(strings.Join(strings.Fields(fmt.Sprint(c.Rows)), ","), "[]")
}

// cases are those of the profile that -run and -skip leave.
func (o *options) cases() ([]cnitest.CaseInfo, error) {
	profile := cnitest.Profile(o.profile)
	if profile == "" && o.plugin != "" {
		if known, err := cnitest.KnownTarget(filepath.Base(o.plugin), builtinIPAM); err == nil {
			profile = known.Profile
		}
	}
	run, err := regexp.Compile(o.runs)
	if err != nil {
		return nil, fmt.Errorf("flag -run: %w", err)
	}
	skip, err := regexp.Compile(o.skips)
	if err != nil {
		return nil, fmt.Errorf("flag -skip: %w", err)
	}
	var cases []cnitest.CaseInfo
	for _, c := range cnitest.Cases(profile) {
		if run.MatchString(c.ID()) && (o.skips == "" || !skip.MatchString(c.ID())) {
			cases = append(cases, c)
		}
	}
	return cases, nil
}
