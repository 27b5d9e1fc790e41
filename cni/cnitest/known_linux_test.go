package cnitest_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni/cnitest"
	"github.com/cnikit/cnikit/internal/testenv"
)

// knownFault is one that a reference plugin is known to have, of a rule that a case is
// about.
type knownFault struct {
	name   string
	plugin string
	id     string // of the case
	seen   string // part of what the report says was seen
}

func knownFaults() []knownFault {
	return []knownFault{
		{"GC is not forwarded to the IPAM delegate", "bridge", "delegation/gc", "the delegate was called with ADD"},
		{"so GC frees no address", "ptp", "gc/frees-addresses", "no IP addresses available"},
		{"STATUS is blind to an exhausted range", "host-local", "status/exhausted", "is taken, so that ADD fails, and STATUS: exit status 0"},
		{"masquerade rules are left by a DEL without namespace", "bridge", "del/masquerade", "CNI-"},
		{"CHECK fails for networks without addresses", "bridge", "check/without-addresses", "Mac doesn't match"},
		{"VERSION does not echo the version that was asked with", "loopback", "version/echo", `VERSION with cniVersion "1.0.0" answers cniVersion "1.1.0"`},
		{"DEL is refused without CNI_PATH", "host-local", "del/optional-variables", "required env variables [CNI_PATH] missing"},
		{"a second ADD that fails frees the addresses of the first", "host-local", "ipam/second-add", "is given to another container while the first one has it"},
		{"the host's namespace is refused too late", "bridge", "faults/host-namespace", "+ node: file {{dir}}/cnitest/10.88.0."},
		{"an ADD that fails leaves an address up", "bridge", "add/failure-leaves-nothing", ": addr 198.18.0."},
	}
}

// TestKnownFaults: the kit finds what the reference plugins are known to do wrong.
func TestKnownFaults(t *testing.T) {
	testenv.NetAdmin(t)
	path := peerDirs(t)
	for _, f := range knownFaults() {
		t.Run(f.plugin+": "+f.name, func(t *testing.T) {
			t.Parallel()
			p := named(t, f.plugin)
			testenv.Kernel(t, features(p)...)
			if p.tool != "" {
				testenv.Tool(t, p.tool)
			}
			report, err := cnitest.Examine(t.Context(), p.target(t, path), cnitest.Options{
				Run: "^" + regexp.QuoteMeta(f.id) + "$", Seed: 1, Timeout: time.Minute, // the machine may be busy
			})
			require.NoError(t, err)
			require.Len(t, report.Outcomes, 1)
			o := report.Outcomes[0]
			want := cnitest.Broken
			if o.Strength != cnitest.Must {
				want = cnitest.Warned
			}
			require.Equal(t, want, o.Verdict, "%s%s", o.Seen, o.Reason)
			assert.Contains(t, o.Seen, f.seen)
			t.Log(strings.TrimSpace(o.Seen))
		})
	}
}

func named(t *testing.T, plugin string) peer {
	t.Helper()
	for _, p := range peers() {
		if p.name == plugin {
			return p
		}
	}
	t.Fatalf("no peer %q", plugin)
	return peer{}
}

func features(p peer) (list []testenv.Feature) {
	for _, kind := range p.needs {
		list = append(list, testenv.Feature(kind))
	}
	return list
}
