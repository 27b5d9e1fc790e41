package bridge_test

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/cni/bridge"
	"github.com/cnikit/cnikit/cni/netif"
)

func (n *node) gc(t *testing.T, config map[string]any, valid ...cni.Attachment) error {
	t.Helper()
	with := map[string]any{"cni.dev/valid-attachments": append([]cni.Attachment{}, valid...)}
	maps.Copy(with, config)
	_, err := n.call(t.Context(), cni.Invocation{Command: cni.CommandGC}, with)
	return err
}

func TestGC(t *testing.T) {
	setUp := func(t *testing.T) (n *node, valid, stale, foreign *space) {
		n, valid, stale, foreign = newNode(t), newSpace(t, "valid"), newSpace(t, "stale"), newSpace(t, "foreign")
		for _, pod := range []*space{valid, stale} {
			n.mustAdd(t, pod, "eth0", config())
			n.mustAdd(t, pod, "net1", config("isDefaultGateway", nil))
		}
		n.mustAdd(t, foreign, "eth0", config("name", "podsibling"))
		n.addBridge(t, "other")
		require.NoError(t, n.nl.SetAlias(n.link(t, "other"), "cnikit:pods:stale:eth0"))
		return n, valid, stale, foreign
	}
	t.Run("gc/keeps the valid", func(t *testing.T) {
		n, valid, stale, foreign := setUp(t)
		require.NoError(t, n.gc(t, config(), cni.Attachment{ContainerID: "valid", IfName: "eth0"}, cni.Attachment{ContainerID: "valid", IfName: "net1"}))
		require.NotNil(t, valid.link(t, "eth0"))
		require.NotNil(t, valid.link(t, "net1"))
		require.Nil(t, stale.link(t, "eth0"))
		require.Nil(t, stale.link(t, "net1"))
		require.NotNil(t, foreign.link(t, "eth0"), "of another network")
		require.NotNil(t, n.link(t, "other"), "no veth pair")
		require.NotNil(t, n.link(t, "cni0"))
		require.Equal(t, 2, n.ipam.held())
	})
	t.Run("gc/an attachment is container and interface", func(t *testing.T) {
		n, valid, stale, _ := setUp(t)
		require.NoError(t, n.gc(t, config(), cni.Attachment{ContainerID: "valid", IfName: "eth0"}, cni.Attachment{ContainerID: "stale", IfName: "net1"}))
		require.NotNil(t, valid.link(t, "eth0"))
		require.Nil(t, valid.link(t, "net1"))
		require.Nil(t, stale.link(t, "eth0"))
		require.NotNil(t, stale.link(t, "net1"))
	})
	t.Run("gc/nothing valid", func(t *testing.T) {
		n, valid, stale, foreign := setUp(t)
		for range 2 {
			require.NoError(t, n.gc(t, config()))
			require.Nil(t, valid.link(t, "eth0"))
			require.Nil(t, stale.link(t, "eth0"))
			require.NotNil(t, foreign.link(t, "eth0"))
		}
	})
	t.Run("gc/goes on past an error and reports it", func(t *testing.T) {
		n, _, stale, _ := setUp(t)
		n.ipam.fail = cni.Errorf(cni.CodeIO, "disk full")
		requireCode(t, n.gc(t, config()), cni.CodeIO, "disk full")
		require.Nil(t, stale.link(t, "eth0"))
	})
}

func TestCleanup(t *testing.T) {
	cleanUp := func(n *node, name string) error {
		return n.ns.Do(func() error { return bridge.Cleanup(t.Context(), name) })
	}
	n, pod := newNode(t), newSpace(t, "c1")
	require.NoError(t, cleanUp(n, "cni0"), "absent")
	n.mustAdd(t, pod, "eth0", config())
	require.ErrorContains(t, cleanUp(n, "cni0"), "containers are attached")
	require.NoError(t, n.del(pod, "eth0", config()))
	require.NoError(t, cleanUp(n, "cni0"))
	require.Nil(t, n.link(t, "cni0"))

	n.addBridge(t, "br0")
	require.ErrorContains(t, cleanUp(n, "br0"), "not marked")
	n.addLink(t, "v0")
	err := cleanUp(n, "v0")
	require.ErrorIs(t, err, netif.ErrWrongKind)
	require.ErrorContains(t, err, `"v0": left alone, it is no bridge but a veth`)
	require.NotNil(t, n.link(t, "v0"))
	require.NotNil(t, n.link(t, "br0"))
}
