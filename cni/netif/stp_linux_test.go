package netif_test

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni/netif"
	"github.com/cnikit/cnikit/internal/testenv"
)

func TestSpanningTree(t *testing.T) {
	ip := testenv.Tool(t, "ip")
	node := newSpace(t)
	_, _, err := node.EnsureBridge(netif.Bridge{Name: "cni0"})
	require.NoError(t, err)
	node.addLink(t, "veth1")
	for _, test := range []struct {
		state string
		on    bool
	}{{"0", false}, {"1", true}, {"0", false}} {
		require.NoError(t, node.ns.Do(func() error {
			return exec.Command(ip, "link", "set", "cni0", "type", "bridge", "stp_state", test.state).Run()
		}))
		on, err := node.SpanningTree("cni0")
		require.NoError(t, err)
		require.Equal(t, test.on, on)
	}
	_, err = node.SpanningTree("none")
	require.ErrorIs(t, err, netif.ErrNotFound)
	_, err = node.SpanningTree("veth1")
	require.ErrorIs(t, err, netif.ErrWrongKind)
}
