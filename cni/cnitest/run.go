package cnitest

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// seedVariable is the variable of the environment that [Run] takes its seed from.
const seedVariable = "CNITEST_SEED"

// Run examines a plugin with one subtest per case, "group/case". A broken rule that must
// be kept fails its subtest, and the message has the command that runs the case again
// with the same seed. One that should be kept is logged, there and in a last line
// that names them all; "go test" shows what is logged with -v, or when the test fails,
// which it does for them with [Options.Strict]. Cases that do not apply are skipped with
// the reason. With [Options.Parallel] the subtests are parallel ones. Unless the options
// have one, the seed is that of the variable CNITEST_SEED.
//
// Where the test has no right to make network namespaces it is skipped, with CI=true in
// the environment it fails. It takes its time, so with -short it is skipped in any case.
func Run(t *testing.T, target Target, o Options) {
	t.Helper()
	if testing.Short() {
		t.Skip("examining a plugin takes its time; run the test without -short")
	}
	o, err := o.seeded()
	if err != nil {
		t.Fatal(err)
	}
	x := testExam(t, target, o)
	t.Logf("%s as %s, versions %v, seed %d", x.target.Plugin, x.target.Profile, x.versions, x.seed)
	outcomes := make([]Outcome, len(x.cases))
	t.Cleanup(func() { x.conclude(t, outcomes) }) // when parallel subtests have ended, too
	for i, c := range x.cases {
		t.Run(c.ID(), func(t *testing.T) {
			if o.Parallel {
				t.Parallel()
			}
			outcomes[i] = x.judge(t.Context(), c)
			outcomes[i].tell(t, x.seed)
		})
	}
}

// conclude logs what is about no single case.
func (x *exam) conclude(t *testing.T, outcomes []Outcome) {
	t.Helper()
	for _, note := range x.notes {
		t.Log(note)
	}
	var warned []string
	for _, o := range outcomes {
		if o.Verdict == Warned {
			warned = append(warned, o.ID())
		}
	}
	if len(warned) > 0 {
		t.Logf("warned, which Options.Strict makes a failure: %s", strings.Join(warned, ", "))
	}
}

// testExam is an examination that goes away with the test. Without the right to make
// namespaces the test is skipped.
func testExam(t testing.TB, target Target, o Options) *exam {
	t.Helper()
	x, err := newExam(t.Context(), target, o)
	if errors.Is(err, errNoNamespaces) && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(x.close)
	return x
}

// seeded has the seed of the environment, unless there is one.
func (o Options) seeded() (Options, error) {
	if text := os.Getenv(seedVariable); text != "" && o.Seed == 0 {
		seed, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return o, fmt.Errorf("variable %s=%s: is no number, such as the seed that a failure tells: %w", seedVariable, text, err)
		}
		o.Seed = seed
	}
	return o, nil
}

// tell makes the outcome that of a test.
func (o Outcome) tell(t *testing.T, seed uint64) {
	t.Helper()
	switch o.Verdict {
	case Broken:
		t.Errorf("%s %s be kept: %s\nseen: %s\nfix: %s\n%s", rulesText(o.Rows), o.Strength, o.About, o.Seen, o.Fix, o.raced(again(t.Name(), seed)))
	case Warned:
		t.Logf("warning: %s %s be kept: %s\nseen: %s\nfix: %s", rulesText(o.Rows), o.Strength, o.About, o.Seen, o.Fix)
	case FailedToRun:
		t.Errorf("the case could not be run: %s\n%s", o.Reason, o.raced(again(t.Name(), seed)))
	case Skipped:
		t.Skip(o.Reason)
	case Kept:
	}
}

// again is the command that runs one test and no other. A seed in the options of the
// test has precedence, and is the same.
func again(test string, seed uint64) string {
	parts := strings.Split(test, "/")
	for i, part := range parts {
		parts[i] = "^" + regexp.QuoteMeta(part) + "$"
	}
	return fmt.Sprintf("this case again: %s=%d go test -run '%s'", seedVariable, seed, strings.Join(parts, "/"))
}
