package cnitest

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"
)

// WriteJUnit writes the report in the XML of JUnit that CI systems read: a suite for
// each group, a case for each case. A broken rule is a failure, a case that could not be
// run an error; what a warning has to say is in system-out, as a warning is no failure.
func (r *Report) WriteJUnit(w io.Writer) error {
	all := junitSuites{Name: "cnitest " + r.Plugin, junitTally: tally(r.Outcomes)}
	all.Time = seconds(r.Took)
	for _, group := range r.Groups() {
		all.Suites = append(all.Suites, r.junitSuite(group))
	}
	data, err := xml.MarshalIndent(all, "", "  ")
	if err != nil {
		return fmt.Errorf("write report as JUnit: %w", err)
	}
	if _, err := fmt.Fprintf(w, "%s%s\n", xml.Header, data); err != nil {
		return fmt.Errorf("write report as JUnit: %w", err)
	}
	return nil
}

type junitSuites struct {
	XMLName xml.Name `xml:"testsuites"`
	Name    string   `xml:"name,attr"`
	junitTally
	Suites []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name string `xml:"name,attr"`
	junitTally
	Properties []junitProperty `xml:"properties>property"`
	Cases      []junitCase     `xml:"testcase"`
}

type junitTally struct {
	Tests    int    `xml:"tests,attr"`
	Failures int    `xml:"failures,attr"`
	Errors   int    `xml:"errors,attr"`
	Skipped  int    `xml:"skipped,attr"`
	Time     string `xml:"time,attr"`
}

type junitProperty struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type junitCase struct {
	Name      string        `xml:"name,attr"`
	Class     string        `xml:"classname,attr"`
	Time      string        `xml:"time,attr"`
	Failure   *junitMessage `xml:"failure"`
	Error     *junitMessage `xml:"error"`
	Skipped   *junitMessage `xml:"skipped"`
	SystemOut string        `xml:"system-out,omitempty"`
}

type junitMessage struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

func (r *Report) junitSuite(group string) junitSuite {
	var outcomes []Outcome
	suite := junitSuite{Name: group, Properties: []junitProperty{
		{"profile", string(r.Profile)},
		{"versions", strings.Join(r.Versions, " ")},
		{"seed", fmt.Sprint(r.Seed)},
	}}
	for _, o := range r.Outcomes {
		if o.Group == group {
			outcomes = append(outcomes, o)
			suite.Cases = append(suite.Cases, o.junitCase(r.Plugin))
		}
	}
	suite.junitTally = tally(outcomes)
	return suite
}

func tally(outcomes []Outcome) junitTally {
	r := Report{Outcomes: outcomes}
	var took time.Duration
	for _, o := range outcomes {
		took += o.Took
	}
	return junitTally{
		Tests: len(outcomes), Failures: r.Count(Broken), Errors: r.Count(FailedToRun), Skipped: r.Count(Skipped),
		Time: seconds(took),
	}
}

func (o Outcome) junitCase(plugin string) junitCase {
	c := junitCase{Name: o.Name, Class: plugin + "." + o.Group, Time: seconds(o.Took)}
	text := fmt.Sprintf("rule: %s (%s)\nseen: %s\nfix: %s", o.About, o.citation(), o.Seen, o.Fix)
	switch o.Verdict {
	case Broken:
		c.Failure = &junitMessage{o.About, string(o.Strength), text}
	case FailedToRun:
		c.Error = &junitMessage{Message: o.Reason}
	case Skipped:
		c.Skipped = &junitMessage{Message: o.Reason}
	case Warned:
		c.SystemOut = "warning\n" + text
	case Kept:
	}
	return c
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }
