package nl_test

import (
	"errors"
	"fmt"
	"net"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"

	"github.com/cnikit/cnikit/internal/netns"
	"github.com/cnikit/cnikit/internal/nl"
	"github.com/cnikit/cnikit/internal/testenv"
)

// open returns a Conn in a fresh namespace.
func open(t testing.TB) *nl.Conn {
	t.Helper()
	testenv.NetAdmin(t)
	ns, err := netns.New()
	require.NoError(t, err)
	noForwarding(t, ns)
	c, err := nl.OpenIn(ns)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	require.NoError(t, ns.Close(), "the Conn must not need the caller's handle")
	return c
}

// noForwarding makes a new namespace start without: its IPv4 settings are those of the machine, which may forward
// (devconf_inherit_init_net of the kernel's Documentation/admin-guide/sysctl/net.rst).
func noForwarding(t testing.TB, ns *netns.NS) {
	t.Helper()
	c, err := nl.OpenIn(ns)
	require.NoError(t, err)
	defer c.Close()
	_, err = c.SetSysctl(forward, "0")
	require.NoError(t, err)
}

func attrs(name string) netlink.LinkAttrs {
	a := netlink.NewLinkAttrs()
	a.Name = name
	return a
}

// byName is a link known by its name only.
func byName(name string) netlink.Link {
	return &netlink.Device{LinkAttrs: netlink.LinkAttrs{Name: name}}
}

func cidr(s string) *net.IPNet {
	ip, n, err := net.ParseCIDR(s)
	if err != nil {
		panic(err)
	}
	n.IP = ip
	return n
}

// dummy adds a veth pair (every kernel has it) and brings one end up.
func pair(t testing.TB, c *nl.Conn, name string) netlink.Link {
	t.Helper()
	require.NoError(t, c.AddLink(&netlink.Veth{LinkAttrs: attrs(name), PeerName: name + "p"}))
	require.NoError(t, c.SetUp(byName(name+"p")))
	require.NoError(t, c.SetUp(byName(name)))
	l, err := c.Link(name)
	require.NoError(t, err)
	return l
}

// Every write method sends one request, counts it, and has its effect.
func TestWritesAreCountedAndHaveEffect(t *testing.T) {
	testenv.Kernel(t, testenv.Veth, testenv.Bridge, testenv.VXLAN)
	c := open(t)
	link := func(t *testing.T, name string) *netlink.LinkAttrs {
		l, err := c.Link(name)
		require.NoError(t, err)
		return l.Attrs()
	}
	addr := &netlink.Addr{IPNet: cidr("10.1.0.1/24")}
	route := &netlink.Route{Dst: cidr("10.9.0.0/24"), Gw: net.ParseIP("10.1.0.9"), Priority: 77, Protocol: 155}
	neigh := &netlink.Neigh{IP: net.ParseIP("10.1.0.9"), HardwareAddr: net.HardwareAddr{2, 0, 0, 0, 0, 9}}
	fdb := &netlink.Neigh{IP: net.ParseIP("192.0.2.9"), HardwareAddr: net.HardwareAddr{2, 0, 0, 0, 0, 9}}
	steps := []struct {
		name  string
		write func() error
		check func(t *testing.T)
	}{
		{"AddLink/bridge", func() error { return c.AddLink(&netlink.Bridge{LinkAttrs: attrs("br")}) },
			func(t *testing.T) { link(t, "br") }},
		{"AddLink/veth", func() error { return c.AddLink(&netlink.Veth{LinkAttrs: attrs("v"), PeerName: "p"}) },
			func(t *testing.T) { link(t, "p") }},
		{"AddLink/vxlan", func() error {
			return c.AddLink(&netlink.Vxlan{LinkAttrs: attrs("vx"), VxlanId: 7, Port: 4789, SrcAddr: net.ParseIP("127.0.0.1")})
		}, func(t *testing.T) { link(t, "vx") }},
		{"SetMAC", func() error { return c.SetMAC(byName("v"), net.HardwareAddr{2, 0, 0, 0, 0, 1}) },
			func(t *testing.T) { assert.Equal(t, "02:00:00:00:00:01", link(t, "v").HardwareAddr.String()) }},
		{"SetMTU", func() error { return c.SetMTU(byName("v"), 1400) },
			func(t *testing.T) { assert.Equal(t, 1400, link(t, "v").MTU) }},
		{"SetAlias", func() error { return c.SetAlias(byName("v"), "mine") },
			func(t *testing.T) { assert.Equal(t, "mine", link(t, "v").Alias) }},
		{"SetName", func() error { return c.SetName(byName("p"), "peer") },
			func(t *testing.T) { link(t, "peer") }},
		{"SetMaster", func() error { return c.SetMaster(byName("peer"), byName("br")) },
			func(t *testing.T) { assert.Equal(t, link(t, "br").Index, link(t, "peer").MasterIndex) }},
		{"SetHairpin", func() error { return c.SetHairpin(byName("peer"), true) },
			func(t *testing.T) {
				port, err := c.BridgePort(byName("peer"))
				require.NoError(t, err)
				assert.True(t, port.Hairpin)
			}},
		{"SetNoMaster", func() error { return c.SetNoMaster(byName("peer")) },
			func(t *testing.T) { assert.Zero(t, link(t, "peer").MasterIndex) }},
		{"SetARP/off", func() error { return c.SetARP(byName("peer"), false) },
			func(t *testing.T) { assert.NotZero(t, link(t, "peer").RawFlags&syscall.IFF_NOARP) }},
		{"SetARP/on", func() error { return c.SetARP(byName("peer"), true) },
			func(t *testing.T) { assert.Zero(t, link(t, "peer").RawFlags&syscall.IFF_NOARP) }},
		{"SetUp", func() error { return c.SetUp(byName("v")) },
			func(t *testing.T) { assert.NotZero(t, link(t, "v").Flags&net.FlagUp) }},
		{"SetUp/peer", func() error { return c.SetUp(byName("peer")) },
			func(t *testing.T) { assert.NotZero(t, link(t, "peer").Flags&net.FlagUp) }},
		{"ReplaceAddr", func() error { return c.ReplaceAddr(byName("v"), addr) },
			func(t *testing.T) {
				all, err := c.Addrs(byName("v"), netlink.FAMILY_V4)
				require.NoError(t, err)
				require.Len(t, all, 1)
				assert.Equal(t, "10.1.0.1/24", all[0].IPNet.String())
			}},
		{"AddRoute", func() error { return c.AddRoute(route) },
			func(t *testing.T) { assert.Len(t, routesOf(t, c, 155), 1) }},
		{"ReplaceRoute", func() error {
			changed := *route
			changed.Gw = net.ParseIP("10.1.0.8")
			return c.ReplaceRoute(&changed)
		}, func(t *testing.T) {
			all := routesOf(t, c, 155)
			require.Len(t, all, 1)
			assert.Equal(t, "10.1.0.8", all[0].Gw.String())
		}},
		{"DelRoute", func() error {
			return c.DelRoute(&netlink.Route{Dst: route.Dst, Priority: 77, Protocol: 155})
		}, func(t *testing.T) { assert.Empty(t, routesOf(t, c, 155)) }},
		{"SetNeighbor", func() error { neigh.LinkIndex = link(t, "v").Index; return c.SetNeighbor(neigh) },
			func(t *testing.T) {
				all, err := c.Neighbors(neigh.LinkIndex, netlink.FAMILY_V4)
				require.NoError(t, err)
				require.Len(t, all, 1)
				assert.Equal(t, neigh.HardwareAddr, all[0].HardwareAddr)
				assert.True(t, neigh.IP.Equal(all[0].IP))
				assert.Equal(t, netlink.NUD_PERMANENT, all[0].State)
			}},
		{"DelNeighbor", func() error { return c.DelNeighbor(neigh) },
			func(t *testing.T) {
				all, err := c.Neighbors(neigh.LinkIndex, netlink.FAMILY_V4)
				require.NoError(t, err)
				assert.Empty(t, all)
			}},
		{"SetFDB", func() error { fdb.LinkIndex = link(t, "vx").Index; return c.SetFDB(fdb) },
			func(t *testing.T) { assert.Equal(t, []string{"02:00:00:00:00:09 192.0.2.9"}, fdbOf(t, c, "vx")) }},
		{"SetFDB/swaps the destination", func() error {
			swapped := *fdb
			swapped.IP = net.ParseIP("192.0.2.10")
			return c.SetFDB(&swapped)
		}, func(t *testing.T) { assert.Equal(t, []string{"02:00:00:00:00:09 192.0.2.10"}, fdbOf(t, c, "vx")) }},
		{"DelFDB", func() error {
			return c.DelFDB(&netlink.Neigh{LinkIndex: fdb.LinkIndex, IP: net.ParseIP("192.0.2.10"), HardwareAddr: fdb.HardwareAddr})
		}, func(t *testing.T) { assert.Empty(t, fdbOf(t, c, "vx")) }},
		{"DelAddr", func() error { return c.DelAddr(byName("v"), addr) },
			func(t *testing.T) {
				all, err := c.Addrs(byName("v"), netlink.FAMILY_V4)
				require.NoError(t, err)
				assert.Empty(t, all)
			}},
		{"SetSysctl", func() error { _, err := c.SetSysctl("net/ipv4/ip_forward", "1"); return err },
			func(t *testing.T) {
				value, err := c.Sysctl("net/ipv4/ip_forward")
				require.NoError(t, err)
				assert.Equal(t, "1", value)
			}},
		{"SetDown", func() error { return c.SetDown(byName("v")) },
			func(t *testing.T) { assert.Zero(t, link(t, "v").Flags&net.FlagUp) }},
		{"DelLink", func() error { return c.DelLink(byName("v")) },
			func(t *testing.T) {
				_, err := c.Link("peer")
				require.ErrorIs(t, err, nl.ErrNotFound)
			}},
	}
	for _, step := range steps {
		t.Run(step.name, func(t *testing.T) {
			before := c.Writes()
			require.NoError(t, step.write())
			assert.Equal(t, uint64(1), c.Writes()-before, "requests sent")
			before = c.Writes()
			step.check(t)
			assert.Equal(t, before, c.Writes(), "reading wrote")
		})
	}
}

func routesOf(t *testing.T, c *nl.Conn, protocol netlink.RouteProtocol) []netlink.Route {
	t.Helper()
	all, err := c.Routes(&netlink.Route{Protocol: protocol}, netlink.RT_FILTER_PROTOCOL, netlink.FAMILY_ALL)
	require.NoError(t, err)
	return all
}

func fdbOf(t *testing.T, c *nl.Conn, name string) []string {
	t.Helper()
	l, err := c.Link(name)
	require.NoError(t, err)
	all, err := c.FDB(l.Attrs().Index)
	require.NoError(t, err)
	entries := []string{}
	for _, n := range all {
		entries = append(entries, fmt.Sprintf("%s %s", n.HardwareAddr, n.IP))
	}
	return entries
}

func TestDeletingTheAbsentIsNil(t *testing.T) {
	testenv.Kernel(t, testenv.Veth, testenv.VXLAN)
	c := open(t)
	veth := pair(t, c, "v")
	require.NoError(t, c.AddLink(&netlink.Vxlan{LinkAttrs: attrs("vx"), VxlanId: 7, Port: 4789}))
	vx, err := c.Link("vx")
	require.NoError(t, err)
	gone := &netlink.Device{LinkAttrs: netlink.LinkAttrs{Name: "gone", Index: 4711}}
	mac := net.HardwareAddr{2, 0, 0, 0, 0, 9}
	for name, del := range map[string]func() error{
		"link by name":          func() error { return c.DelLink(byName("none")) },
		"link by index":         func() error { return c.DelLink(gone) },
		"address":               func() error { return c.DelAddr(veth, &netlink.Addr{IPNet: cidr("10.3.0.1/24")}) },
		"ipv6 address":          func() error { return c.DelAddr(veth, &netlink.Addr{IPNet: cidr("fd00::1/64")}) },
		"address of no link":    func() error { return c.DelAddr(gone, &netlink.Addr{IPNet: cidr("10.3.0.1/24")}) },
		"address of no name":    func() error { return c.DelAddr(byName("none"), &netlink.Addr{IPNet: cidr("10.3.0.1/24")}) },
		"route":                 func() error { return c.DelRoute(&netlink.Route{Dst: cidr("10.4.0.0/24")}) },
		"ipv6 route":            func() error { return c.DelRoute(&netlink.Route{Dst: cidr("fd00:4::/64")}) },
		"route of no link":      func() error { return c.DelRoute(&netlink.Route{Dst: cidr("10.4.0.0/24"), LinkIndex: 4711}) },
		"ipv6 route of no link": func() error { return c.DelRoute(&netlink.Route{Dst: cidr("fd00:4::/64"), LinkIndex: 4711}) },
		"neighbour": func() error {
			return c.DelNeighbor(&netlink.Neigh{LinkIndex: veth.Attrs().Index, IP: net.ParseIP("10.3.0.9")})
		},
		"ipv6 neighbour": func() error {
			return c.DelNeighbor(&netlink.Neigh{LinkIndex: veth.Attrs().Index, IP: net.ParseIP("fd00::9")})
		},
		"neighbour of no link": func() error {
			return c.DelNeighbor(&netlink.Neigh{LinkIndex: 4711, IP: net.ParseIP("10.3.0.9")})
		},
		"forwarding entry": func() error {
			return c.DelFDB(&netlink.Neigh{LinkIndex: vx.Attrs().Index, IP: net.ParseIP("192.0.2.9"), HardwareAddr: mac})
		},
		"forwarding entry of no link": func() error {
			return c.DelFDB(&netlink.Neigh{LinkIndex: 4711, IP: net.ParseIP("192.0.2.9"), HardwareAddr: mac})
		},
	} {
		t.Run(name, func(t *testing.T) { require.NoError(t, del()) })
	}
}

func TestErrorsNameOperationAndObject(t *testing.T) {
	testenv.Kernel(t, testenv.Veth, testenv.VXLAN)
	c := open(t)
	veth := pair(t, c, "v")
	require.NoError(t, c.ReplaceAddr(veth, &netlink.Addr{IPNet: cidr("10.1.0.1/24")}))
	route := &netlink.Route{Dst: cidr("10.9.0.0/24"), Gw: net.ParseIP("10.1.0.9"), Priority: 7}
	require.NoError(t, c.AddRoute(route))
	vxlan := func(name string) error {
		return c.AddLink(&netlink.Vxlan{LinkAttrs: attrs(name), VxlanId: 7, Port: 4789})
	}
	require.NoError(t, vxlan("vx"))
	for name, k := range map[string]struct {
		err   error
		want  error
		words string
	}{
		"no such link":       {errOf(c.Link("none")), nl.ErrNotFound, "get link none"},
		"no such index":      {errOf(c.LinkByIndex(4711)), nl.ErrNotFound, "4711"},
		"set up none":        {c.SetUp(byName("none")), nl.ErrNotFound, "set up link none"},
		"mtu of none":        {c.SetMTU(byName("none"), 1400), nl.ErrNotFound, "MTU 1400"},
		"master none":        {c.SetMaster(veth, byName("none")), nl.ErrNotFound, "set master of link v"},
		"no port":            {errOf(c.BridgePort(veth)), nl.ErrNotFound, "get bridge port v"},
		"link twice":         {c.AddLink(&netlink.Veth{LinkAttrs: attrs("v"), PeerName: "x"}), nl.ErrExists, "add veth link v"},
		"vxlan twice":        {vxlan("other"), nl.ErrExists, "add vxlan link other"},
		"route twice":        {c.AddRoute(route), nl.ErrExists, "add route 10.9.0.0/24 via 10.1.0.9 metric 7"},
		"unreachable":        {c.AddRoute(&netlink.Route{Dst: cidr("10.8.0.0/24"), Gw: net.ParseIP("172.16.0.1")}), syscall.ENETUNREACH, "10.8.0.0/24"},
		"mtu too large":      {c.SetMTU(veth, 1<<20), syscall.EINVAL, "link v"},
		"addresses of none":  {errOf(c.Addrs(byName("none"), netlink.FAMILY_ALL)), nl.ErrNotFound, "none"},
		"neighbour, no link": {c.SetNeighbor(&netlink.Neigh{LinkIndex: 4711, IP: net.ParseIP("10.1.0.9")}), nl.ErrNotFound, "10.1.0.9 dev #4711"},
	} {
		t.Run(name, func(t *testing.T) {
			require.ErrorIs(t, k.err, k.want)
			assert.ErrorContains(t, k.err, k.words)
			var e *nl.Error
			require.ErrorAs(t, k.err, &e)
			assert.NotEmpty(t, e.Op)
			assert.NotEmpty(t, e.Object)
		})
	}
	assert.NotErrorIs(t, vxlan("other"), nl.ErrNotFound)
}

func errOf[T any](_ T, err error) error { return err }

// The kernel makes a name of a template, under which the library does not find the link; it
// says nothing of a lookup that fails.
func TestAddLinkNeverLeavesTheIndexUnknown(t *testing.T) {
	c := open(t)
	link := &netlink.Bridge{LinkAttrs: attrs("br%d")}
	require.ErrorIs(t, c.AddLink(link), nl.ErrNotFound)
	require.Zero(t, link.Index)
}

func TestAddLinkUnderMaster(t *testing.T) {
	testenv.Kernel(t, testenv.Veth, testenv.Bridge)
	c := open(t)
	bridge := &netlink.Bridge{LinkAttrs: attrs("br")}
	require.NoError(t, c.AddLink(bridge))
	require.NotZero(t, bridge.Index, "AddLink sets the index")

	port := &netlink.Veth{LinkAttrs: attrs("v"), PeerName: "p"}
	port.MasterIndex = bridge.Index
	before := c.Writes()
	require.NoError(t, c.AddLink(port))
	assert.Equal(t, uint64(2), c.Writes()-before)
	got, err := c.Link("v")
	require.NoError(t, err)
	assert.Equal(t, bridge.Index, got.Attrs().MasterIndex)

	t.Run("refused by the master", func(t *testing.T) {
		port := &netlink.Veth{LinkAttrs: attrs("w"), PeerName: "q"}
		port.MasterIndex = got.Attrs().Index
		require.Error(t, c.AddLink(port))
		_, err := c.Link("w")
		require.ErrorIs(t, err, nl.ErrNotFound, "nothing stays behind")
	})
}

func TestInterruptedDumpReturnsDataAndErrPartial(t *testing.T) {
	calls := 0
	numbers, err := nl.Dump(func() ([]int, error) { calls++; return []int{calls}, netlink.ErrDumpInterrupted })
	require.ErrorIs(t, err, nl.ErrPartial)
	assert.Equal(t, []int{4}, numbers)

	calls = 0
	numbers, err = nl.Dump(func() ([]int, error) {
		if calls++; calls < 3 {
			return nil, syscall.EINTR
		}
		return []int{1, 2}, nil
	})
	require.NoError(t, err)
	assert.Equal(t, []int{1, 2}, numbers)

	calls = 0
	boom := errors.New("boom")
	numbers, err = nl.Dump(func() ([]int, error) { calls++; return []int{1}, boom })
	require.ErrorIs(t, err, boom)
	require.NotErrorIs(t, err, nl.ErrPartial)
	assert.ErrorContains(t, err, "list numbers")
	assert.Nil(t, numbers)
	assert.Equal(t, 1, calls, "other errors are not tried again")
}
