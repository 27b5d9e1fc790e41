package cnitest_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni/cnitest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o755))
		require.NoError(t, os.WriteFile(path, got, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "go test -update writes it")
	require.Equal(t, string(want), string(got))
}

// brokenReport has one outcome of each kind.
func brokenReport() *cnitest.Report {
	outcome := func(group, name string, v cnitest.Verdict) cnitest.Outcome {
		return cnitest.Outcome{
			CaseInfo: cnitest.CaseInfo{
				Group: group, Name: name, Rows: []int{57}, Strength: cnitest.Must,
				About: "A second DEL of an attachment succeeds.", Fix: "treat what is gone already as removed",
			},
			Verdict: v, Took: 20 * time.Millisecond,
		}
	}
	left := outcome("del", "masquerade", cnitest.Warned)
	left.Rows, left.Strength, left.Took = []int{20, 56, 99}, cnitest.Should, 1234*time.Millisecond
	left.About = "DEL without CNI_NETNS removes the rules that ipMasq added."
	left.Fix = "name or comment masquerade rules so that DEL finds them by container ID and interface name, " +
		"or take the addresses from prevResult, and tear them down without looking into the namespace"
	left.Seen = "after ADD with ipMasq and a DEL without namespace, these are left:\n" +
		"  + node: nft chain ip nat CNI-8c6ce10d93eab21f2ac587cb\n" +
		"  + node: nft rule ip nat CNI-8c6ce10d93eab21f2ac587cb payload bitwise cmp match counter target and so on\n" +
		"  - node: route main 10.88.0.0/24 dev cnitest0"
	repeated := outcome("del", "repeated", cnitest.Broken)
	repeated.Seen = "the second DEL: exit status 1, stdout {\"code\": 999, \"msg\": \"Link <eth0> not found & \x1b[31mred\x07\"}"
	ill := outcome("faults", "killed-add", cnitest.FailedToRun)
	ill.Reason = "no space left on device"
	r := &cnitest.Report{
		Plugin: "sample", Profile: cnitest.ProfileInterface, Versions: []string{"0.4.0", "1.0.0"}, Seed: 42, Took: 3210 * time.Millisecond,
		Outcomes: []cnitest.Outcome{outcome("protocol", "result", cnitest.Kept), outcome("del", "succeeds", cnitest.Kept), left, repeated, ill},
		Notes:    []string{"ptrace is refused here: the plugin was killed at times that follow from the seed"},
	}
	for _, name := range []string{"silent", "error", "exhausted", "environment", "code", "delegate", "binding"} {
		skipped := outcome("status", name, cnitest.Skipped)
		skipped.Reason = "the plugin does not speak version 1.1.0, only [0.4.0 1.0.0]"
		r.Outcomes = append(r.Outcomes, skipped)
	}
	alone := outcome("gc", "silent", cnitest.Skipped)
	alone.Reason = "the plugin delegates to no other"
	r.Outcomes = append(r.Outcomes, alone)
	return r
}

func keptReport() *cnitest.Report {
	r := brokenReport()
	r.Outcomes, r.Notes = r.Outcomes[:2], nil
	return r
}

func TestReportAsText(t *testing.T) {
	for name, c := range map[string]struct {
		report *cnitest.Report
		o      cnitest.TextOptions
	}{
		"report.txt":         {brokenReport(), cnitest.TextOptions{Command: "cnisanity -plugin ./sample"}},
		"report-verbose.txt": {brokenReport(), cnitest.TextOptions{Verbose: true}},
		"report-color.txt":   {brokenReport(), cnitest.TextOptions{Color: true, Command: "cnisanity -plugin ./sample"}},
		"report-kept.txt":    {keptReport(), cnitest.TextOptions{Command: "cnisanity -plugin ./sample"}},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			require.NoError(t, c.report.WriteText(&out, c.o))
			golden(t, name, out.Bytes())
		})
	}
}

// TestReportObeysNoTerminal: what a plugin prints must not reach the terminal as
// commands.
func TestReportObeysNoTerminal(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, brokenReport().WriteText(&out, cnitest.TextOptions{}))
	require.NotContains(t, out.String(), "\x1b")
	require.NotContains(t, out.String(), "\x07")
	for line := range strings.Lines(out.String()) {
		require.Equal(t, strings.TrimRight(line, " \n")+"\n", line, "a line ends in spaces")
	}
}

func TestReportAsJSON(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, brokenReport().WriteJSON(&out))
	golden(t, "report.json", out.Bytes())

	var back struct {
		Verdict cnitest.Verdict
		Counts  map[cnitest.Verdict]int
		cnitest.Report
	}
	require.NoError(t, json.Unmarshal(out.Bytes(), &back))
	require.Equal(t, *brokenReport(), back.Report)
	require.Equal(t, cnitest.Broken, back.Verdict)
	require.Equal(t, map[cnitest.Verdict]int{cnitest.Kept: 2, cnitest.Broken: 1, cnitest.Warned: 1, cnitest.FailedToRun: 1, cnitest.Skipped: 8}, back.Counts)
}

func TestReportAsJUnit(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, brokenReport().WriteJUnit(&out))
	golden(t, "report.xml", out.Bytes())

	// What the schemas that CI systems check against have in common.
	type tally struct {
		Tests    int     `xml:"tests,attr"`
		Failures int     `xml:"failures,attr"`
		Errors   int     `xml:"errors,attr"`
		Skipped  int     `xml:"skipped,attr"`
		Time     float64 `xml:"time,attr"`
	}
	var suites struct {
		XMLName xml.Name `xml:"testsuites"`
		tally
		Suites []struct {
			Name string `xml:"name,attr"`
			tally
			Cases []struct {
				Name      string    `xml:"name,attr"`
				ClassName string    `xml:"classname,attr"`
				Time      float64   `xml:"time,attr"`
				Failure   *struct{} `xml:"failure"`
				Error     *struct{} `xml:"error"`
				Skipped   *struct{} `xml:"skipped"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	require.NoError(t, xml.Unmarshal(out.Bytes(), &suites))
	require.Equal(t, tally{Tests: 13, Failures: 1, Errors: 1, Skipped: 8, Time: 3.21}, suites.tally)
	var names []string
	for _, suite := range suites.Suites {
		names = append(names, suite.Name)
		var counted tally
		for _, c := range suite.Cases {
			require.NotEmpty(t, c.Name)
			require.Equal(t, "sample."+suite.Name, c.ClassName)
			counted.Tests++
			counted.Time += c.Time
			if c.Failure != nil {
				counted.Failures++
			}
			if c.Error != nil {
				counted.Errors++
			}
			if c.Skipped != nil {
				counted.Skipped++
			}
		}
		require.InDelta(t, counted.Time, suite.Time, 0.001)
		counted.Time = suite.Time
		require.Equal(t, counted, suite.tally, suite.Name)
	}
	require.Equal(t, []string{"protocol", "del", "faults", "status", "gc"}, names)
}

func TestReportVerdict(t *testing.T) {
	r := brokenReport()
	require.Equal(t, cnitest.Broken, r.Verdict())
	without := func(v cnitest.Verdict) {
		var rest []cnitest.Outcome
		for _, o := range r.Outcomes {
			if o.Verdict != v {
				rest = append(rest, o)
			}
		}
		r.Outcomes = rest
	}
	for _, step := range []struct{ gone, verdict cnitest.Verdict }{
		{cnitest.Broken, cnitest.FailedToRun}, {cnitest.FailedToRun, cnitest.Warned},
		{cnitest.Warned, cnitest.Kept}, {cnitest.Kept, cnitest.Skipped},
	} {
		without(step.gone)
		require.Equal(t, step.verdict, r.Verdict())
	}
}

func TestReportTellsThatItCannotBeWritten(t *testing.T) {
	for name, write := range map[string]func(*cnitest.Report) error{
		"text":  func(r *cnitest.Report) error { return r.WriteText(full{}, cnitest.TextOptions{}) },
		"JSON":  func(r *cnitest.Report) error { return r.WriteJSON(full{}) },
		"JUnit": func(r *cnitest.Report) error { return r.WriteJUnit(full{}) },
	} {
		t.Run(name, func(t *testing.T) { require.ErrorIs(t, write(brokenReport()), errFull) })
	}
}

var errFull = errors.New("disk is full")

// full is a file on a disk without space.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

// TestRaceAgain: the seed does not repeat a race, and the report does not say that it
// does.
func TestRaceAgain(t *testing.T) {
	const hint = "no seed repeats a race: run it several times\n"
	r := brokenReport()
	var out bytes.Buffer
	require.NoError(t, r.WriteText(&out, cnitest.TextOptions{}))
	require.NotContains(t, out.String(), hint)
	for i := range r.Outcomes {
		if r.Outcomes[i].Verdict == cnitest.Broken {
			r.Outcomes[i].Group, r.Outcomes[i].Name = "concurrency", "storm"
		}
	}
	require.NoError(t, r.WriteText(&out, cnitest.TextOptions{Command: "cnisanity -plugin ./sample"}))
	require.Contains(t, out.String(), "one case again: cnisanity -plugin ./sample -run '^concurrency/storm$' -seed 42\n"+hint)
}

// TestReportShortensDocuments, which have no spaces to break them at, but not for those who
// want everything.
func TestReportShortensDocuments(t *testing.T) {
	document := `{"ips":["` + strings.Repeat("é", 300) + `"]}`
	for _, verdict := range []cnitest.Verdict{cnitest.Broken, cnitest.Skipped} {
		r := brokenReport()
		r.Outcomes = r.Outcomes[3:4]
		r.Outcomes[0].Verdict, r.Outcomes[0].Reason = verdict, "ADD failed: "+document
		r.Outcomes[0].Seen = "the result: " + document + "\n  + node: " + document
		write := func(verbose bool) string {
			var out bytes.Buffer
			require.NoError(t, r.WriteText(&out, cnitest.TextOptions{Verbose: verbose}))
			return out.String()
		}
		require.Contains(t, write(true), " "+document+"\n")
		for line := range strings.Lines(write(false)) {
			if !strings.Contains(line, "+ node: ") { // a line of a comparison is one
				require.LessOrEqual(t, utf8.RuneCountInString(line), 101, line)
			}
		}
		require.Contains(t, write(false), "é…\n")
	}
}
