package cnitest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni/cnitest"
	"github.com/cnikit/cnikit/internal/testenv"
)

// brokenTarget is a plugin of package internal/broken. With the fault "" it is sound.
func brokenTarget(t *testing.T, kind, fault string) cnitest.Target {
	t.Helper()
	program := testenv.Build(t, "./internal/broken")
	dir := t.TempDir()
	for _, kind := range []string{"bridge", "ipam", "chained"} {
		require.NoError(t, os.Symlink(program, filepath.Join(dir, "broken-"+kind)))
	}
	const ipam = `"ipam": {"type": "broken-ipam", "ranges": [[{"subnet": "10.88.0.0/24"}]], "routes": [{"dst": "0.0.0.0/0"}], "dataDir": "{{dir}}"}`
	config, profile := "", cnitest.Profile("")
	switch kind {
	case "bridge":
		config, profile = `{"type": "broken-bridge", "bridge": "broken0", "isGateway": true, `+ipam+`}`, cnitest.ProfileInterface
	case "ipam":
		config, profile = `{"type": "broken-ipam", `+ipam+`}`, cnitest.ProfileIPAM
	case "chained":
		config, profile = `{"type": "broken-chained", "dataDir": "{{dir}}"}`, cnitest.ProfileChained
	}
	return cnitest.Target{Path: []string{dir}, Config: []byte(config), Profile: profile, Env: []string{"FAULT=" + fault}}
}

// caught lists the cases that a report says are broken.
func caught(r *cnitest.Report) []string {
	return append(verdicts(r, cnitest.Broken), verdicts(r, cnitest.Warned)...)
}

// TestSoundPlugins: what the broken ones are made of keeps all rules.
func TestSoundPlugins(t *testing.T) {
	testenv.Kernel(t, testenv.Bridge, testenv.Veth)
	for _, kind := range []string{"bridge", "ipam", "chained"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			r, err := cnitest.Examine(t.Context(), brokenTarget(t, kind, ""), cnitest.Options{Seed: 1, Parallel: true, Timeout: time.Minute})
			require.NoError(t, err)
			for _, o := range r.Outcomes {
				assert.Contains(t, []cnitest.Verdict{cnitest.Kept, cnitest.Skipped}, o.Verdict, "%s: %s%s", o.ID(), o.Seen, o.Reason)
				if o.Verdict == cnitest.Skipped {
					t.Logf("%s skipped: %s", o.ID(), o.Reason)
				}
			}
		})
	}
}

// TestBrokenPlugins: each fault is found, by the cases that are about it and by no other
// of their groups; at full size, by no other at all.
func TestBrokenPlugins(t *testing.T) {
	testenv.Kernel(t, testenv.Bridge, testenv.Veth)
	for _, b := range brokenPlugins() {
		t.Run(b.fault, func(t *testing.T) {
			t.Parallel()
			o := cnitest.Options{Run: b.groups(), Seed: 1, Parallel: true, Timeout: time.Minute} // the machine may be busy
			if testenv.Scale(t, 1) > 1 {
				o.Run = ""
			}
			r, err := cnitest.Examine(t.Context(), brokenTarget(t, b.kind, b.fault), o)
			require.NoError(t, err)
			found := slices.DeleteFunc(caught(r), func(id string) bool { return slices.Contains(b.follow, id) })
			if !assert.ElementsMatch(t, b.cases, found) {
				for _, o := range r.Outcomes {
					t.Logf("%s %s: %s%s", o.Verdict, o.ID(), o.Seen, o.Reason)
				}
			}
			assert.Empty(t, verdicts(r, cnitest.FailedToRun))
		})
	}
}

// groups matches the cases that could mistake one rule for another: those of the groups
// that find the fault, and where cases take long, those alone that find it.
func (b brokenPlugin) groups() string {
	var some []string
	for _, id := range b.cases {
		group, name, _ := strings.Cut(id, "/")
		if slices.Contains([]string{"delegation", "concurrency", "faults"}, group) {
			some = append(some, group+"/"+regexp.QuoteMeta(name)+"$")
		} else {
			some = append(some, group+"/")
		}
	}
	return "^(" + strings.Join(some, "|") + ")"
}

// TestEveryCaseHasABrokenPlugin: a case that has never found anything may be unable to.
func TestEveryCaseHasABrokenPlugin(t *testing.T) {
	found := map[string]bool{}
	for _, b := range brokenPlugins() {
		for _, id := range b.cases {
			found[id] = true
		}
	}
	for _, c := range cnitest.Cases("") {
		assert.True(t, found[c.ID()], "no broken plugin in broken_table_test.go is found by %s", c.ID())
		delete(found, c.ID())
	}
	assert.Empty(t, found, "there are no such cases")
}

// TestEveryFaultIsUsed: the program has no other faults than the test.
func TestEveryFaultIsUsed(t *testing.T) {
	out, err := exec.Command(testenv.Build(t, "./internal/broken"), "faults").Output()
	require.NoError(t, err)
	var want []string
	for _, b := range brokenPlugins() {
		want = append(want, b.fault+" "+b.kind)
	}
	assert.ElementsMatch(t, want, strings.Split(strings.TrimSpace(string(out)), "\n"))
}
