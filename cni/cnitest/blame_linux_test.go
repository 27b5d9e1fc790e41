package cnitest_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/cni/cnitest"
	"github.com/cnikit/cnikit/internal/netns"
	"github.com/cnikit/cnikit/internal/nl"
	"github.com/cnikit/cnikit/internal/testenv"
)

// The tests of this file: a fault is told by the case that is about it, and the cases
// that stumble over it are skipped and say which that is.

// attaching answers ADD with an address that it sets nowhere, and agrees with everything
// else.
func attaching() *cnitest.Scripted {
	return &cnitest.Scripted{Replies: map[cni.Command]cnitest.Reply{cni.CommandAdd: {
		Stdout: `{"cniVersion": "1.1.0", "ips": [{"address": "10.1.2.3/24"}]}`,
	}}}
}

// switchedOff makes the interface, with its address, and does not switch it on.
func switchedOff() cni.Handler {
	return handler{attaching(), func(inv cni.Invocation, out []byte, err error) ([]byte, error) {
		if inv.Command != cni.CommandAdd {
			return out, err
		}
		ns, err := netns.Open(inv.NetNS)
		if err != nil {
			return nil, err
		}
		conn, err := nl.OpenIn(ns)
		if err != nil {
			return nil, errors.Join(err, ns.Close())
		}
		defer conn.Close()
		attrs := netlink.NewLinkAttrs()
		attrs.Name = inv.IfName
		return out, errors.Join(conn.AddLink(&netlink.Veth{LinkAttrs: attrs, PeerName: "peer"}), ns.Close())
	}}
}

func examineAttaching(t *testing.T, h cni.Handler, run string) *cnitest.Report {
	t.Helper()
	testenv.Kernel(t, testenv.Veth)
	r, err := cnitest.Examine(t.Context(), cnitest.Target{Config: []byte(`{"type": "attaching"}`), Handler: h}, cnitest.Options{Run: run, Seed: 1})
	require.NoError(t, err)
	return r
}

func skipped(r *cnitest.Report, id string) string {
	for _, o := range r.Outcomes {
		if o.ID() == id && o.Verdict == cnitest.Skipped {
			return o.Reason
		}
	}
	return ""
}

func TestBlamesThePluginForItsInterface(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		h       cni.Handler
		skipped []string
	}{
		"absent": {attaching(), []string{
			"check/changed-by-others", "check/interface-gone", "check/interface-down", "check/address-gone",
			"faults/interface-removed", "faults/interface-renamed",
		}},
		"down": {switchedOff(), []string{"check/changed-by-others"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := examineAttaching(t, c.h, "^(add/creates|check/|faults/interface)")
			assert.Empty(t, verdicts(r, cnitest.FailedToRun))
			assert.Contains(t, verdicts(r, cnitest.Warned), "add/creates-interface")
			for _, id := range c.skipped {
				assert.Contains(t, skipped(r, id), "see add/creates-interface", id)
			}
		})
	}
}

// TestBlamesADDForFailing: it loses no race then.
func TestBlamesADDForFailing(t *testing.T) {
	t.Parallel()
	r := examineAttaching(t, &cnitest.Scripted{}, "^(protocol/result|chaining/|concurrency/)")
	assert.Equal(t, []string{"protocol/result"}, caught(r))
	for _, id := range []string{"chaining/behind-another", "concurrency/add", "concurrency/del", "concurrency/storm"} {
		assert.Contains(t, skipped(r, id), "needs attaching ADD to work", id)
	}
}

// TestBlamesAResultThatCannotBeRead: whoever is skipped for it says what is wrong with it.
func TestBlamesAResultThatCannotBeRead(t *testing.T) {
	t.Parallel()
	const result = `{"cniVersion": "1.1.0", "ips": {"address": "10.1.2.3/24"}}`
	h := &cnitest.Scripted{Replies: map[cni.Command]cnitest.Reply{cni.CommandAdd: {Stdout: result}}}
	r := examineAttaching(t, h, "^(del/repeated|add/creates-interface)$")
	for _, id := range []string{"del/repeated", "add/creates-interface"} {
		assert.Regexp(t, "needs an ADD with a result that can be read; see protocol/result and results: .*ips", skipped(r, id))
	}
}

// TestBlamesDEL: a second one that fails is no race, and no matter of prevResult; what is
// left of one container is left of many.
func TestBlamesDEL(t *testing.T) {
	t.Parallel()
	testenv.NetAdmin(t)
	for fault, c := range map[string]struct {
		about   string
		skipped []string
	}{
		"second-del-fails":             {"del/repeated", []string{"concurrency/del-of-one", "faults/previous-nonsense"}},
		"del-in-namespace-leaves-file": {"del/leaves-nothing", []string{"concurrency/del", "concurrency/storm", "concurrency/del-of-one"}},
	} {
		t.Run(fault, func(t *testing.T) {
			run := "^(" + strings.Join(append(c.skipped, c.about), "|") + ")$"
			r, err := cnitest.Examine(t.Context(), brokenTarget(t, "chained", fault), cnitest.Options{Run: run, Seed: 1})
			require.NoError(t, err)
			assert.Equal(t, []string{c.about}, caught(r))
			for _, id := range c.skipped {
				assert.Contains(t, skipped(r, id), "see "+c.about, id)
			}
		})
	}
}

// patient gives no answer to ADD as long as the delegate is not to be found.
type patient struct{ cni.Handler }

func (h patient) Handle(ctx context.Context, inv cni.Invocation) ([]byte, error) {
	if _, err := os.Stat(filepath.Join(inv.Path[0], "pool")); err != nil && inv.Command == cni.CommandAdd {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return h.Handler.Handle(ctx, inv)
}

// TestTakesNoLateAnswerForAFailure: STATUS need not tell of it.
func TestTakesNoLateAnswerForAFailure(t *testing.T) {
	t.Parallel()
	testenv.NetAdmin(t)
	dir := t.TempDir()
	require.NoError(t, attaching().Install(dir, "pool"))
	r, err := cnitest.Examine(t.Context(), cnitest.Target{
		Config: []byte(`{"type": "attaching", "ipam": {"type": "pool"}}`), Path: []string{dir}, Handler: patient{attaching()},
	}, cnitest.Options{Run: "^(protocol/result|status/delegate-missing)$", Seed: 1, Timeout: busy})
	require.NoError(t, err)
	assert.Contains(t, skipped(r, "status/delegate-missing"), "needs attaching ADD to work, and it failed: no answer within")
}
