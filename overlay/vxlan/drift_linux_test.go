package vxlan_test

import (
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnikit/cnikit/internal/testenv"
	"github.com/cnikit/cnikit/overlay/vxlan"
)

// Whatever others change is changed back, by events alone: the engine's safety resync
// is off.
func TestDriftIsRepairedByEvents(t *testing.T) {
	b, device := peerNumber(2), byName("cnikit.5000")
	ip := func(args ...string) func(*node) error {
		return func(n *node) error { return n.run(append([]string{testenv.Tool(t, "ip")}, args...)...) }
	}
	foreignMAC := net.HardwareAddr{2, 0, 0, 0, 0, 0x99}
	for _, k := range []struct {
		name  string
		drift func(n *node) error
		same  bool // the device must be the same as before
	}{
		{"route deleted", func(n *node) error {
			return n.conn.DelRoute(&netlink.Route{Dst: addr("10.244.2.0/24").IPNet, Protocol: 155})
		}, true},
		{"ipv6 route deleted", func(n *node) error {
			return n.conn.DelRoute(&netlink.Route{Dst: addr("fd00:10:244:2::/64").IPNet, Protocol: 155})
		}, true},
		{"all routes flushed", ip("route", "flush", "proto", "155"), true},
		{"route via somebody else", func(n *node) error {
			return n.conn.ReplaceRoute(&netlink.Route{Dst: addr("10.244.2.0/24").IPNet, Protocol: 155, Priority: vxlan.Metric(b.PodCIDRs[0]),
				Gw: net.ParseIP("10.244.3.0"), LinkIndex: n.index(), Flags: unix.RTNH_F_ONLINK})
		}, true},
		{"second route beside ours", ip("route", "append", "10.244.2.0/24", "via", "10.244.3.0", "dev", "cnikit.5000", "onlink", "proto", "155", "metric", "28299876"), true},
		{"second route before ours", ip("route", "prepend", "10.244.2.0/24", "via", "10.244.3.0", "dev", "cnikit.5000", "onlink", "proto", "155", "metric", "28299876"), true},
		{"second ipv6 path", ip("route", "append", "fd00:10:244:2::/64", "via", "fd00:10:244:3::", "dev", "cnikit.5000", "onlink", "proto", "155"), true},
		{"route with an MTU", ip("route", "replace", "10.244.2.0/24", "via", "10.244.2.0", "dev", "cnikit.5000", "onlink", "src", "10.244.1.0", "proto", "155", "metric", "28299876", "mtu", "1000"), true},
		{"unknown route of ours", func(n *node) error {
			return n.conn.AddRoute(&netlink.Route{Dst: addr("10.77.0.0/24").IPNet, Protocol: 155, Priority: 9,
				Gw: net.ParseIP("10.244.3.0"), LinkIndex: n.index(), Flags: unix.RTNH_F_ONLINK})
		}, true},
		{"neighbour deleted", func(n *node) error {
			return n.conn.DelNeighbor(&netlink.Neigh{LinkIndex: n.index(), IP: net.ParseIP("10.244.2.0")})
		}, true},
		{"neighbour with another MAC", func(n *node) error {
			return n.conn.SetNeighbor(&netlink.Neigh{LinkIndex: n.index(), IP: net.ParseIP("fd00:10:244:2::"), HardwareAddr: foreignMAC})
		}, true},
		{"unknown neighbour", func(n *node) error {
			return n.conn.SetNeighbor(&netlink.Neigh{LinkIndex: n.index(), IP: net.ParseIP("10.244.9.0"), HardwareAddr: foreignMAC})
		}, true},
		{"neighbours flushed", ip("neigh", "flush", "dev", "cnikit.5000", "nud", "all"), true},
		{"forwarding entry deleted", func(n *node) error {
			return n.conn.DelFDB(&netlink.Neigh{LinkIndex: n.index(), IP: b.Underlay.AsSlice(), HardwareAddr: b.MAC.HardwareAddr()})
		}, true},
		{"forwarding entry to elsewhere", func(n *node) error {
			return n.conn.SetFDB(&netlink.Neigh{LinkIndex: n.index(), IP: net.ParseIP("192.0.2.77"), HardwareAddr: b.MAC.HardwareAddr()})
		}, true},
		{"unknown forwarding entry", func(n *node) error {
			return n.conn.SetFDB(&netlink.Neigh{LinkIndex: n.index(), IP: net.ParseIP("192.0.2.77"), HardwareAddr: foreignMAC})
		}, true},
		{"flood entries", func(n *node) error {
			for _, to := range []string{"192.0.2.77", "192.0.2.78"} {
				err := n.run(testenv.Tool(t, "bridge"), "fdb", "append", "00:00:00:00:00:00", "dev", "cnikit.5000", "dst", to)
				if err != nil {
					return err
				}
			}
			return nil
		}, true},
		{"device down", func(n *node) error { return n.conn.SetDown(device) }, true},
		{"device down and up", func(n *node) error {
			if err := n.conn.SetDown(device); err != nil {
				return err
			}
			return n.conn.SetUp(device)
		}, true},
		{"device deleted", func(n *node) error { return n.conn.DelLink(device) }, false},
		{"device renamed", func(n *node) error { return n.conn.SetName(device, "stolen") }, false},
		{"MAC changed", func(n *node) error { return n.conn.SetMAC(device, foreignMAC) }, true},
		{"MTU changed", func(n *node) error { return n.conn.SetMTU(device, 1300) }, true},
		{"alias changed", func(n *node) error { return n.conn.SetAlias(device, "") }, true},
		{"noarp set", ip("link", "set", "cnikit.5000", "arp", "off"), true},
		{"learning on", ip("link", "set", "cnikit.5000", "type", "vxlan", "learning"), true},
		{"ttl set", ip("link", "set", "cnikit.5000", "type", "vxlan", "ttl", "1"), false},
		{"address removed", func(n *node) error { return n.conn.DelAddr(device, addr("10.244.1.0/32")) }, true},
		{"ipv6 address removed", func(n *node) error { return n.conn.DelAddr(device, addr("fd00:10:244:1::/128")) }, true},
		{"unknown address", func(n *node) error { return n.conn.ReplaceAddr(device, addr("10.99.0.1/32")) }, true},
		{"forwarding off", func(n *node) error {
			_, err := n.conn.SetSysctl("net/ipv4/ip_forward", "0")
			return err
		}, true},
		{"ipv6 forwarding off", func(n *node) error {
			_, err := n.conn.SetSysctl("net/ipv6/conf/all/forwarding", "0")
			return err
		}, true},
		{"underlay down and up", func(n *node) error {
			if err := n.conn.SetDown(byName("eth0")); err != nil {
				return err
			}
			return n.conn.SetUp(byName("eth0"))
		}, true},
		{"underlay renamed", func(n *node) error {
			return n.conn.SetName(byName("eth0"), "wan")
		}, true},
		{"underlay address away and back", func(n *node) error {
			if err := n.conn.DelAddr(byName("eth0"), addr("192.0.2.1/24")); err != nil {
				return err
			}
			return n.conn.ReplaceAddr(byName("eth0"), addr("192.0.2.1/24"))
		}, true},
		{"underlay deleted and made again", func(n *node) error {
			if err := n.conn.DelLink(byName("eth0")); err != nil {
				return err
			}
			n.fabric.plug(n, 1)
			return nil
		}, false},
	} {
		t.Run(k.name, func(t *testing.T) {
			f := newFabric(t, 3)
			f.start(vxlan.Config{})
			n := f.nodes[0]
			want, before := n.state(), n.index()
			require.NoError(t, k.drift(n))
			took := n.eventually("repair", func() bool { return n.state() == want && n.forwards() && n.arp() })
			t.Logf("%s: repaired in %.1f ms", k.name, float64(took.Microseconds())/1000)
			n.settled()
			assert.Equal(t, want, n.state(), "it must last")
			assert.Equal(t, k.same, before == n.index(), "the same device as before")
			f.allReach(f.nodes[:2]...)
		})
	}
}

// index is the index of the device.
func (n *node) index() int {
	l, err := n.conn.Link("cnikit.5000")
	require.NoError(n.t, err)
	return l.Attrs().Index
}

func (n *node) forwards() bool {
	v4, err4 := n.conn.Sysctl("net/ipv4/ip_forward")
	v6, err6 := n.conn.Sysctl("net/ipv6/conf/all/forwarding")
	return err4 == nil && err6 == nil && v4 == "1" && v6 == "1"
}

// arp reports whether the device resolves addresses.
func (n *node) arp() bool {
	l, err := n.conn.Link("cnikit.5000")
	return err == nil && l.Attrs().RawFlags&unix.IFF_NOARP == 0
}

// A change that the backend must not repair: others' state.
func TestForeignStateIsLeftAlone(t *testing.T) {
	f := newFabric(t, 2)
	n, b := f.nodes[0], f.nodes[1].peer
	for _, r := range []*netlink.Route{
		{Dst: addr("10.244.2.0/24").IPNet, Gw: net.ParseIP("192.0.2.66"), Priority: 1 << 30, Protocol: 4},
		{Dst: addr("10.98.0.0/24").IPNet, Gw: net.ParseIP("192.0.2.66"), Protocol: 155},
		// exactly where ours would be:
		{Dst: addr("fd00:10:244:2::/64").IPNet, LinkIndex: 1, Priority: 1024, Protocol: 4},
	} {
		require.NoError(t, n.conn.SetUp(byName("lo")))
		require.NoError(t, n.conn.AddRoute(r))
	}
	foreign := func() string {
		all := everything(t, n.conn)
		var lines []string
		for line := range strings.Lines(all) {
			if strings.Contains(line, "192.0.2.66") || strings.Contains(line, "fd00:10:244:2::/64") {
				lines = append(lines, line)
			}
		}
		return strings.Join(lines, "")
	}
	before := foreign()
	for _, n := range f.nodes {
		n.start(vxlan.Config{})
	}
	f.join(f.nodes...)
	f.nodes[1].settled()
	n.eventually("ipv4 route", func() bool { return strings.Contains(n.state(), "route 10.244.2.0/24") })
	n.eventually("error of the ipv6 route", func() bool { return strings.Contains(n.failing(), "fd00:10:244:2::/64") })
	assert.Contains(t, n.failing(), "a route that is not ours has this destination and metric 1024")
	assert.Equal(t, before, foreign())
	require.NoError(t, echo(n, f.nodes[1], 0), "the other family works")

	// With ours there, a change must not overwrite a foreign one beside it.
	t.Run("gone after the foreign one went", func(t *testing.T) {
		require.NoError(t, n.conn.DelRoute(&netlink.Route{Dst: addr("fd00:10:244:2::/64").IPNet, Protocol: 4}))
		took := n.eventually("ipv6 route", func() bool { return strings.Contains(n.state(), "route fd00:10:244:2::/64") })
		t.Logf("took %v", took)
		n.settled()
		require.NoError(t, echo(n, f.nodes[1], 1))
	})
	t.Run("removal of the peer leaves them", func(t *testing.T) {
		f.join(n)
		n.settled()
		assert.Contains(t, foreign(), "10.244.2.0/24")
		assert.Contains(t, foreign(), "10.98.0.0/24")
		assert.NotContains(t, n.state(), b.MAC.String())
	})
}

// The kernel keeps routes apart by gateway when they are appended: ours and a foreign
// one can share destination and metric. A replacement hits the first, whosever it is.
func TestForeignRouteBesideOursIsNotReplaced(t *testing.T) {
	f := newFabric(t, 3)
	ip := testenv.Tool(t, "ip")
	f.start(vxlan.Config{})
	n := f.nodes[0]
	require.NoError(t, n.run(ip, "route", "prepend", "10.244.2.0/24", "via", "192.0.2.66", "metric", "28299876", "proto", "static"))
	self := n.peer
	self.PodCIDRs = []netip.Prefix{netip.MustParsePrefix("10.244.55.0/24")} // another source address for all routes
	topology := f.topology(n, f.nodes...)
	topology.Self = &self
	require.NoError(t, n.backend.SetTopology(topology))
	n.eventually("error", func() bool { return strings.Contains(n.failing(), "10.244.2.0/24") })
	assert.Contains(t, n.failing(), "not ours")
	assert.Contains(t, everything(t, n.conn), "192.0.2.66")
}

func TestUnderlayAddressChangeIsMadeInPlace(t *testing.T) {
	f := newFabric(t, 2)
	f.start(vxlan.Config{})
	a, b := f.nodes[0], f.nodes[1]
	l, err := a.conn.Link("cnikit.5000")
	require.NoError(t, err)
	require.NoError(t, a.conn.DelAddr(byName("eth0"), addr("192.0.2.1/24")))
	require.NoError(t, a.conn.ReplaceAddr(byName("eth0"), addr("192.0.2.101/24")))
	writes := a.backend.Writes()
	a.peer.Underlay = netip.MustParseAddr("192.0.2.101")
	f.join(a, b)
	a.settled()
	b.settled()
	assert.Equal(t, writes+1, a.backend.Writes(), "one write on the node itself")
	assert.Contains(t, a.state(), "local 192.0.2.101")
	assert.Contains(t, b.state(), "forward "+a.peer.MAC.String()+" 192.0.2.101")
	again, err := a.conn.Link("cnikit.5000")
	require.NoError(t, err)
	assert.Equal(t, l.Attrs().Index, again.Attrs().Index)
	f.allReach(a, b)
}

func TestMTUFollowsTheUnderlay(t *testing.T) {
	f := newFabric(t, 1)
	f.start(vxlan.Config{})
	n := f.nodes[0]
	for _, mtu := range []int{1400, 1500} {
		require.NoError(t, n.conn.SetMTU(byName("eth0"), mtu))
		n.eventually("new MTU", func() bool {
			l, err := n.conn.Link("cnikit.5000")
			return err == nil && l.Attrs().MTU == mtu-50
		})
		assert.Equal(t, mtu-50, n.backend.MTU())
	}
}
