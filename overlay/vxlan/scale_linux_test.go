package vxlan_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/overlay"
	"github.com/cnikit/cnikit/overlay/vxlan"
)

// manyPeers are peers that do not exist: the kernel's tables do not mind.
func manyPeers(n int) []overlay.Peer {
	peers := make([]overlay.Peer, n)
	for i := range peers {
		hi, lo := byte(i>>8), byte(i)
		uid := fmt.Sprintf("many-%d", i)
		peers[i] = overlay.Peer{
			Name: fmt.Sprintf("many%05d", i), UID: uid, MAC: overlay.TunnelMAC(uid),
			Underlay: netip.AddrFrom4([4]byte{198, 18, hi, lo}),
			PodCIDRs: []netip.Prefix{
				netip.PrefixFrom(netip.AddrFrom4([4]byte{11, hi, lo, 0}), 24),
				netip.MustParsePrefix(fmt.Sprintf("fd00:11:%x::/64", i)),
			},
		}
	}
	return peers
}

// Five entries for each peer, one request for each entry, and none for a change that
// is none: what a node costs does not depend on how many there are already.
func TestManyPeers(t *testing.T) {
	const n = 1000
	f := newFabric(t, 1)
	f.start(vxlan.Config{})
	node, peers := f.nodes[0], manyPeers(n+1)
	set := func(peers []overlay.Peer, want uint64) {
		t.Helper()
		before, started := node.backend.Writes(), time.Now()
		require.NoError(t, node.backend.SetTopology(overlay.Topology{Self: &node.peer, Peers: peers}))
		node.settled()
		assert.Equal(t, want, node.backend.Writes()-before, "requests")
		t.Logf("%d peers, %d requests: %v", len(peers), want, time.Since(started))
	}
	set(peers[:n], 5*n)
	set(peers[:n], 0)
	set(peers, 5)
	moved := append([]overlay.Peer{}, peers...)
	moved[7].Underlay = netip.MustParseAddr("198.19.0.1")
	set(moved, 1)
	set(peers[1:], 5+1)
}
