package cnitest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni/cnitest"
	"github.com/cnikit/cnikit/internal/testenv"
)

// jealous is a bridge that refuses an address which another container has, as those do
// that set a route to it on the host.
const jealous = `#!/bin/sh
input=$(cat)
dir=$(printf '%s' "$input" | sed 's/.*"dataDir":"\([^"]*\)".*/\1/')
out=$(printf '%s' "$input" | BRIDGE)
status=$?
address=$(printf '%s' "$out" | sed -n 's/.*"address":"\(198[^"/]*\).*/\1/p')
case $CNI_COMMAND,$status in
ADD,0)
	if [ -n "$address" ] && [ -s "$dir/held-$address" ]; then
		echo '{"cniVersion": "1.1.0", "code": 100, "msg": "another container has '"$address"'"}'
		exit 1
	fi
	[ -z "$address" ] || echo "$CNI_CONTAINERID" >"$dir/held-$address" ;;
DEL,0)
	for file in "$dir"/held-*; do
		grep -qs "$CNI_CONTAINERID" "$file" && rm "$file"
	done ;;
esac
[ -z "$out" ] || printf '%s\n' "$out"
exit $status
`

// TestNoAddressIsGivenTwice: the kit's own delegate is no excuse for a plugin, nor a trap.
func TestNoAddressIsGivenTwice(t *testing.T) {
	testenv.Kernel(t, testenv.Bridge, testenv.Veth)
	target := brokenTarget(t, "bridge", "")
	dir := t.TempDir()
	script := strings.ReplaceAll(jealous, "BRIDGE", filepath.Join(target.Path[0], "broken-bridge"))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "jealous"), []byte(script), 0o755))
	target.Path = append(target.Path, dir)
	target.Config = []byte(strings.Replace(string(target.Config), "broken-bridge", "jealous", 1))
	r, err := cnitest.Examine(t.Context(), target, cnitest.Options{
		Run: "^(delegation/|add/failure|faults/delegate-(slow|noisy)$)", Seed: 1, Parallel: true, Timeout: time.Minute,
	})
	require.NoError(t, err)
	for _, o := range r.Outcomes {
		assert.Equal(t, cnitest.Kept, o.Verdict, "%s: %s%s", o.ID(), o.Seen, o.Reason)
	}
}
