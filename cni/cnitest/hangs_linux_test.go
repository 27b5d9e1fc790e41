package cnitest_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni/cnitest"
	"github.com/cnikit/cnikit/internal/testenv"
)

// mute is a plugin that answers VERSION, and by default ADD; COMMANDS gives no answer. It
// writes down what it is called for.
const mute = `#!/bin/sh
case $CNI_COMMAND in
VERSION) echo '{"cniVersion": "1.1.0", "supportedVersions": ["1.1.0"]}'; exit ;;
esac
echo "$CNI_COMMAND" >>CALLS
case $CNI_COMMAND in
HANGS) exec sleep 60 ;;
ADD) echo '{"cniVersion": "1.1.0", "ips": [{"address": "192.0.2.1/24"}]}' ;;
esac
`

// examineMute runs the cases on a plugin that hangs, and returns what it was called for.
func examineMute(t *testing.T, hangs string, o cnitest.Options) (*cnitest.Report, []string) {
	t.Helper()
	testenv.NetAdmin(t)
	dir := t.TempDir()
	calls := filepath.Join(t.TempDir(), "calls")
	script := strings.NewReplacer("HANGS", hangs, "CALLS", calls).Replace(mute)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "mute"), []byte(script), 0o755))
	o.Timeout, o.Seed = busy, 1
	r, err := cnitest.Examine(t.Context(), cnitest.Target{
		Config: []byte(`{"name": "net", "type": "mute"}`), Path: []string{dir}, Profile: cnitest.ProfileIPAM,
	}, o)
	require.NoError(t, err)
	made, err := os.ReadFile(calls)
	require.NoError(t, err)
	return r, strings.Fields(string(made))
}

// TestHangingADD: one case tells of it, and no other waits.
func TestHangingADD(t *testing.T) {
	t.Parallel()
	r, calls := examineMute(t, "*", cnitest.Options{})
	assert.Contains(t, caught(r), "protocol/result")
	for _, o := range r.Outcomes {
		if o.ID() == "protocol/result" {
			assert.Contains(t, o.Seen, "ADD: no answer within")
		}
	}
	assert.Contains(t, r.Notes, "mute ADD gave no answer within 2s; if the plugin is slow, and does not hang, give it more time, with -timeout or Options.Timeout")
	assert.Contains(t, skipped(r, "add/repeated"), "needs mute ADD to work, and it hangs: no answer within 2s; see protocol/result")
	assert.Contains(t, skipped(r, "faults/killed-add"), "it hangs")
	assert.Contains(t, skipped(r, "concurrency/storm"), "it hangs")
	assert.Empty(t, verdicts(r, cnitest.FailedToRun))
	made := map[string]int{}
	for _, call := range calls {
		made[call]++
	}
	assert.Equal(t, 1, made["ADD"], "%v", calls)
	assert.LessOrEqual(t, len(calls), 20, "%v", calls)
}

// TestHangingDEL: what needs no DEL is examined.
func TestHangingDEL(t *testing.T) {
	t.Parallel()
	r, calls := examineMute(t, "DEL", cnitest.Options{Run: "^(protocol|add|del|concurrency)/"})
	assert.Contains(t, caught(r), "del/succeeds")
	assert.Contains(t, verdicts(r, cnitest.Kept), "protocol/result")
	for _, id := range []string{"del/repeated", "concurrency/del", "concurrency/storm"} {
		assert.Contains(t, skipped(r, id), "needs mute DEL to work, and it hangs: no answer within 2s; see del/succeeds", id)
	}
	made := 0
	for _, call := range calls {
		if call == "DEL" {
			made++
		}
	}
	assert.LessOrEqual(t, made, 3, "%v", calls)
}

// TestHangsWhereNothingTellsOfIt: a plugin that was not examined is not taken for sound.
func TestHangsWhereNothingTellsOfIt(t *testing.T) {
	t.Parallel()
	r, calls := examineMute(t, "ADD", cnitest.Options{Run: "^(add|del)/"})
	assert.Equal(t, cnitest.FailedToRun, r.Verdict())
	assert.Equal(t, 1, r.Count(cnitest.FailedToRun))
	assert.Contains(t, skipped(r, "del/repeated"), "needs mute ADD to work, and it hangs: no answer within 2s")
	assert.Equal(t, "ADD", strings.Join(calls, " ")[:3])
	assert.LessOrEqual(t, len(calls), 4, "%v", calls)
}

// TestHangsAllOfASudden: a call without an answer may be the machine's, three in a row are
// the plugin's, and then it was not examined in full.
func TestHangsAllOfASudden(t *testing.T) {
	t.Parallel()
	const afterOne = `$([ $CNI_COMMAND = ADD ] && ! mkdir "$0.added" 2>/dev/null && echo ADD)`
	r, calls := examineMute(t, afterOne, cnitest.Options{Run: "^(protocol/result|del/)"})
	assert.Contains(t, verdicts(r, cnitest.Kept), "protocol/result")
	assert.Equal(t, 1, r.Count(cnitest.FailedToRun))
	assert.Equal(t, []string{"ADD", "ADD", "ADD", "ADD"}, slices.DeleteFunc(calls, func(c string) bool { return c != "ADD" }))
}
