package cnitest_test

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/cni/cnitest"
	"github.com/cnikit/cnikit/internal/testenv"
)

// TestChainedPluginExaminedAsAnother: the report says how to examine it.
func TestChainedPluginExaminedAsAnother(t *testing.T) {
	testenv.NetAdmin(t)
	const hint = "The plugin wants a prevResult: if it is chained, examine it with -profile chained (Target.Profile: cnitest.ProfileChained), or put the plugin before it in a list"
	examine := func(msg, run string, profile cnitest.Profile) *cnitest.Report {
		plugin := &cnitest.Scripted{Replies: map[cni.Command]cnitest.Reply{
			cni.CommandAdd: {Stdout: `{"cniVersion": "1.0.0", "code": 7, "msg": "` + msg + `"}`, Exit: 1},
		}}
		r, err := cnitest.Examine(t.Context(), cnitest.Target{
			Config: []byte(`{"type": "mine"}`), Handler: plugin, Profile: profile,
		}, cnitest.Options{Run: run})
		require.NoError(t, err)
		return r
	}

	r := examine("must be called as chained plugin", "^protocol/result$", "")
	require.Equal(t, cnitest.Broken, r.Outcomes[0].Verdict)
	assert.Regexp(t, "^"+regexp.QuoteMeta(hint)+`\. Else: if ADD fails, remove the cause`, r.Outcomes[0].Fix)
	assert.Equal(t, []string{hint + "."}, r.Notes)
	for _, c := range cnitest.Cases("") {
		assert.NotContains(t, c.Fix, hint, "the case itself is as it was")
	}

	r = examine("PrevResult is missing", "^del/succeeds$", cnitest.ProfileMeta)
	require.Equal(t, cnitest.Skipped, r.Outcomes[0].Verdict)
	assert.Equal(t, []string{hint + "."}, r.Notes, "also when the case that looks at ADD is not run")

	assert.Empty(t, examine("no address is left", "^protocol/result$", "").Notes)
	r = examine("prevResult has no address", "^protocol/result$", cnitest.ProfileChained)
	assert.Empty(t, r.Notes, "it has one")
	assert.Regexp(t, "^if ADD fails", r.Outcomes[0].Fix)
}
