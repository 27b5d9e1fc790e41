package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAgentFollowsTheNodesOfAnAPIServer(t *testing.T) {
	h := newHost(t)
	api := newAPIServer(t, h, nodeA(), nodeB())
	h.startOn(t, api)
	r := h.status(t, isReady)
	assert.Empty(t, r.Source)
	assert.FileExists(t, h.conflist())
	h.routes(t, []string{"10.244.2.0/24", "fd00:2::/64"}, nil)

	api.put(member("c", "192.0.2.3", "10.244.3.0/24", "fd00:3::/64"))
	h.routes(t, []string{"10.244.2.0/24", "10.244.3.0/24", "fd00:3::/64"}, nil)
	api.remove("b")
	h.routes(t, []string{"10.244.3.0/24", "fd00:3::/64"}, []string{"10.244.2.0/24", "fd00:2::/64"})
}

// An API server that is away costs a node that was ready nothing, and the status tells.
func TestAgentOutlivesTheAPIServer(t *testing.T) {
	h := newHost(t)
	api := newAPIServer(t, h, nodeA(), nodeB())
	h.startOn(t, api)
	h.status(t, isReady)
	before := h.state(t)

	api.stop()
	r := h.status(t, func(r report) bool { return len(r.Source) > 0 })
	assert.True(t, r.Ready)
	assert.Contains(t, r.Source[0], "API server")
	require.Empty(t, before.Diff(h.state(t)))

	api.put(member("c", "192.0.2.3", "10.244.3.0/24", "fd00:3::/64"))
	api.start(t)
	h.routes(t, []string{"10.244.2.0/24", "10.244.3.0/24", "fd00:3::/64"}, nil)
	h.status(t, func(r report) bool { return r.Ready && len(r.Source) == 0 })
}

func TestAgentWithoutAnAPIServerSaysSo(t *testing.T) {
	h := newHost(t)
	api := newAPIServer(t, h, nodeA())
	api.stop()
	h.startOn(t, api)
	r := h.status(t, notReady)
	assert.Contains(t, r.Reason, "API server")
	assert.Contains(t, r.Reason, api.address)
	assert.Equal(t, []string{r.Reason}, r.Source)
	assert.NoFileExists(t, h.conflist())
	api.start(t)
	h.status(t, func(r report) bool { return r.Ready && len(r.Source) == 0 })
	assert.FileExists(t, h.conflist())
}

// Without its Node a node is in no network; but what it has stays, for it may come back.
func TestANodeThatIsDeletedKeepsItsDataPath(t *testing.T) {
	h := newHost(t)
	api := newAPIServer(t, h, nodeA(), nodeB())
	h.startOn(t, api)
	h.status(t, isReady)
	before := h.state(t)
	api.remove("a")
	assert.Contains(t, h.status(t, notReady).Reason, `node "a": is not among the nodes, which are "b"`)
	assert.FileExists(t, h.conflist())
	assert.Empty(t, before.Diff(h.state(t)))
	api.put(nodeA())
	h.status(t, isReady)
	assert.Empty(t, before.Diff(h.state(t)))
}

func TestAgentNeedsAUsableKubeconfig(t *testing.T) {
	h := newHost(t)
	for want, flags := range map[string][]string{
		"no-such-file": {"-source", "kube", "-kubeconfig", "/no-such-file"},
		"KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set": {"-source", "kube"},
	} {
		cmd := h.command(t, append([]string{"run", "-node", "a"}, flags...)...)
		cmd.Env = []string{"PATH=/"}
		require.Error(t, cmd.Run())
		assert.Contains(t, h.log(), want)
	}
}
