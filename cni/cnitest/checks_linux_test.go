package cnitest_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/cni/cnitest"
	"github.com/cnikit/cnikit/internal/testenv"
)

// answering answers a command with what it is given, in which NETNS is CNI_NETNS.
func answering(command cni.Command, out string) cni.Handler {
	return handler{attaching(), func(inv cni.Invocation, usual []byte, err error) ([]byte, error) {
		if inv.Command != command {
			return usual, err
		}
		return []byte(strings.ReplaceAll(out, "NETNS", inv.NetNS)), nil
	}}
}

// failing fails a command if its configuration has a text.
func failing(command cni.Command, text string) cni.Handler {
	return handler{attaching(), func(inv cni.Invocation, usual []byte, err error) ([]byte, error) {
		if inv.Command == command && bytes.Contains(inv.Config, []byte(text)) {
			return nil, cni.Errorf(100, "it will not")
		}
		return usual, err
	}}
}

// TestEachCheckOfACase: many cases look at several things, and each is told.
func TestEachCheckOfACase(t *testing.T) {
	testenv.Kernel(t, testenv.Veth)
	const add = `{"cniVersion": "1.1.0", "interfaces": [{"name": %q, "sandbox": %q}], "ips": [{"address": "10.1.2.3/24", "interface": 0}]}`
	for _, c := range []struct {
		id      string
		profile cnitest.Profile
		h       cni.Handler
		seen    string
	}{
		{"results/interfaces", "", answering(cni.CommandAdd, fmt.Sprintf(add, "ghost", "")), "the result lists ghost, which is not on the host"},
		{"results/interfaces", "", answering(cni.CommandAdd, fmt.Sprintf(add, "ghost", "NETNS")), "the result lists ghost, which is not in the container"},
		{"results/sandbox", "", answering(cni.CommandAdd, fmt.Sprintf(add, "eth0", "")), "eth0 is in the container, and its sandbox is empty"},
		{"results/sandbox", "", answering(cni.CommandAdd, fmt.Sprintf(add, "eth0", "NETNS")), "eth0 is on the host, and its sandbox is"},
		{"results/0.4.0", "", failing(cni.CommandAdd, `"0.4.0"`), "ADD in version 0.4.0: exit status"},
		{"results/0.4.0", "", handler{failing(cni.CommandDel, `"0.4.0"`), anyVersion}, "DEL in version 0.4.0: exit status"},
		{"results/abbreviated", cnitest.ProfileIPAM, answering(cni.CommandAdd, `{"cniVersion": "1.1.0"}`), "the result has no address"},
		{"results/abbreviated", cnitest.ProfileIPAM, answering(cni.CommandAdd, fmt.Sprintf(add, "eth0", "")), "ips[0].interface is 0"},
		{"chaining/behind-another", "", failing(cni.CommandAdd, "prevResult"), "ADD with the prevResult of a plugin that made net0: exit status"},
		{"version/answer", "", answering(cni.CommandVersion, `{"cniVersion": "1.1.0"}`), "the answer has no supportedVersions"},
		{"version/answer", "", answering(cni.CommandVersion, `{"supportedVersions": ["1.1.0"]}`), "the answer has no cniVersion"},
		{"version/known", "", answering(cni.CommandVersion, `{"cniVersion": "1.1.0", "supportedVersions": ["1.1.0", "1.1.0"]}`), `supportedVersions has "1.1.0" twice`},
		{"version/unsupported", "", failing(cni.CommandAdd, `.9.9"`), `ADD with cniVersion "9.9.9" fails without code 1`},
		{"gc/succeeds", "", failing(cni.CommandGC, `containerID`), "GC with the only attachment in the list: exit status"},
		{"ipam/distinct", cnitest.ProfileIPAM, answering(cni.CommandAdd, `{"cniVersion": "1.1.0", "ips": [{"address": "10.89.1.2/29"}]}`), "10.89.1.2/29 was given to"},
	} {
		t.Run(c.id+"/"+c.seen, func(t *testing.T) {
			t.Parallel()
			r, err := cnitest.Examine(t.Context(), cnitest.Target{
				Config: []byte(`{"type": "attaching", "ipam": {"subnet": "10.88.0.0/24"}}`), Handler: c.h, Profile: c.profile,
			}, cnitest.Options{Run: "^" + c.id + "$", Seed: 1})
			require.NoError(t, err)
			require.Len(t, r.Outcomes, 1)
			o := r.Outcomes[0]
			assert.Contains(t, []cnitest.Verdict{cnitest.Broken, cnitest.Warned}, o.Verdict, o.Reason)
			assert.Contains(t, o.Seen, c.seen)
		})
	}
}

// TestPluginsThatKnowASubnetOnly: ranges are how host-local has it, and no rule.
func TestPluginsThatKnowASubnetOnly(t *testing.T) {
	testenv.NetAdmin(t)
	subnet := regexp.MustCompile(`"subnet":"([0-9]+\.[0-9]+\.[0-9]+)\.0/`)
	var given atomic.Int64
	h := handler{attaching(), func(inv cni.Invocation, out []byte, err error) ([]byte, error) {
		m := subnet.FindSubmatch(inv.Config)
		switch {
		case inv.Command != cni.CommandAdd:
			return out, err
		case m == nil, bytes.Contains(inv.Config, []byte("ranges")):
			return nil, cni.Errorf(cni.CodeInvalidConfig, "there is no subnet")
		}
		return fmt.Appendf(nil, `{"cniVersion": "1.1.0", "ips": [{"address": "%s.%d/29"}]}`, m[1], given.Add(1)), nil
	}}
	r, err := cnitest.Examine(t.Context(), cnitest.Target{
		Config: []byte(`{"type": "attaching", "ipam": {"subnet": "10.88.0.0/24"}}`), Handler: h, Profile: cnitest.ProfileIPAM,
	}, cnitest.Options{Run: "^ipam/distinct$", Seed: 1})
	require.NoError(t, err)
	assert.Equal(t, []string{"ipam/distinct"}, verdicts(r, cnitest.Kept), "%v", r.Outcomes)
}

// TestSlowDelegateOfAChainedPlugin: it may keep to itself what the delegate gave.
func TestSlowDelegateOfAChainedPlugin(t *testing.T) {
	target := chainedWithDelegate(t)
	r, err := cnitest.Examine(t.Context(), target, cnitest.Options{Run: "^faults/delegate-slow$", Seed: 1, Timeout: time.Minute})
	require.NoError(t, err)
	assert.Equal(t, []string{"faults/delegate-slow"}, verdicts(r, cnitest.Kept), "%v", r.Outcomes)
}

// chainedWithDelegate calls the IPAM plugin of its configuration, and prints prevResult.
func chainedWithDelegate(t *testing.T) cnitest.Target {
	t.Helper()
	testenv.NetAdmin(t)
	dir := t.TempDir()
	script := `#!/bin/sh
input=$(cat)
case $CNI_COMMAND in
VERSION) echo '{"cniVersion": "1.1.0", "supportedVersions": ["1.1.0"]}' ;;
ADD)
	delegate=$(printf '%s' "$input" | sed 's/.*"ipam":{[^}]*"type":"\([^"]*\)".*/\1/')
	for dir in $(echo "$CNI_PATH" | tr : ' '); do
		[ ! -x "$dir/$delegate" ] || printf '%s' "$input" | "$dir/$delegate" >/dev/null || exit 1
	done
	printf '%s' "$input" | sed 's/.*"prevResult":\({.*}\).*"type".*/\1/' ;;
esac
`
	require.NoError(t, os.WriteFile(filepath.Join(dir, "keeping"), []byte(script), 0o755))
	return cnitest.Target{
		Config: []byte(`{"type": "keeping", "ipam": {"type": "some-ipam"}}`), Path: []string{dir}, Profile: cnitest.ProfileChained,
	}
}

// anyVersion puts an answer to ADD into the version that it is asked for.
func anyVersion(inv cni.Invocation, out []byte, err error) ([]byte, error) {
	if inv.Command != cni.CommandAdd || err != nil {
		return out, err
	}
	result, err := cni.ParseResult(out, "1.1.0")
	if err != nil || !bytes.Contains(inv.Config, []byte(`"0.4.0"`)) {
		return out, err
	}
	return result.Encode("0.4.0")
}
