package cnitest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni/cnitest"
	"github.com/cnikit/cnikit/internal/testenv"
)

// trusting refuses what it must, but for an ADD without CNI_CONTAINERID.
const trusting = `#!/bin/sh
read -r config
fail() { echo '{"cniVersion": "1.0.0", "code": '$1', "msg": "'$2'"}'; exit 1; }
case $config in *}) ;; *) fail 6 cut ;; esac
case $CNI_COMMAND in
VERSION) echo '{"cniVersion": "1.0.0", "supportedVersions": ["1.0.0"]}' ;;
ADD) [ "$CNI_NETNS" ] || fail 4 CNI_NETNS; [ "$CNI_IFNAME" ] || fail 4 CNI_IFNAME; [ "$CNI_CONTAINERID" ] || WITHOUT; echo '{"cniVersion": "1.0.0"}' ;;
*) fail 4 CNI_COMMAND ;;
esac
`

// TestMissingVariableIsFoundOnce: an ADD that succeeds is no failure with exit status 0.
func TestMissingVariableIsFoundOnce(t *testing.T) {
	testenv.NetAdmin(t)
	testenv.Tool(t, "sh")
	for without, want := range map[string][]string{
		":": {"protocol/missing-variables"},
		`{ echo '{"cniVersion": "1.0.0", "code": 4, "msg": "no CNI_CONTAINERID"}'; exit 0; }`: {"protocol/exit-status", "protocol/missing-variables"},
	} {
		dir := t.TempDir()
		script := strings.Replace(trusting, "WITHOUT", without, 1)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "trusting"), []byte(script), 0o755))
		r, err := cnitest.Examine(t.Context(), cnitest.Target{
			Config: []byte(`{"type": "trusting"}`), Path: []string{dir}, Profile: cnitest.ProfileChained,
		}, cnitest.Options{Run: "^protocol/(result|exit-status|missing-variables|unknown-command)$"})
		require.NoError(t, err)
		assert.Equal(t, want, verdicts(r, cnitest.Broken), "%+v", r.Outcomes)
		assert.Contains(t, verdicts(r, cnitest.Kept), "protocol/result")
	}
}
