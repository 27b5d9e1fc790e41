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

	"github.com/cnikit/cnikit/cni/netif"
	"github.com/cnikit/cnikit/internal/nl"
)

func TestVerify(t *testing.T) {
	addrs := parse("10.1.0.2/24", "fd00::2/64")
	routes := parse("0.0.0.0/0", "::/0")
	for _, test := range []struct {
		rule  string
		act   func(t *testing.T, node, pod space)
		wrong []string // what the error says; nil: all is well
	}{
		{rule: "right after setting up", act: func(*testing.T, space, space) {}},
		{rule: "tolerates another MAC and MTU", act: func(t *testing.T, _, pod space) {
			link := pod.link(t, "eth0")
			require.NoError(t, pod.nl.SetMAC(link, net.HardwareAddr{2, 0, 0, 0, 0, 9}))
			require.NoError(t, pod.nl.SetMTU(link, 1400))
		}},
		{rule: "tolerates a route that was changed", act: func(t *testing.T, _, pod space) {
			old := via(t, pod, "0.0.0.0/0", unix.RT_TABLE_MAIN)
			require.NoError(t, pod.nl.DelRoute(old))
			table := 100
			require.NoError(t, pod.AddRoutes("eth0", netif.Route{Dst: routes[0], Via: netip.MustParseAddr("10.1.0.9"), Table: &table, Priority: 5}))
		}},
		{rule: "interface gone", act: func(t *testing.T, _, pod space) { require.NoError(t, pod.DeleteLink("eth0")) },
			wrong: []string{"eth0", "no such interface"}},
		{rule: "switched off", act: func(t *testing.T, _, pod space) { require.NoError(t, pod.nl.SetDown(pod.link(t, "eth0"))) },
			wrong: []string{`"eth0" is switched off`}},
		{rule: "other end switched off", act: func(t *testing.T, node, _ space) {
			require.NoError(t, node.nl.SetDown(node.link(t, "veth1")))
		}, wrong: []string{"no carrier"}},
		{rule: "addresses and routes gone", act: func(t *testing.T, _, pod space) {
			require.NoError(t, pod.RevertAddresses("eth0", netif.AddressChange{Added: addrs}))
			require.NoError(t, pod.nl.DelRoute(via(t, pod, "::/0", unix.RT_TABLE_MAIN)))
		}, wrong: []string{"10.1.0.2/24", "fd00::2/64", "0.0.0.0/0", "::/0"}},
		{rule: "address with another length", act: func(t *testing.T, _, pod space) {
			require.NoError(t, pod.RevertAddresses("eth0", netif.AddressChange{Added: addrs[1:], Removed: parse("fd00::2/48")}))
		}, wrong: []string{"fd00::2/64"}},
		{rule: "route made unreachable", act: func(t *testing.T, _, pod space) {
			old := via(t, pod, "0.0.0.0/0", unix.RT_TABLE_MAIN)
			require.NoError(t, pod.nl.DelRoute(old))
			require.NoError(t, pod.nl.AddRoute(&netlink.Route{Dst: old.Dst, Type: unix.RTN_UNREACHABLE}))
		}, wrong: []string{"0.0.0.0/0"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			node, pod := newSpace(t), newSpace(t)
			plug(t, node, pod, "veth1", "10.1.0.2/24", "fd00::2/64")
			require.NoError(t, pod.AddRoutes("eth0", netif.Route{Dst: routes[0], Via: netip.MustParseAddr("10.1.0.1")},
				netif.Route{Dst: routes[1], Via: netip.MustParseAddr("fd00::1")}))
			test.act(t, node, pod)
			err := netif.Verify(t.Context(), pod.ns.Path(), "eth0", addrs, routes)
			if test.wrong == nil {
				require.NoError(t, err)
			}
			for _, words := range test.wrong {
				require.ErrorContains(t, err, words)
			}
		})
	}
	t.Run("duplicate address", func(t *testing.T) {
		node, pod, other := newSpace(t), newSpace(t), newSpace(t)
		plug(t, node, other, "veth2", "fd00::2/64")
		plug(t, node, pod, "veth1", "10.1.0.2/24")
		for _, key := range []string{"all", "eth0"} { // the kernel takes the larger
			_, err := pod.nl.SetSysctl("net/ipv6/conf/"+key+"/accept_dad", "1")
			require.NoError(t, err)
		}
		events, err := nl.Subscribe(pod.ns, nl.AddrEvent)
		require.NoError(t, err)
		defer func() { _ = events.Close() }()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		link := pod.link(t, "eth0")
		require.NoError(t, pod.nl.ReplaceAddr(link, &netlink.Addr{IPNet: &net.IPNet{IP: addrs[1].Addr().AsSlice(), Mask: net.CIDRMask(64, 128)}}))
		for netif.Verify(ctx, pod.ns.Path(), "eth0", addrs[1:], nil) == nil {
			_, err := events.Receive(ctx)
			require.NoError(t, err, "the kernel has not found the duplicate")
		}
		require.ErrorContains(t, netif.Verify(t.Context(), pod.ns.Path(), "eth0", addrs[1:], nil), "another host")
	})
	t.Run("no namespace", func(t *testing.T) {
		require.Error(t, netif.Verify(t.Context(), t.TempDir(), "eth0", nil, nil))
	})
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, netif.Verify(ctx, newSpace(t).ns.Path(), "lo", nil, nil), context.Canceled)
	})
}
