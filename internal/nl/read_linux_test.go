package nl_test

import (
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"

	"github.com/cnikit/cnikit/internal/nl"
	"github.com/cnikit/cnikit/internal/testenv"
)

func TestRoutesFilters(t *testing.T) {
	testenv.Kernel(t, testenv.Veth)
	c := open(t)
	a, b := pair(t, c, "a"), pair(t, c, "b")
	require.NoError(t, c.ReplaceAddr(a, &netlink.Addr{IPNet: cidr("10.1.0.1/24")}))
	require.NoError(t, c.ReplaceAddr(b, &netlink.Addr{IPNet: cidr("10.2.0.1/24")}))
	require.NoError(t, c.ReplaceAddr(a, &netlink.Addr{IPNet: cidr("fd01::1/64"), Flags: 2 /* NODAD */}))
	for _, r := range []*netlink.Route{
		{Dst: cidr("10.9.1.0/24"), Gw: net.ParseIP("10.1.0.9"), Protocol: 155},
		{Dst: cidr("10.9.2.0/24"), Gw: net.ParseIP("10.2.0.9"), Protocol: 155},
		{Dst: cidr("10.9.3.0/24"), Gw: net.ParseIP("10.1.0.9"), Protocol: 4},
		{Dst: cidr("10.9.4.0/24"), Gw: net.ParseIP("10.1.0.9"), Protocol: 155, Table: 1000},
		{Dst: cidr("fd09::/64"), Gw: net.ParseIP("fd01::9"), Protocol: 155, LinkIndex: a.Attrs().Index},
	} {
		require.NoError(t, c.AddRoute(r))
	}
	const protocol, oif, table, dst = netlink.RT_FILTER_PROTOCOL, netlink.RT_FILTER_OIF, netlink.RT_FILTER_TABLE, netlink.RT_FILTER_DST
	onA := a.Attrs().Index
	for name, k := range map[string]struct {
		filter netlink.Route
		mask   uint64
		family int
		want   []string
	}{
		"protocol":             {netlink.Route{Protocol: 155}, protocol, netlink.FAMILY_V4, []string{"10.9.1.0/24", "10.9.2.0/24"}},
		"protocol and link":    {netlink.Route{Protocol: 155, LinkIndex: onA}, protocol | oif, netlink.FAMILY_V4, []string{"10.9.1.0/24"}},
		"both families":        {netlink.Route{Protocol: 155, LinkIndex: onA}, protocol | oif, netlink.FAMILY_ALL, []string{"10.9.1.0/24", "fd09::/64"}},
		"other table":          {netlink.Route{Table: 1000}, table, netlink.FAMILY_V4, []string{"10.9.4.0/24"}},
		"all tables":           {netlink.Route{Protocol: 155}, protocol | table, netlink.FAMILY_V4, []string{"10.9.1.0/24", "10.9.2.0/24", "10.9.4.0/24"}},
		"absent table":         {netlink.Route{Table: 4000}, table, netlink.FAMILY_ALL, nil},
		"destination":          {netlink.Route{Dst: cidr("10.9.3.0/24")}, dst, netlink.FAMILY_V4, []string{"10.9.3.0/24"}},
		"fields without masks": {netlink.Route{Protocol: 155, Table: 9, Priority: 3, Dst: cidr("1.0.0.0/8")}, protocol, netlink.FAMILY_V6, []string{"fd09::/64"}},
		"none":                 {netlink.Route{}, 0, netlink.FAMILY_V4, []string{"10.1.0.0/24", "10.2.0.0/24", "10.9.1.0/24", "10.9.2.0/24", "10.9.3.0/24"}},
	} {
		t.Run(name, func(t *testing.T) {
			routes, err := c.Routes(&k.filter, k.mask, k.family)
			require.NoError(t, err)
			var got []string
			for _, r := range routes {
				got = append(got, r.Dst.String())
			}
			assert.ElementsMatch(t, k.want, got)
		})
	}
	t.Run("nil filter", func(t *testing.T) {
		routes, err := c.Routes(nil, 0, netlink.FAMILY_V4)
		require.NoError(t, err)
		assert.Len(t, routes, 5)
	})
}

func TestNeighborsAndFDBOfOneLink(t *testing.T) {
	testenv.Kernel(t, testenv.Veth, testenv.VXLAN)
	c := open(t)
	a, b := pair(t, c, "a"), pair(t, c, "b")
	for i, name := range []string{"vx1", "vx2"} {
		require.NoError(t, c.AddLink(&netlink.Vxlan{LinkAttrs: attrs(name), VxlanId: 7 + i, Port: 4789}))
	}
	mac := net.HardwareAddr{2, 0, 0, 0, 0, 9}
	for _, l := range []netlink.Link{a, b} {
		for _, ip := range []string{"10.0.0.9", "fd00::9"} {
			require.NoError(t, c.SetNeighbor(&netlink.Neigh{LinkIndex: l.Attrs().Index, IP: net.ParseIP(ip), HardwareAddr: mac}))
		}
	}
	for name, ip := range map[string]string{"vx1": "192.0.2.1", "vx2": "192.0.2.2"} {
		l, err := c.Link(name)
		require.NoError(t, err)
		require.NoError(t, c.SetFDB(&netlink.Neigh{LinkIndex: l.Attrs().Index, IP: net.ParseIP(ip), HardwareAddr: mac}))
	}
	count := func(ifindex, family int) int {
		all, err := c.Neighbors(ifindex, family)
		require.NoError(t, err)
		permanent := 0
		for _, n := range all {
			if n.State == netlink.NUD_PERMANENT {
				permanent++
			}
		}
		return permanent
	}
	assert.Equal(t, 1, count(a.Attrs().Index, netlink.FAMILY_V4))
	assert.Equal(t, 1, count(a.Attrs().Index, netlink.FAMILY_V6))
	assert.Equal(t, 2, count(b.Attrs().Index, netlink.FAMILY_ALL))
	assert.Equal(t, 4, count(0, netlink.FAMILY_ALL))
	assert.Equal(t, []string{"02:00:00:00:00:09 192.0.2.1"}, fdbOf(t, c, "vx1"))
	assert.Equal(t, []string{"02:00:00:00:00:09 192.0.2.2"}, fdbOf(t, c, "vx2"))

	t.Run("absent link has none", func(t *testing.T) {
		all, err := c.FDB(4711)
		if err == nil {
			assert.Empty(t, all)
		} else {
			require.ErrorIs(t, err, nl.ErrNotFound)
		}
	})
}

func TestParseNeighborToleratesGarbage(t *testing.T) {
	for _, m := range [][]byte{nil, {1}, make([]byte, 11), append(make([]byte, 12), 2, 0, 1, 0), append(make([]byte, 12), 0xff, 0xff, 1, 0)} {
		_, ok := nl.ParseNeighbor(m)
		assert.False(t, ok, "%v", m)
	}
}

func TestChangeVXLANInPlace(t *testing.T) {
	testenv.Kernel(t, testenv.Veth, testenv.VXLAN)
	c := open(t)
	a, b := pair(t, c, "a"), pair(t, c, "b")
	device := &netlink.Vxlan{LinkAttrs: attrs("vx"), VxlanId: 7, Port: 4789, Learning: true,
		SrcAddr: net.ParseIP("192.0.2.1"), VtepDevIndex: a.Attrs().Index}
	require.NoError(t, c.AddLink(device))
	get := func() *netlink.Vxlan {
		l, err := c.Link("vx")
		require.NoError(t, err)
		return l.(*netlink.Vxlan)
	}
	index := get().Index
	change := func(v nl.VXLANChange) *netlink.Vxlan {
		before := c.Writes()
		require.NoError(t, c.ChangeVXLAN(device, v))
		assert.Equal(t, uint64(1), c.Writes()-before)
		return get()
	}
	got := change(nl.VXLANChange{Local: netip.MustParseAddr("192.0.2.2")})
	assert.Equal(t, "192.0.2.2", got.SrcAddr.String())
	assert.Equal(t, a.Attrs().Index, got.VtepDevIndex)
	assert.True(t, got.Learning)
	got = change(nl.VXLANChange{Device: b.Attrs().Index})
	assert.Equal(t, b.Attrs().Index, got.VtepDevIndex)
	assert.Equal(t, "192.0.2.2", got.SrcAddr.String())
	got = change(nl.VXLANChange{LearningOff: true})
	assert.False(t, got.Learning)
	assert.Equal(t, index, got.Index)
	assert.Equal(t, 7, got.VxlanId)
	assert.Equal(t, 4789, got.Port)

	t.Run("the kernel's words are in the error", func(t *testing.T) {
		err := c.ChangeVXLAN(device, nl.VXLANChange{Local: netip.MustParseAddr("fd00::1")})
		require.Error(t, err)
		assert.ErrorContains(t, err, "change vxlan link vx: ")
		assert.ErrorContains(t, err, "family", "from the kernel's extended acknowledgement")
	})
}

func TestAddrsAndRulesAndLinks(t *testing.T) {
	testenv.Kernel(t, testenv.Veth)
	c := open(t)
	a := pair(t, c, "a")
	require.NoError(t, c.ReplaceAddr(a, &netlink.Addr{IPNet: cidr("10.1.0.1/24")}))
	all, err := c.Addrs(nil, netlink.FAMILY_V4)
	require.NoError(t, err)
	require.Len(t, all, 1)
	assert.Equal(t, a.Attrs().Index, all[0].LinkIndex)
	rules, err := c.Rules(netlink.FAMILY_V4)
	require.NoError(t, err)
	assert.Len(t, rules, 3, "local, main, default")
	links, err := c.Links()
	require.NoError(t, err)
	assert.GreaterOrEqual(t, len(links), 3)
	byIndex, err := c.LinkByIndex(a.Attrs().Index)
	require.NoError(t, err)
	assert.Equal(t, "a", byIndex.Attrs().Name)
}
