package vxlan

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/overlay"
)

func testPeer(n int) overlay.Peer {
	return overlay.Peer{
		Name: fmt.Sprintf("node%d", n), MAC: overlay.MAC{2, 0, 0, 0, 0, byte(n)},
		Underlay: netip.AddrFrom4([4]byte{192, 0, 2, byte(n)}),
		PodCIDRs: []netip.Prefix{
			netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 244, byte(n), 0}), 24),
			netip.MustParsePrefix(fmt.Sprintf("fd00:10:244:%x::/64", n)),
		},
	}
}

func cidrs(list ...string) []netip.Prefix {
	var all []netip.Prefix
	for _, s := range list {
		all = append(all, netip.MustParsePrefix(s))
	}
	return all
}

func TestDesire(t *testing.T) {
	c := Config{}.withDefaults()
	d, err := desire(c, testPeer(1), []overlay.Peer{testPeer(2)})
	require.NoError(t, err)
	v4, v6 := netip.MustParsePrefix("10.244.2.0/24"), netip.MustParsePrefix("fd00:10:244:2::/64")
	assert.Equal(t, desired{
		devices: map[string]device{"cnikit.5000": {VNI: 5000, Port: 4789, Local: netip.MustParseAddr("192.0.2.1"), MAC: overlay.MAC{2, 0, 0, 0, 0, 1}}},
		addresses: map[netip.Prefix]address{
			netip.MustParsePrefix("10.244.1.0/32"):       {},
			netip.MustParsePrefix("fd00:10:244:1::/128"): {},
		},
		sysctls:   map[string]string{"net/ipv4/ip_forward": "1", "net/ipv6/conf/all/forwarding": "1"},
		neighbors: map[netip.Addr]neighbor{v4.Addr(): {MAC: overlay.MAC{2, 0, 0, 0, 0, 2}}, v6.Addr(): {MAC: overlay.MAC{2, 0, 0, 0, 0, 2}}},
		fdb:       map[fdbKey]fdbEntry{{MAC: overlay.MAC{2, 0, 0, 0, 0, 2}}: {Dst: netip.MustParseAddr("192.0.2.2")}},
		routes: map[routeKey]route{
			{Prefix: v4, Metric: Metric(v4)}: {Via: v4.Addr(), Src: netip.MustParseAddr("10.244.1.0"), Path: overlay.Tunnel},
			{Prefix: v6, Metric: 1024}:       {Via: v6.Addr(), Src: netip.MustParseAddr("fd00:10:244:1::"), Path: overlay.Tunnel},
		},
	}, d)
}

// Each refused peer is named with the reason, and the good one next to it stays.
func TestDesireIsolatesBadPeers(t *testing.T) {
	for name, k := range map[string]struct {
		spoil func(p *overlay.Peer)
		words string
	}{
		"no underlay":       {func(p *overlay.Peer) { p.Underlay = netip.Addr{} }, "underlay address invalid IP: not IPv4"},
		"ipv6 underlay":     {func(p *overlay.Peer) { p.Underlay = netip.MustParseAddr("fd00::1") }, "not IPv4"},
		"our underlay":      {func(p *overlay.Peer) { p.Underlay = netip.MustParseAddr("192.0.2.1") }, "it is our own; give each node its own"},
		"no MAC":            {func(p *overlay.Peer) { p.MAC = overlay.MAC{} }, "not a unicast address"},
		"group MAC":         {func(p *overlay.Peer) { p.MAC[0] |= 1 }, "not a unicast address"},
		"our MAC":           {func(p *overlay.Peer) { p.MAC = overlay.MAC{2, 0, 0, 0, 0, 1} }, "different UIDs"},
		"another's MAC":     {func(p *overlay.Peer) { p.MAC = overlay.MAC{2, 0, 0, 0, 0, 2} }, "the peer at 192.0.2.2 has it"},
		"our pod CIDR":      {func(p *overlay.Peer) { p.PodCIDRs = cidrs("10.244.1.0/24") }, "pod CIDR 10.244.1.0/24: another node has it"},
		"another's CIDR":    {func(p *overlay.Peer) { p.PodCIDRs = cidrs("10.244.2.0/24") }, "another node has it"},
		"another's gateway": {func(p *overlay.Peer) { p.PodCIDRs = cidrs("10.244.2.0/23") }, "another node has it"},
		"host bits":         {func(p *overlay.Peer) { p.PodCIDRs = cidrs("10.244.9.1/24") }, "not a network"},
		"zero CIDR":         {func(p *overlay.Peer) { p.PodCIDRs = []netip.Prefix{{}} }, "not a network"},
	} {
		t.Run(name, func(t *testing.T) {
			bad := testPeer(9)
			k.spoil(&bad)
			d, err := desire(Config{}.withDefaults(), testPeer(1), []overlay.Peer{testPeer(2), bad, testPeer(3)})
			require.ErrorContains(t, err, `peer "node9": `)
			assert.ErrorContains(t, err, k.words)
			without, err := desire(Config{}.withDefaults(), testPeer(1), []overlay.Peer{testPeer(2), testPeer(3)})
			require.NoError(t, err)
			assert.Equal(t, without, d)
		})
	}
}

// One bad Pod CIDR does not cost a peer the others.
func TestDesireKeepsTheGoodCIDRsOfAPeer(t *testing.T) {
	p := testPeer(9)
	p.PodCIDRs = cidrs("10.244.2.0/24", "10.244.9.0/24")
	d, err := desire(Config{}.withDefaults(), testPeer(1), []overlay.Peer{testPeer(2), p})
	require.ErrorContains(t, err, "10.244.2.0/24")
	assert.Contains(t, d.routes, routeKey{Prefix: p.PodCIDRs[1], Metric: Metric(p.PodCIDRs[1])})
	assert.Equal(t, overlay.MAC{2, 0, 0, 0, 0, 2}, d.neighbors[netip.MustParseAddr("10.244.2.0")].MAC)
}

func TestDesireSkipsFamiliesWithoutPodsHere(t *testing.T) {
	self := testPeer(1)
	self.PodCIDRs = self.PodCIDRs[1:]
	d, err := desire(Config{}.withDefaults(), self, []overlay.Peer{testPeer(2)})
	require.NoError(t, err)
	assert.Len(t, d.routes, 1)
	assert.Len(t, d.neighbors, 1)
	assert.Equal(t, map[string]string{"net/ipv6/conf/all/forwarding": "1"}, d.sysctls)
}

func TestDirectPeersNeedNoTunnelForIPv4(t *testing.T) {
	p := testPeer(2)
	p.Path, p.PodCIDRs = overlay.Direct, p.PodCIDRs[:1]
	d, err := desire(Config{SkipForwarding: true}.withDefaults(), testPeer(1), []overlay.Peer{p})
	require.NoError(t, err)
	assert.Empty(t, d.neighbors)
	assert.Empty(t, d.fdb)
	assert.Empty(t, d.sysctls)
	key := routeKey{Prefix: p.PodCIDRs[0], Metric: Metric(p.PodCIDRs[0])}
	assert.Equal(t, route{Via: p.Underlay, Src: netip.MustParseAddr("10.244.1.0"), Path: overlay.Direct}, d.routes[key])
}

func TestSetTopologyRefusesABadSelf(t *testing.T) {
	for name, spoil := range map[string]func(p *overlay.Peer){
		"underlay=fd00::1":      func(p *overlay.Peer) { p.Underlay = netip.MustParseAddr("fd00::1") },
		"mac=00:00:00:00:00:00": func(p *overlay.Peer) { p.MAC = overlay.MAC{} },
	} {
		b, err := New(Config{})
		require.NoError(t, err)
		self := testPeer(1)
		spoil(&self)
		err = b.SetTopology(overlay.Topology{Self: &self})
		require.ErrorContains(t, err, `own node "node1": `+name)
		for _, target := range []interface{ Synced() bool }{b.devices, b.routes, b.fdb, b.neighbors, b.addresses, b.sysctls} {
			assert.False(t, target.Synced())
		}
	}
}

func TestStateIsPrinted(t *testing.T) {
	d := device{VNI: 5000, Port: 4789, Local: netip.MustParseAddr("192.0.2.1"), MAC: overlay.MAC{2, 0, 0, 0, 0, 1}}
	assert.Equal(t, "vni 5000 port 4789 local 192.0.2.1 mac 02:00:00:00:00:01 mtu auto", d.String())
	d.MTU, d.Underlay, d.Learning, d.Down, d.NoARP, d.Unmarked, d.LinkLocal, d.Odd = 1300, "eth1", true, true, true, true, true, "ttl"
	assert.Equal(t, "vni 5000 port 4789 local 192.0.2.1 mac 02:00:00:00:00:01 mtu 1300 dev eth1 learning down noarp unmarked link-local ttl", d.String())
	p := netip.MustParsePrefix("10.1.2.0/24")
	assert.Equal(t, "10.1.2.0/24", routeKey{Prefix: p, Metric: Metric(p)}.String())
	assert.Equal(t, "10.1.2.0/24 metric 5", routeKey{Prefix: p, Metric: 5}.String())
	assert.Equal(t, "10.1.2.0/24 metric 5 tos 8", routeKey{Prefix: p, Metric: 5, TOS: 8}.String())
	assert.Equal(t, "tunnel via 10.1.2.0 src 10.1.1.0 twice", route{Via: p.Addr(), Src: netip.MustParseAddr("10.1.1.0"), Odd: "twice"}.String())
	assert.Equal(t, "00:00:00:00:00:00 at 192.0.2.1", fdbKey{Group: d.Local}.String())
	assert.Equal(t, "02:00:00:00:00:01", fdbKey{MAC: d.MAC}.String())
	assert.Equal(t, "at 192.0.2.1 dynamic vni 7", fdbEntry{Dst: d.Local, Dynamic: true, VNI: 7}.String())
	assert.Equal(t, "at 02:00:00:00:00:01 dynamic", neighbor{MAC: d.MAC, Dynamic: true}.String())
	assert.Equal(t, "present but unusable", address{Unusable: true}.String())
}
