package netif_test

import (
	"context"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnikit/cnikit/internal/nl"
)

// TestAnnounce lets a neighbour believe in an earlier owner of the address.
func TestAnnounce(t *testing.T) {
	for _, addr := range []string{"10.1.0.2", "fd00::2"} {
		t.Run(addr, func(t *testing.T) {
			node, pod, neighbour := newSpace(t), newSpace(t), newSpace(t)
			link := plug(t, node, pod, "veth1", "10.1.0.2/24", "fd00::2/64")
			other := plug(t, node, neighbour, "veth2", "10.1.0.3/24", "fd00::3/64")
			require.NoError(t, neighbour.nl.SetNeighbor(&netlink.Neigh{LinkIndex: other.Index, IP: net.ParseIP(addr),
				HardwareAddr: net.HardwareAddr{2, 9, 9, 9, 9, 9}, State: unix.NUD_REACHABLE}))
			events, err := nl.Subscribe(neighbour.ns, nl.NeighEvent)
			require.NoError(t, err)
			defer func() { _ = events.Close() }()

			require.NoError(t, pod.Announce("eth0", netip.MustParseAddr(addr)))
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			for mac := ""; mac != link.MAC.String(); mac = macOf(t, neighbour, other.Index, addr) {
				_, err := events.Receive(ctx)
				require.NoError(t, err, "the neighbour has not learned the address")
			}
		})
	}
}

func macOf(t *testing.T, s space, index int, addr string) string {
	t.Helper()
	entries, err := s.nl.Neighbors(index, unix.AF_UNSPEC)
	require.NoError(t, err)
	for _, entry := range entries {
		if entry.IP.Equal(net.ParseIP(addr)) {
			return entry.HardwareAddr.String()
		}
	}
	return ""
}

func TestAnnounceErrors(t *testing.T) {
	pod := newSpace(t)
	require.ErrorContains(t, pod.Announce("none", netip.MustParseAddr("10.1.0.2")), "none")
	pod.addLink(t, "off")
	require.ErrorIs(t, pod.Announce("off", netip.MustParseAddr("10.1.0.2")), unix.ENETDOWN)
}
