package netif_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnikit/cnikit/cni/netif"
)

// routed is a container with two interfaces that are switched on.
func routed(t *testing.T) space {
	t.Helper()
	pod := newSpace(t)
	for name, addrs := range map[string][]string{"eth0": {"10.1.0.2/24", "fd00::2/64"}, "net1": {"10.2.0.2/24", "fd02::2/64"}} {
		pod.addLink(t, name)
		require.NoError(t, pod.AddAddresses(name, parse(addrs...)...))
		require.NoError(t, pod.SetUp(name))
	}
	return pod
}

// via finds the route and returns it; nil when there is none.
func via(t *testing.T, s space, dst string, table int) *netlink.Route {
	t.Helper()
	routes, err := s.nl.Routes(&netlink.Route{Table: table}, netlink.RT_FILTER_TABLE, unix.AF_UNSPEC)
	require.NoError(t, err)
	for _, r := range routes {
		if r.Dst != nil && r.Dst.String() == dst {
			return &r
		}
	}
	return nil
}

func TestAddRoutes(t *testing.T) {
	route := func(dst, gateway string) netif.Route {
		r := netif.Route{Dst: netip.MustParsePrefix(dst)}
		if gateway != "" {
			r.Via = netip.MustParseAddr(gateway)
		}
		return r
	}
	t.Run("default routes, on the link, and again", func(t *testing.T) {
		pod := routed(t)
		for range 2 {
			require.NoError(t, pod.AddRoutes("eth0", route("0.0.0.0/0", "10.1.0.1"), route("::/0", "fd00::1"),
				route("10.5.0.0/16", ""), route("fd05::/32", "")))
		}
		require.Equal(t, "10.1.0.1", via(t, pod, "0.0.0.0/0", unix.RT_TABLE_MAIN).Gw.String())
		require.Equal(t, "fd00::1", via(t, pod, "::/0", unix.RT_TABLE_MAIN).Gw.String())
		require.Equal(t, netlink.SCOPE_LINK, via(t, pod, "10.5.0.0/16", unix.RT_TABLE_MAIN).Scope)
		require.Nil(t, via(t, pod, "fd05::/32", unix.RT_TABLE_MAIN).Gw)
	})
	t.Run("gateway outside the subnets", func(t *testing.T) {
		pod := routed(t)
		require.NoError(t, pod.AddRoutes("eth0", route("0.0.0.0/0", "172.16.0.1"), route("::/0", "fd99::1"), route("fd06::/32", "fe80::1"),
			route("10.6.0.0/16", "169.254.1.1")))
		require.NotZero(t, via(t, pod, "0.0.0.0/0", unix.RT_TABLE_MAIN).Flags&unix.RTNH_F_ONLINK)
		require.Equal(t, "fd99::1", via(t, pod, "::/0", unix.RT_TABLE_MAIN).Gw.String())
	})
	t.Run("attributes", func(t *testing.T) {
		pod := routed(t)
		table, scope := 100, int(netlink.SCOPE_LINK)
		r := route("10.5.1.2/16", "") // with host bits
		r.MTU, r.AdvMSS, r.Priority, r.Table, r.Scope = 1300, 1260, 77, &table, &scope
		require.NoError(t, pod.AddRoutes("eth0", r))
		got := via(t, pod, "10.5.0.0/16", table)
		require.Equal(t, []int{1300, 1260, 77, 100}, []int{got.MTU, got.AdvMSS, got.Priority, got.Table})
		require.Equal(t, netlink.SCOPE_LINK, got.Scope)
	})
	t.Run("of another interface", func(t *testing.T) {
		pod := routed(t)
		require.NoError(t, pod.AddRoutes("eth0", route("0.0.0.0/0", "10.1.0.1"), route("::/0", "fd00::1")))
		for _, r := range []netif.Route{route("0.0.0.0/0", "10.2.0.1"), route("::/0", "fd02::1")} {
			err := pod.AddRoutes("net1", route("10.7.0.0/16", "10.2.0.1"), route("fd07::/32", "fd02::1"), r)
			var conflict *netif.RouteConflict
			require.ErrorAs(t, err, &conflict)
			require.Equal(t, "eth0", conflict.Link)
			require.ErrorContains(t, err, r.Dst.String())
			require.Nil(t, via(t, pod, "10.7.0.0/16", unix.RT_TABLE_MAIN), "nothing stays")
			require.Nil(t, via(t, pod, "fd07::/32", unix.RT_TABLE_MAIN), "nothing stays")
		}
		r := route("0.0.0.0/0", "10.2.0.1")
		r.Priority = 5
		require.NoError(t, pod.AddRoutes("net1", r))
	})
}
