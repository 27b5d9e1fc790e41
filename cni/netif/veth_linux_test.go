package netif_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni/netif"
)

func TestCreateVeth(t *testing.T) {
	t.Run("ends", func(t *testing.T) {
		node, pod := newSpace(t), newSpace(t)
		node.addLink(t, "eth0") // the node's own does not matter
		host, inPod, err := node.CreateVeth(netif.Veth{Name: "veth1", Alias: "mark", Peer: "eth0", MTU: 1400}, pod.Namespace)
		require.NoError(t, err)
		require.Equal(t, "veth1", host.Name)
		require.Equal(t, "mark", host.Alias)
		require.Equal(t, "eth0", inPod.Name)
		require.Equal(t, []int{1400, 1400}, []int{host.MTU, inPod.MTU})
		require.Equal(t, []int{host.Index, inPod.Index}, []int{inPod.Peer, host.Peer})
		require.False(t, host.Up || inPod.Up)
		require.NotEqual(t, host.MAC, inPod.MAC)
		require.NotContains(t, pod.names(t), "veth1")

		require.NoError(t, node.DeleteLink("veth1"))
		require.NotContains(t, pod.names(t), "eth0")
	})
	for rule, veth := range map[string]netif.Veth{"here": {Name: "v%d", Peer: "eth0"}, "there": {Name: "veth1", Peer: "eth%d"}} {
		t.Run("name that is a template/"+rule, func(t *testing.T) {
			node, pod := newSpace(t), newSpace(t)
			_, _, err := node.CreateVeth(veth, pod.Namespace)
			require.ErrorContains(t, err, `%d" contains '%'`)
			require.Equal(t, []string{"lo"}, node.names(t))
			require.Equal(t, []string{"lo"}, pod.names(t))
		})
	}
	for _, test := range []struct{ rule, node, pod, names string }{
		{"name taken here", "veth1", "other", `"veth1"`},
		{"name taken there", "other", "eth0", `"eth0" in the other namespace`},
	} {
		t.Run(test.rule, func(t *testing.T) {
			node, pod := newSpace(t), newSpace(t)
			node.addLink(t, test.node)
			pod.addLink(t, test.pod)
			_, _, err := node.CreateVeth(netif.Veth{Name: "veth1", Peer: "eth0"}, pod.Namespace)
			require.ErrorIs(t, err, netif.ErrExists)
			require.ErrorContains(t, err, test.names)
			require.ElementsMatch(t, []string{"lo", test.node, test.node + "x"}, node.names(t))
			require.ElementsMatch(t, []string{"lo", test.pod, test.pod + "x"}, pod.names(t))
		})
	}
	t.Run("failure leaves nothing", func(t *testing.T) {
		node, pod := newSpace(t), newSpace(t)
		_, _, err := node.CreateVeth(netif.Veth{Name: "veth1", Peer: "eth0", Alias: strings.Repeat("x", 256)}, pod.Namespace)
		require.Error(t, err)
		require.Equal(t, []string{"lo"}, node.names(t))
		require.Equal(t, []string{"lo"}, pod.names(t))
	})
}
