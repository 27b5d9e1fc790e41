package cnitest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni/cnitest"
	"github.com/cnikit/cnikit/internal/testenv"
)

func TestMonitor(t *testing.T) {
	testenv.Kernel(t, testenv.VXLAN, testenv.Bridge)
	n := newNamespace(t)
	run(t, n, "ip", "link", "add", "d0", "type", "bridge")
	run(t, n, "ip", "link", "set", "d0", "addrgenmode", "none", "up")
	run(t, n, "ip", "addr", "add", "10.0.0.1/24", "dev", "d0")
	run(t, n, "ip", "link", "add", "vx0", "type", "vxlan", "id", "7", "dstport", "4789")
	monitor := watch(t, n)
	require.Empty(t, seen(t, monitor), "what happened before")

	for _, c := range []struct{ name, command, want string }{
		{"link", "ip link set d0 mtu 1400", "new link d0"},
		{"link/gone", "ip link add d1 type bridge; ip link del d1", "delete link d1"},
		{"address", "ip addr add 10.0.0.9/32 dev d0", "new addr ipv4 10.0.0.9"},
		{"route", "ip route add 10.9.0.0/16 via 10.0.0.2", "new route ipv4 10.9.0.0 via 10.0.0.2 dev 2"},
		{"route/the same again", "ip -6 route add fd09::/64 dev d0; ip -6 route replace fd09::/64 dev d0", "new route ipv6 fd09:: dev 2"},
		{"route/gone", "ip route del 10.9.0.0/16", "delete route ipv4 10.9.0.0 via 10.0.0.2 dev 2"},
		{"rule", "ip -6 rule add priority 77 table 7", "new rule ipv6 priority 77"},
		{"neighbour", "ip neigh add 10.0.0.7 lladdr 02:00:00:00:00:07 dev d0", "new neighbour ipv4 10.0.0.7 mac 02:00:00:00:00:07"},
		{"neighbour/gone", "ip neigh del 10.0.0.7 dev d0", "new neighbour ipv4 10.0.0.7 failed"},
		{"fdb", "bridge fdb add 02:00:00:00:00:07 dev vx0 dst 10.0.0.7", "new neighbour bridge 10.0.0.7 mac 02:00:00:00:00:07"},
		{"fdb/gone", "bridge fdb del 02:00:00:00:00:07 dev vx0 dst 10.0.0.7", "delete neighbour bridge 10.0.0.7 mac 02:00:00:00:00:07"},
		{"setting", "echo 1 >/proc/sys/net/ipv4/conf/d0/forwarding", "new setting ipv4 dev 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			shell(t, n, c.command)
			var what []string
			for _, change := range seen(t, monitor) {
				what = append(what, change.What)
			}
			require.Contains(t, what, c.want)
			require.Empty(t, seen(t, monitor), "each change is told once")
		})
	}
}

// TestMonitorIgnores has the kernel learn and forget neighbours while traffic passes.
func TestMonitorIgnores(t *testing.T) {
	a, _ := newPair(t, 1500)
	monitor := watch(t, a)
	for _, to := range []cnitest.Ping{{To: second}, {To: second6}, {To: second, Size: 3000}} {
		_, err := a.Ping(t.Context(), to)
		require.NoError(t, err)
	}
	_, err := a.Ping(t.Context(), cnitest.Ping{To: second.Next(), Timeout: time.Millisecond})
	require.ErrorIs(t, err, cnitest.ErrNoReply, "a neighbour that never answers")
	require.Empty(t, seen(t, monitor))
}

func watch(t *testing.T, n *cnitest.Namespace) *cnitest.Monitor {
	t.Helper()
	monitor, err := n.Monitor()
	require.NoError(t, err)
	t.Cleanup(monitor.Close)
	return monitor
}

func seen(t *testing.T, m *cnitest.Monitor) []cnitest.Change {
	t.Helper()
	changes, err := m.Changes()
	require.NoError(t, err)
	return changes
}
