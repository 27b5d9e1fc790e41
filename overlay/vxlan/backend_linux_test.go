package vxlan_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/overlay/vxlan"
)

func TestPodsReachEachOther(t *testing.T) {
	f := newFabric(t, 3)
	f.start(vxlan.Config{})
	f.allReach(f.nodes...)
	assert.Equal(t, `address 10.244.1.0/32
address fd00:10:244:1::/128
device vni 5000 port 4789 local 192.0.2.1 mac `+f.nodes[0].peer.MAC.String()+` mtu 1450 up alias "cnikit vxlan cnikit.5000" learning false
`, firstLines(f.nodes[0].state(), 3))
	require.Equal(t, underlayMTU-50, f.nodes[0].backend.MTU())
	t.Log("\n" + f.nodes[0].state())
}

func firstLines(s string, n int) string {
	at := 0
	for i, c := range s {
		if c == '\n' {
			if at++; at == n {
				return s[:i+1]
			}
		}
	}
	return s
}
