package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni/chain"
	"github.com/cnikit/cnikit/overlay"
)

func TestAgentWritesTheConflistWhenTheTunnelStands(t *testing.T) {
	h := newHost(t)
	h.publish(t, nodeA(), nodeB())
	h.start(t)
	r := h.status(t, isReady)
	assert.Equal(t, 1450, r.MTU)
	assert.Empty(t, r.Problems)

	list, err := chain.LoadNetwork(h.path("net.d"), "cnikit")
	require.NoError(t, err)
	assert.Equal(t, "cnikit-bridge", list.Plugins[0].Type)
	h.routes(t, []string{"10.244.2.0/24", "fd00:2::/64"}, nil)
	assert.Contains(t, h.state(t).String(), overlay.TunnelMAC("uid-b").String())
}

func TestAgentEndsWellAndLeavesItsWork(t *testing.T) {
	h := newHost(t)
	before := h.state(t)
	h.publish(t, nodeA(), nodeB())
	h.start(t)
	h.status(t, isReady)
	h.end(t)
	assert.NotEmpty(t, before.Diff(h.state(t)))
	assert.FileExists(t, h.conflist())
	assert.True(t, h.status(t, isReady).Ready, "that the agent is not there does not make the node unready")
}

func TestTruncatedTopologyChangesNothing(t *testing.T) {
	h := newHost(t)
	h.publish(t, nodeA(), nodeB())
	h.start(t)
	h.status(t, isReady)
	before := h.state(t)
	monitor, err := h.ns.Monitor()
	require.NoError(t, err)
	defer monitor.Close()
	require.NoError(t, os.WriteFile(h.path("topology.json"), []byte(`{"version":1,"nodes":[{"name":"a"`), 0o644))
	require.Eventually(t, func() bool { return strings.Contains(h.log(), "topology cannot be used") }, patience, 5*time.Millisecond)
	changes, err := monitor.Changes()
	require.NoError(t, err)
	assert.Empty(t, changes)
	h.publish(t, nodeA())
	require.Eventually(t, func() bool { return len(before.Diff(h.state(t))) > 0 }, patience, 10*time.Millisecond, "the agent goes on with the next good file")
}

// One node that cannot be used is named, and the others work.
func TestBadNodesAreNamed(t *testing.T) {
	h := newHost(t)
	thief := member("thief", "192.0.2.9", "10.244.2.0/24", "fd00:9::/64")
	thief.Created = thief.Created.Add(time.Hour)
	h.publish(t, nodeA(), nodeB(), thief,
		member("crooked", "192.0.2.7", "10.244.7.0/33", "fd00:7::/64"),
		overlay.Node{Name: "homeless", UID: "uid-h", PodCIDRs: []string{"10.244.8.0/24"}},
	)
	h.start(t)
	r := h.status(t, isReady)
	named := map[string]string{}
	for _, p := range r.Problems {
		named[p.Node] = p.Message
	}
	assert.Len(t, named, 3)
	assert.Contains(t, named["crooked"], "10.244.7.0/33")
	assert.Contains(t, named["homeless"], "address")
	assert.Contains(t, named["thief"], "10.244.2.0/24")
	h.routes(t, []string{"10.244.2.0/24"}, nil)
	assert.Contains(t, h.state(t).String(), overlay.TunnelMAC("uid-b").String())
}

// What the host reaches its own way stays so, whatever Pod CIDR another node claims.
func TestAPodCIDRCannotTakeOverARouteOfTheHost(t *testing.T) {
	h := newHost(t)
	for _, command := range []string{
		"ip link add docker0 type bridge", "ip addr add 172.17.0.1/16 dev docker0", "ip link set docker0 up",
	} {
		h.do(t, command)
	}
	h.publish(t, nodeA(), nodeB(), member("c", "192.0.2.3", "172.17.3.0/24", "fd00:3::/64"))
	h.start(t, "-resync", "200ms")
	r := h.status(t, isReady)
	require.Len(t, r.Problems, 1)
	assert.Equal(t, "c", r.Problems[0].Node)
	assert.Contains(t, r.Problems[0].Message, "172.17.0.0/16")
	h.routes(t, []string{"10.244.2.0/24", "fd00:3::/64"}, []string{"172.17.3.0/24"})

	h.do(t, "ip link del docker0")
	h.routes(t, []string{"10.244.2.0/24", "fd00:3::/64", "172.17.3.0/24"}, nil)
	assert.Empty(t, h.status(t, func(r report) bool { return len(r.Problems) == 0 }).Problems)
}
