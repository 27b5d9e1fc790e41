package cnitest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/cni/cnitest"
	"github.com/cnikit/cnikit/internal/testenv"
)

// TestConfigurationsOfOlderVersions: what came later is skipped, and a plugin that speaks
// the version keeps the rest.
func TestConfigurationsOfOlderVersions(t *testing.T) {
	testenv.Kernel(t, testenv.Bridge, testenv.Veth)
	o := cnitest.Options{Run: "^(results|status|gc)/|^check/silent$|^delegation/(gc|status|result)|^faults/(delegate-slow|state-read-only-status)$", Seed: 1, Parallel: true, Timeout: time.Minute}
	if testenv.Scale(t, 1) > 1 {
		o.Run = ""
	}
	for version, skips := range map[string][]string{
		"0.1.0": {"results/interfaces", "results/sandbox", "check/silent", "status/ready", "gc/succeeds", "delegation/gc"},
		"0.3.1": {"check/silent", "status/ready", "gc/succeeds", "delegation/gc"},
		"1.0.0": {"status/ready", "gc/succeeds", "delegation/status", "faults/state-read-only-status"},
	} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			target := brokenTarget(t, "bridge", "")
			target.Config = append([]byte(`{"cniVersion": "`+version+`", `), target.Config[1:]...)
			r, err := cnitest.Examine(t.Context(), target, o)
			require.NoError(t, err)
			for _, o := range r.Outcomes {
				assert.Contains(t, []cnitest.Verdict{cnitest.Kept, cnitest.Skipped}, o.Verdict, "%s: %s%s", o.ID(), o.Seen, o.Reason)
			}
			for _, id := range skips {
				assert.Contains(t, skipped(r, id), "the requests have "+version+", as the configuration says; leave its cniVersion out", id)
			}
			assert.Contains(t, verdicts(r, cnitest.Kept), "results/1.1.0", "its version is that of the case")
			assert.Contains(t, verdicts(r, cnitest.Kept), "delegation/result")
		})
	}
}

// TestDelegateOfOlderVersions: a delegate decides what can be examined.
func TestDelegateOfOlderVersions(t *testing.T) {
	testenv.NetAdmin(t)
	delegate := cnitest.Scripted{Replies: map[cni.Command]cnitest.Reply{
		cni.CommandVersion: {Stdout: `{"cniVersion": "1.1.0", "supportedVersions": ["0.4.0", "1.0.0"]}`},
	}}
	dir := t.TempDir()
	require.NoError(t, delegate.Install(dir, "old-ipam"))
	examine := func(cniVersion string) *cnitest.Report {
		config := `{` + cniVersion + `"type": "passing", "ipam": {"type": "old-ipam"}}`
		r, err := cnitest.Examine(t.Context(), cnitest.Target{
			Config: []byte(config), Path: []string{dir}, Handler: passing(), Profile: cnitest.ProfileChained,
		}, cnitest.Options{Run: "^(results/1|status/ready$)", Seed: 1})
		require.NoError(t, err)
		return r
	}

	const why = "1.0.0 is the newest version that old-ipam speaks, which the plugin calls"
	r := examine("")
	assert.Equal(t, []string{"the requests have version 1.0.0: " + why}, r.Notes)
	assert.Equal(t, []string{"results/1.0.0"}, verdicts(r, cnitest.Kept))
	assert.Equal(t, why, skipped(r, "results/1.1.0"))
	assert.Equal(t, "STATUS and GC are there since version 1.1.0, and the requests have 1.0.0: "+why, skipped(r, "status/ready"))

	r = examine(`"cniVersion": "1.1.0", `)
	assert.Empty(t, r.Notes)
	assert.Contains(t, verdicts(r, cnitest.Kept), "status/ready", "the configuration is obeyed")
}

// TestConfigurationOfAVersionThatIsNotSpoken: either may be wrong, and the report says so.
func TestConfigurationOfAVersionThatIsNotSpoken(t *testing.T) {
	testenv.NetAdmin(t)
	r, err := cnitest.Examine(t.Context(), cnitest.Target{
		Config: []byte(`{"cniVersion": "0.5.0", "type": "passing"}`), Handler: passing(), Profile: cnitest.ProfileChained,
	}, cnitest.Options{Run: "^version/known$", Seed: 1})
	require.NoError(t, err)
	require.Len(t, r.Notes, 1)
	assert.Contains(t, r.Notes[0], "the configuration has cniVersion 0.5.0, which the requests have too, and VERSION lists [0.1.0 ")
}
