package netif_test

import (
	"net"
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
	for name, addrs := range map[string][]string{"eth0": {"10.1.0.2/24", "fd00::2/64"}, "net1": {"10.2.0.2/24", "fd02::2/64", "fe80::2/64"}} {
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

// route is one with the usual attributes; on the link without a gateway.
func route(dst, gateway string) netif.Route {
	r := netif.Route{Dst: netip.MustParsePrefix(dst)}
	if gateway != "" {
		r.Via = netip.MustParseAddr(gateway)
	}
	return r
}

// with returns the route after an edit.
func with(r netif.Route, edit func(*netif.Route)) netif.Route {
	edit(&r)
	return r
}

func TestAddRoutes(t *testing.T) {
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
		r := route("10.5.0.0/16", "")
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

// Only an equal route is success: a result that names another one would be a lie.
func TestAddRoutesConflict(t *testing.T) {
	scope, table := unix.RT_SCOPE_LINK, 100
	there := route("10.5.0.0/16", "10.1.0.9")
	there6 := route("fd05::/32", "fd00::9")
	for _, test := range []struct {
		rule  string
		has   netif.Route // on eth0; the zero Route: only what the kernel made
		add   netif.Route // to eth0
		words []string    // of the conflict; nil: it is none
	}{
		{rule: "equal", has: there, add: there},
		{rule: "equal IPv6", has: there6, add: there6},
		{rule: "equal with defaults written down", has: there6, add: with(there6, func(r *netif.Route) { r.Priority, r.Table = 1024, new(int) })},
		{rule: "equal with attributes", has: with(there, func(r *netif.Route) { r.MTU, r.AdvMSS, r.Priority, r.Table = 65520, 65495, 7, &table }),
			add: with(there, func(r *netif.Route) { r.MTU, r.AdvMSS, r.Priority, r.Table = 65520, 65495, 7, &table })},
		{rule: "connected subnet on the link", add: route("10.1.0.0/24", "")},
		{rule: "connected IPv6 subnet on the link", add: route("fd00::/64", "")},
		{rule: "link-local subnet", add: route("fe80::/64", "fe80::1")},
		{rule: "other priority", has: there, add: with(route("10.5.0.0/16", "10.1.0.8"), func(r *netif.Route) { r.Priority = 7 })},
		{rule: "other table", has: there, add: with(route("10.5.0.0/16", "10.1.0.8"), func(r *netif.Route) { r.Table = &table })},
		{rule: "hidden IPv6 route on request", add: with(route("fd00::/64", "fd00::9"), func(r *netif.Route) { r.Priority = 300 })},

		{rule: "other gateway", has: there, add: route("10.5.0.0/16", "10.1.0.8"), words: []string{"10.5.0.0/16 via 10.1.0.8 ", "via 10.1.0.9 through eth0"}},
		{rule: "other IPv6 gateway", has: there6, add: route("fd05::/32", "fd00::8"), words: []string{"via fd00::8", "via fd00::9 through eth0"}},
		{rule: "no gateway", has: there, add: route("10.5.0.0/16", ""), words: []string{"via 10.1.0.9"}},
		{rule: "no IPv6 gateway", has: there6, add: route("fd05::/32", ""), words: []string{"via fd00::9"}},
		{rule: "gateway where there was none", has: route("10.5.0.0/16", ""), add: there, words: []string{"via 10.1.0.9"}},
		{rule: "other MTU", has: there, add: with(there, func(r *netif.Route) { r.MTU = 1400 }), words: []string{"mtu 1400"}},
		{rule: "other IPv6 MTU", has: there6, add: with(there6, func(r *netif.Route) { r.MTU = 1400 }), words: []string{"mtu 1400"}},
		{rule: "no MTU", has: with(there, func(r *netif.Route) { r.MTU = 1400 }), add: there, words: []string{"mtu 1400 through eth0"}},
		{rule: "other AdvMSS", has: there, add: with(there, func(r *netif.Route) { r.AdvMSS = 1200 }), words: []string{"advmss 1200"}},
		{rule: "other scope", has: route("10.5.0.0/16", ""), add: with(route("10.5.0.0/16", ""), func(r *netif.Route) { r.Scope = new(int) }), words: []string{"scope 0"}},
		{rule: "scope written down", has: route("10.5.0.0/16", ""), add: with(route("10.5.0.0/16", ""), func(r *netif.Route) { r.Scope = &scope })},
		{rule: "connected subnet through a gateway", add: route("10.1.0.0/24", "10.1.0.9"), words: []string{"10.1.0.0/24 via 10.1.0.9", "10.1.0.0/24 through eth0"}},
		{rule: "connected IPv6 subnet through a gateway", add: route("fd00::/64", "fd00::9"), words: []string{"via fd00::9", "fd00::/64 metric 256 through eth0"}},
		{rule: "connected subnet of another interface", add: route("10.2.0.0/24", ""), words: []string{"through net1"}},
		{rule: "connected IPv6 subnet of another interface", add: route("fd02::/64", ""), words: []string{"through net1"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			pod := routed(t)
			if test.has.Dst.IsValid() {
				require.NoError(t, pod.AddRoutes("eth0", test.has))
			}
			before, err := pod.Routes("eth0")
			require.NoError(t, err)
			marker := route("10.99.0.0/16", "10.1.0.1")
			err = pod.AddRoutes("eth0", marker, test.add)
			if test.words == nil {
				require.NoError(t, err)
				return
			}
			var conflict *netif.RouteConflict
			require.ErrorAs(t, err, &conflict)
			require.Equal(t, test.add, conflict.Route)
			require.Equal(t, test.add.Dst, conflict.Has.Dst)
			for _, words := range test.words {
				require.ErrorContains(t, err, words)
			}
			require.NotContains(t, err.Error(), "metric 0")
			after, err := pod.Routes("eth0")
			require.NoError(t, err)
			require.Equal(t, before, after)
		})
	}
	for dst, gateways := range map[string][]string{"10.5.0.0/16": {"10.1.0.8", "10.1.0.9"}, "fd05::/32": {"fd00::8", "fd00::9"}} {
		t.Run("multipath "+dst, func(t *testing.T) {
			pod := routed(t)
			r := &netlink.Route{Dst: ipNet(dst)}
			for _, gateway := range gateways {
				r.MultiPath = append(r.MultiPath, &netlink.NexthopInfo{LinkIndex: pod.link(t, "eth0").Attrs().Index, Gw: netip.MustParseAddr(gateway).AsSlice()})
			}
			require.NoError(t, pod.nl.AddRoute(r))
			require.ErrorContains(t, pod.AddRoutes("eth0", route(dst, gateways[0])), "multipath "+dst)
			require.NoError(t, pod.DeleteRoutes("eth0", route(dst, gateways[0])))
			require.NotNil(t, via(t, pod, dst, unix.RT_TABLE_MAIN))
		})
		t.Run("unreachable "+dst, func(t *testing.T) {
			pod := routed(t)
			require.NoError(t, pod.nl.AddRoute(&netlink.Route{Dst: ipNet(dst), Type: unix.RTN_UNREACHABLE}))
			require.ErrorContains(t, pod.AddRoutes("eth0", route(dst, "")), "unreachable "+dst)
		})
	}
	t.Run("other type of service", func(t *testing.T) {
		pod := routed(t)
		r := &netlink.Route{Dst: ipNet("10.5.0.0/16"), LinkIndex: pod.link(t, "eth0").Attrs().Index, Scope: netlink.SCOPE_LINK, Tos: 0x10}
		require.NoError(t, pod.nl.AddRoute(r))
		mine := route("10.5.0.0/16", "")
		before, err := pod.Routes("eth0")
		require.NoError(t, err)
		require.NotContains(t, before, mine)
		require.NoError(t, pod.AddRoutes("eth0", mine), "the kernel takes both")
		require.NoError(t, pod.DeleteRoutes("eth0", mine))
		require.Equal(t, 0x10, via(t, pod, "10.5.0.0/16", unix.RT_TABLE_MAIN).Tos)
	})
	t.Run("gateway of the other family", func(t *testing.T) {
		pod := routed(t)
		other := &netlink.Via{AddrFamily: unix.AF_INET6, Addr: netip.MustParseAddr("fd00::9").AsSlice()}
		require.NoError(t, pod.nl.AddRoute(&netlink.Route{Dst: ipNet("10.5.0.0/16"), Via: other, LinkIndex: pod.link(t, "eth0").Attrs().Index}))
		require.ErrorContains(t, pod.AddRoutes("eth0", route("10.5.0.0/16", "")), "via fd00::9 through eth0")
	})
}

// Errors name the interface and what was asked for, never an index or <nil>.
func TestAddRoutesError(t *testing.T) {
	pod := routed(t)
	before, err := pod.Routes("eth0")
	require.NoError(t, err)
	var invalid *netif.InvalidRoute
	err = pod.AddRoutes("eth0", route("10.6.0.0/16", "10.1.0.1"), route("10.5.1.2/16", "10.1.0.1"))
	require.ErrorAs(t, err, &invalid)
	require.EqualError(t, err, `add route to "eth0": Dst=10.5.1.2/16: has host bits set; write 10.5.0.0/16`)
	require.ErrorAs(t, pod.AddRoutes("eth0", netif.Route{}), &invalid)

	scope := unix.RT_SCOPE_HOST // no gateway can be behind it
	err = pod.AddRoutes("eth0", route("10.6.0.0/16", "10.1.0.1"), with(route("10.5.0.0/16", "10.1.0.1"), func(r *netif.Route) { r.Scope = &scope }))
	require.EqualError(t, err, "add route 10.5.0.0/16 via 10.1.0.1 scope 254 dev eth0: invalid argument")
	after, err := pod.Routes("eth0")
	require.NoError(t, err)
	require.Equal(t, before, after, "nothing stays")

	require.ErrorIs(t, pod.AddRoutes("none", route("10.5.0.0/16", "")), netif.ErrNotFound)
}

func TestRoutes(t *testing.T) {
	table, scope := 100, unix.RT_SCOPE_LINK
	mine := []netif.Route{
		route("0.0.0.0/0", "10.1.0.1"), route("::/0", "fd00::1"), route("10.5.0.0/16", ""), route("fd05::/32", ""),
		route("10.6.0.0/16", "172.16.0.1"), route("fd06::/32", "fe80::1"),
		{Dst: netip.MustParsePrefix("10.7.0.0/16"), Via: netip.MustParseAddr("10.1.0.9"), MTU: 1300, AdvMSS: 1260, Priority: 77, Table: &table},
		{Dst: netip.MustParsePrefix("fd07::/32"), Via: netip.MustParseAddr("fd00::9"), MTU: 1300, AdvMSS: 1240, Priority: 77, Table: &table},
	}
	t.Run("what was added and what the kernel made", func(t *testing.T) {
		pod := routed(t)
		made := []netif.Route{route("10.1.0.0/24", ""), with(route("fd00::/64", ""), func(r *netif.Route) { r.Priority = 256 })}
		require.NoError(t, pod.AddRoutes("eth0", mine...))
		got, err := pod.Routes("eth0")
		require.NoError(t, err)
		require.ElementsMatch(t, append(made, mine...), got)
	})
	t.Run("adding them again changes nothing", func(t *testing.T) {
		pod := routed(t)
		require.NoError(t, pod.AddRoutes("eth0", mine...))
		got, err := pod.Routes("eth0")
		require.NoError(t, err)
		writes := pod.nl.Writes()
		require.NoError(t, pod.AddRoutes("eth0", got...))
		require.Equal(t, writes, pod.nl.Writes())
		again, err := pod.Routes("eth0")
		require.NoError(t, err)
		require.Equal(t, got, again)
	})
	t.Run("no such interface", func(t *testing.T) {
		_, err := newSpace(t).Routes("none")
		require.ErrorIs(t, err, netif.ErrNotFound)
	})
	t.Run("del/only those given, and again", func(t *testing.T) {
		pod := routed(t)
		before, err := pod.Routes("eth0")
		require.NoError(t, err)
		stays := route("10.8.0.0/16", "10.1.0.1")
		require.NoError(t, pod.AddRoutes("eth0", append(mine, stays)...))
		for range 2 {
			require.NoError(t, pod.DeleteRoutes("eth0", mine...))
			after, err := pod.Routes("eth0")
			require.NoError(t, err)
			require.ElementsMatch(t, append(before, stays), after)
		}
	})
	t.Run("del/whoever added it", func(t *testing.T) {
		pod := routed(t)
		require.NoError(t, pod.nl.AddRoute(&netlink.Route{Dst: ipNet("10.5.0.0/16"), LinkIndex: pod.link(t, "eth0").Attrs().Index,
			Scope: netlink.SCOPE_LINK, Protocol: unix.RTPROT_STATIC}))
		require.NoError(t, pod.DeleteRoutes("eth0", with(route("10.5.0.0/16", ""), func(r *netif.Route) { r.Scope = &scope })))
		require.Nil(t, via(t, pod, "10.5.0.0/16", unix.RT_TABLE_MAIN))
	})
	t.Run("del/what differs stays", func(t *testing.T) {
		pod := routed(t)
		r := with(route("10.5.0.0/16", "10.1.0.9"), func(r *netif.Route) { r.MTU = 1300 })
		require.NoError(t, pod.AddRoutes("eth0", r, route("fd05::/32", "fd00::9")))
		require.NoError(t, pod.DeleteRoutes("eth0", route("10.5.0.0/16", "10.1.0.9"), route("10.5.0.0/16", ""), route("fd05::/32", "fd00::8"),
			with(r, func(r *netif.Route) { r.Priority = 5 }), with(r, func(r *netif.Route) { r.Table = &table })))
		require.NoError(t, pod.DeleteRoutes("net1", r, route("fd05::/32", "fd00::9")))
		require.NotNil(t, via(t, pod, "10.5.0.0/16", unix.RT_TABLE_MAIN))
		require.NotNil(t, via(t, pod, "fd05::/32", unix.RT_TABLE_MAIN))
	})
	t.Run("del/the kernel's own stay", func(t *testing.T) {
		pod := routed(t)
		before, err := pod.Routes("eth0")
		require.NoError(t, err)
		require.NoError(t, pod.AddRoutes("eth0", route("10.1.0.0/24", ""), route("fd00::/64", "")))
		require.NoError(t, pod.DeleteRoutes("eth0", append(before, route("10.1.0.0/24", ""), route("fd00::/64", ""))...))
		after, err := pod.Routes("eth0")
		require.NoError(t, err)
		require.Equal(t, before, after)
	})
	t.Run("del/absent", func(t *testing.T) {
		pod := routed(t)
		require.NoError(t, pod.DeleteRoutes("none", mine...))
		require.NoError(t, pod.DeleteRoutes("eth0", mine...))
		require.NoError(t, pod.DeleteRoutes("eth0", netif.Route{}, route("10.1.0.7/24", "")), "what cannot be is absent")
	})
}

func ipNet(s string) *net.IPNet {
	p := netip.MustParsePrefix(s)
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
