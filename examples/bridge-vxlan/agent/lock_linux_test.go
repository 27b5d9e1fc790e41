package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/internal/testenv"
)

// logs waits until the agents have logged something so often.
func (h *host) logs(t *testing.T, text string, times int) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Count(h.log(), text) >= times }, patience, 5*time.Millisecond, text)
}

func TestOneAgentOfANetworkRunsOnAHost(t *testing.T) {
	testenv.Root(t) // others cannot see who has the lock
	h := newHost(t)
	h.publish(t, nodeA())
	h.start(t)
	h.status(t, isReady)
	require.Len(t, h.locks(t), 1)
	pid := h.agent.Process.Pid

	second := h.command(t, slices.Concat([]string{"run"}, h.flags, []string{"-topology", h.path("topology.json")})...)
	require.Error(t, second.Run())
	assert.Contains(t, h.log(), fmt.Sprintf("cnikit-agent: an agent of network \"cnikit\" runs on this host (pid %d): end it first\n", pid))
	assert.Equal(t, 1, strings.Count(h.log(), "waits until the other agent ends"), "said once")

	before := h.state(t)
	out, err := h.uninstall(t)
	require.Error(t, err)
	assert.Equal(t, fmt.Sprintf("cnikit-agent: nothing is removed: an agent of network \"cnikit\" runs on this host (pid %d): end it first\n", pid), out)
	assert.FileExists(t, h.conflist())
	assert.Empty(t, before.Diff(h.state(t)))
	out, err = h.uninstall(t, "-network", "other", "-vni", "7", "-conflist", "other.conflist", "-bridge", "br7", "-status-file=")
	require.NoError(t, err, "of another network: %s", out)
	h.end(t)
	assert.Empty(t, h.locks(t))
}

// An update need not wait for the old agent.
func TestANewAgentWaitsForTheOldOneToEnd(t *testing.T) {
	for name, end := range map[string]func(*host, *testing.T){"well": (*host).end, "killed": (*host).kill} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			h.publish(t, nodeA())
			h.start(t)
			h.status(t, isReady)
			old := h.agent
			h.start(t)
			young := h.agent
			h.logs(t, "waits until the other agent ends", 1)
			h.agent = old
			end(h, t)
			h.logs(t, "ready: pods can be attached", 2)

			h.agent = young
			h.start(t)
			third := h.agent
			h.logs(t, "waits until the other agent ends", 2)
			h.agent = third
			h.end(t) // while it waits
			h.agent = young
			h.end(t)
			out, err := h.uninstall(t)
			require.NoError(t, err, out)
			assert.Empty(t, h.locks(t))
		})
	}
}
