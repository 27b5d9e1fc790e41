package vxlan_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnikit/cnikit/internal/nl"
	"github.com/cnikit/cnikit/internal/testenv"
	"github.com/cnikit/cnikit/overlay"
	"github.com/cnikit/cnikit/overlay/vxlan"
	"github.com/cnikit/cnikit/reconcile"
)

func TestPodsReachEachOther(t *testing.T) {
	f := newFabric(t, 3)
	f.start(vxlan.Config{})
	f.allReach(f.nodes...)
	a, b, c := f.nodes[0], f.nodes[1].peer.MAC.String(), f.nodes[2].peer.MAC.String()
	assert.Equal(t, `address 10.244.1.0/32
address fd00:10:244:1::/128
device vni 5000 port 4789 local 192.0.2.1 mac `+a.peer.MAC.String()+` mtu 1450 up alias "cnikit vxlan cnikit.5000" learning false
forward `+b+` 192.0.2.2
forward `+c+` 192.0.2.3
neighbour 10.244.2.0 `+b+`
neighbour 10.244.3.0 `+c+`
neighbour fd00:10:244:2:: `+b+`
neighbour fd00:10:244:3:: `+c+`
route 10.244.2.0/24 via 10.244.2.0 src 10.244.1.0 metric 28299876 on tunnel
route 10.244.3.0/24 via 10.244.3.0 src 10.244.1.0 metric 29964464 on tunnel
route fd00:10:244:2::/64 via fd00:10:244:2:: src fd00:10:244:1:: metric 1024 on tunnel
route fd00:10:244:3::/64 via fd00:10:244:3:: src fd00:10:244:1:: metric 1024 on tunnel
`, a.state())
	assert.Equal(t, underlayMTU-50, a.backend.MTU())
	assert.Equal(t, "1", sysctl(t, a.conn, "net/ipv4/ip_forward"))
	assert.Equal(t, "1", sysctl(t, a.conn, "net/ipv6/conf/all/forwarding"))
}

func sysctl(t *testing.T, c *nl.Conn, key string) string {
	t.Helper()
	value, err := c.Sysctl(key)
	require.NoError(t, err)
	return value
}

// With nothing to do, full looks write nothing, and nobody in the namespace sees a
// change.
func TestIdleRoundsWriteNothing(t *testing.T) {
	f := newFabric(t, 3)
	f.start(vxlan.Config{})
	f.allReach(f.nodes...)
	n := f.nodes[0]
	events, err := nl.Subscribe(n.conn.NS(), nl.LinkEvent, nl.AddrEvent, nl.RouteEvent, nl.RuleEvent, nl.NetconfEvent)
	require.NoError(t, err)
	defer events.Close()
	n.quiet()
	n.upToNow(events)
	writes := n.backend.Writes()
	for range 5 {
		asked := time.Now()
		n.engine.Trigger()
		n.eventually("a full look", func() bool { return n.lookedSince(asked) })
	}
	require.NoError(t, n.backend.SetTopology(f.topology(n, f.nodes...)), "the same topology again")
	n.settled()
	assert.Equal(t, writes, n.backend.Writes())
	assert.Empty(t, n.upToNow(events))
}

// A restarted agent finds everything as it should be and writes nothing, whether its
// engine has looked before the topology comes, or not.
func TestRestartWritesNothing(t *testing.T) {
	f := newFabric(t, 3)
	f.nodes[2].peer.Path = overlay.Direct
	f.start(vxlan.Config{})
	n := f.nodes[0]
	before, index := n.state(), n.index()
	for _, looked := range []bool{false, true} {
		n.stop()
		n.start(vxlan.Config{})
		if looked {
			n.eventually("a look", func() bool { return n.lookedSince(time.Time{}) })
		}
		require.NoError(t, n.backend.SetTopology(f.topology(n, f.nodes...)))
		n.settled()
		assert.Zero(t, n.backend.Writes(), "looked before: %v", looked)
	}
	assert.Equal(t, before, n.state())
	assert.Equal(t, index, n.index())
}

// lookedSince reports whether each target has been looked at after a time.
func (n *node) lookedSince(since time.Time) bool {
	return !slices.ContainsFunc(n.engine.Status().Targets, func(s reconcile.TargetStatus) bool { return !s.LastLook.After(since) && len(s.Waiting) == 0 })
}

// A look may miss what is there; making it again must not harm.
func TestApplyOfWhatExistsChangesNothing(t *testing.T) {
	f := newFabric(t, 3)
	f.start(vxlan.Config{})
	n := f.nodes[0]
	before, index := n.state(), n.index()
	require.NoError(t, n.backend.ApplyBlindly(t.Context(), f.topology(n, f.nodes...)))
	assert.Equal(t, before, n.state())
	assert.Equal(t, index, n.index(), "the device must survive")
}

// The plan names each stray object; entries that the kernel keeps for itself are none.
func TestPlan(t *testing.T) {
	f := newFabric(t, 2)
	f.start(vxlan.Config{})
	n := f.nodes[0]
	n.stop()
	index, mac := n.index(), net.HardwareAddr{2, 0, 0, 0, 0, 0x99}
	n.resolve("10.200.0.1")
	n.start(vxlan.Config{})
	require.NoError(t, n.backend.SetTopology(f.topology(n, f.nodes...)))
	n.settled()
	assert.Zero(t, n.backend.Writes(), "the failing resolution is the kernel's")
	n.stop()

	for _, to := range []string{"192.0.2.77", "192.0.2.78"} {
		require.NoError(t, n.run(testenv.Tool(t, "bridge"), "fdb", "append", "00:00:00:00:00:00", "dev", "cnikit.5000", "dst", to))
	}
	require.NoError(t, n.conn.SetNeighbor(&netlink.Neigh{LinkIndex: index, IP: net.ParseIP("10.244.9.0"), HardwareAddr: mac, State: netlink.NUD_REACHABLE}))
	require.NoError(t, n.conn.SetMTU(byName("cnikit.5000"), 1300))
	require.NoError(t, n.conn.DelRoute(&netlink.Route{Dst: addr("10.244.2.0/24").IPNet, Protocol: 155}))
	plan, err := n.engine.Plan(t.Context())
	require.NoError(t, err)
	assert.Equal(t, `vxlan device (phase 0):
  ~ cnikit.5000: vni 5000 port 4789 local 192.0.2.1 mac `+n.peer.MAC.String()+` mtu 1300 => cnikit.5000: vni 5000 port 4789 local 192.0.2.1 mac `+n.peer.MAC.String()+` mtu auto
vxlan sysctls (phase 0): nothing to do
vxlan addresses (phase 1), after vxlan device: nothing to do
vxlan forwarding entries (phase 2), after vxlan device:
  - 00:00:00:00:00:00 at 192.0.2.77: at 192.0.2.77
  - 00:00:00:00:00:00 at 192.0.2.78: at 192.0.2.78
vxlan neighbours (phase 3), after vxlan device:
  - 10.244.9.0: at 02:00:00:00:00:99 dynamic
vxlan routes (phase 4), after vxlan device:
  + 10.244.2.0/24: tunnel via 10.244.2.0 src 10.244.1.0
`, plan.String())
}

// resolve makes the kernel look for a neighbour on the device that nobody knows.
func (n *node) resolve(neighbour string) {
	n.t.Helper()
	gateway := netip.MustParseAddr(neighbour)
	route := &netlink.Route{Dst: addr(netip.PrefixFrom(gateway, 24).Masked().String()).IPNet, Gw: gateway.AsSlice(), LinkIndex: n.index(), Flags: unix.RTNH_F_ONLINK}
	require.NoError(n.t, n.conn.AddRoute(route))
	require.NoError(n.t, n.conn.NS().Do(func() error {
		conn, err := net.Dial("udp", net.JoinHostPort(neighbour, "9"))
		if err != nil {
			return err
		}
		_, err = conn.Write([]byte("anybody there?"))
		return errors.Join(err, conn.Close())
	}))
	entries, err := n.conn.Neighbors(n.index(), netlink.FAMILY_V4)
	require.NoError(n.t, err)
	require.True(n.t, slices.ContainsFunc(entries, func(e netlink.Neigh) bool {
		return e.IP.Equal(gateway.AsSlice()) && e.State&(netlink.NUD_INCOMPLETE|netlink.NUD_FAILED) != 0
	}), "%v", entries)
}

// A watch that starts late makes up for what it has not seen.
func TestWatchBeginsWithALook(t *testing.T) {
	f := newFabric(t, 1)
	f.start(vxlan.Config{})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	var first []reconcile.Target
	require.NoError(t, f.nodes[0].backend.Watch(ctx, func(targets ...reconcile.Target) { first = targets; cancel() }))
	assert.Equal(t, f.nodes[0].backend.Targets(), first)
}

func TestPeerComesAndGoes(t *testing.T) {
	f := newFabric(t, 3)
	f.start(vxlan.Config{})
	a, b, c := f.nodes[0], f.nodes[1], f.nodes[2]
	full := a.state()

	f.join(a, b)
	for _, n := range f.nodes {
		n.settled()
	}
	f.allReach(a, b)
	assert.NotContains(t, a.state(), c.peer.MAC.String())
	assert.NotContains(t, a.state(), "10.244.3.")
	assert.NotContains(t, a.state(), "fd00:10:244:3:")

	f.join(f.nodes...)
	for _, n := range f.nodes {
		n.settled()
	}
	assert.Equal(t, full, a.state())
	f.allReach(f.nodes...)

	t.Run("own node unknown leaves everything", func(t *testing.T) {
		require.NoError(t, a.backend.SetTopology(overlay.Topology{Peers: []overlay.Peer{b.peer, c.peer}}))
		a.settled()
		assert.Equal(t, full, a.state())
	})
}

func TestNothingIsDoneBeforeTheFirstTopology(t *testing.T) {
	f := newFabric(t, 1)
	n := f.nodes[0]
	n.start(vxlan.Config{})
	require.NoError(t, n.backend.SetTopology(overlay.Topology{}))
	n.engine.Trigger()
	plan, err := n.engine.Plan(t.Context())
	require.NoError(t, err)
	assert.True(t, plan.Empty(), "%v", plan)
	assert.Zero(t, n.backend.Writes())
	assert.Zero(t, n.backend.MTU())
}

// A Pod CIDR that moves to another node is one replacement: at no time is there no
// route.
func TestMoveOfAPodCIDRIsAtomic(t *testing.T) {
	f := newFabric(t, 3)
	f.start(vxlan.Config{})
	n := f.nodes[0]
	events, err := nl.Subscribe(n.conn.NS(), nl.LinkEvent, nl.RouteEvent)
	require.NoError(t, err)
	defer events.Close()
	moved, heir := f.nodes[1].peer, f.nodes[2].peer
	moved.Underlay, moved.MAC, moved.UID = heir.Underlay, heir.MAC, heir.UID
	require.NoError(t, n.backend.SetTopology(overlay.Topology{Self: &n.peer, Peers: []overlay.Peer{moved}}))
	n.settled()
	assert.Contains(t, n.state(), "neighbour 10.244.2.0 "+heir.MAC.String())

	direct := moved
	direct.Path = overlay.Direct
	require.NoError(t, n.backend.SetTopology(overlay.Topology{Self: &n.peer, Peers: []overlay.Peer{direct, heir}}))
	n.settled()
	assert.Contains(t, n.state(), "route 10.244.2.0/24 via 192.0.2.3 src 10.244.1.0 metric 28299876 on another link")
	gone := slices.DeleteFunc(n.upToNow(events), func(e nl.Event) bool { return !e.Gone })
	assert.Len(t, gone, 2, "only the two routes of node3 that went for a while")
}

// On a shared link IPv4 can go without the tunnel.
func TestDirectPath(t *testing.T) {
	f := newFabric(t, 2)
	for _, n := range f.nodes {
		n.peer.Path = overlay.Direct
	}
	f.start(vxlan.Config{})
	f.allReach(f.nodes...)
	state := f.nodes[0].state()
	assert.Contains(t, state, "route 10.244.2.0/24 via 192.0.2.2 src 10.244.1.0 metric 28299876 on another link")
	assert.Contains(t, state, "route fd00:10:244:2::/64 via fd00:10:244:2:: ")
	assert.NotContains(t, state, "neighbour 10.244.2.0")

	t.Run("comes back after the underlay was down", func(t *testing.T) {
		n := f.nodes[0]
		require.NoError(t, n.conn.SetDown(byName("eth0")))
		require.NoError(t, n.conn.SetUp(byName("eth0")))
		n.eventually("direct route", func() bool { return n.state() == state })
		f.allReach(f.nodes...)
	})
}

// One impossible peer is named, and the others work.
func TestMalformedPeerDoesNotStopTheOthers(t *testing.T) {
	f := newFabric(t, 2)
	for _, n := range f.nodes {
		n.start(vxlan.Config{})
	}
	a, b := f.nodes[0], f.nodes[1]
	bad := peerNumber(7)
	bad.Name, bad.MAC = "broken", overlay.MAC{}
	refused := peerNumber(8) // the kernel's to refuse: its Pod CIDR is a local address here
	require.NoError(t, a.conn.AddRoute(&netlink.Route{Dst: addr("10.244.8.0/24").IPNet, Type: 7 /* unreachable */, Priority: vxlan.Metric(refused.PodCIDRs[0])}))
	err := a.backend.SetTopology(overlay.Topology{Self: &a.peer, Peers: []overlay.Peer{b.peer, bad, refused}})
	require.ErrorContains(t, err, `peer "broken": tunnel MAC address 00:00:00:00:00:00`)
	require.NoError(t, b.backend.SetTopology(f.topology(b, a)))
	b.settled()
	a.eventually("the good peer's routes", func() bool { return strings.Contains(a.state(), "route fd00:10:244:2::/64") })
	f.allReach(a, b)

	status := a.engine.Status()
	for _, target := range status.Targets {
		if target.Name != "vxlan routes" {
			assert.True(t, target.Converged, target.Name)
			continue
		}
		require.Len(t, target.Failing, 1)
		assert.Equal(t, "10.244.8.0/24", target.Failing[0].Key)
		assert.ErrorContains(t, target.Failing[0].Err, "a route that is not ours")
	}
	for _, target := range a.backend.Essential() {
		assert.NotEqual(t, "vxlan routes", target.Name())
	}
}

func TestCleanup(t *testing.T) {
	f := newFabric(t, 2)
	n := f.nodes[0]
	f.nodes[1].peer.Path = overlay.Direct
	before := everything(t, n.conn)
	require.NoError(t, n.conn.AddRoute(&netlink.Route{Dst: addr("10.99.0.0/24").IPNet, Gw: netip.MustParseAddr("192.0.2.2").AsSlice(), Protocol: 155, Priority: 5}))
	f.start(vxlan.Config{})
	require.NotEqual(t, before, everything(t, n.conn))
	n.stop()
	left := netip.MustParsePrefix("10.244.66.0/24") // a direct route that did not go with our address
	require.NoError(t, n.conn.AddRoute(&netlink.Route{Dst: addr(left.String()).IPNet, Gw: netip.MustParseAddr("192.0.2.2").AsSlice(), Protocol: 155, Priority: vxlan.Metric(left)}))

	other, err := vxlan.New(vxlan.Config{NetNS: n.conn.NS().Path()})
	require.NoError(t, err)
	defer other.Close()
	require.NoError(t, other.Cleanup(t.Context()))
	require.NoError(t, other.Cleanup(t.Context()), "idempotent")
	after := everything(t, n.conn)
	assert.Contains(t, after, "10.99.0.0/24", "a route of our protocol that is not ours stays")
	require.NoError(t, n.conn.DelRoute(&netlink.Route{Dst: addr("10.99.0.0/24").IPNet, Protocol: 155}))
	assert.Equal(t, before, everything(t, n.conn))

	t.Run("a device of our name without our mark is named, and stays", func(t *testing.T) {
		require.NoError(t, n.conn.AddLink(&netlink.Vxlan{LinkAttrs: attrs("cnikit.5000"), VxlanId: 5000, Port: 4789}))
		require.ErrorContains(t, other.Cleanup(t.Context()), "device cnikit.5000: left alone, it has our name but not our mark")
		_, err := n.conn.Link("cnikit.5000")
		require.NoError(t, err)
	})
	t.Run("ended context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		require.ErrorIs(t, other.Cleanup(ctx), context.Canceled)
	})
}

// everything lists links and routes of a namespace.
func everything(t *testing.T, c *nl.Conn) string {
	t.Helper()
	var b strings.Builder
	links, err := c.Links()
	require.NoError(t, err)
	for _, l := range links {
		b.WriteString(l.Attrs().Name + " " + l.Type() + "\n")
	}
	list, err := c.Routes(&netlink.Route{}, netlink.RT_FILTER_TABLE, netlink.FAMILY_ALL)
	require.NoError(t, err)
	for _, r := range list {
		// Multicast, local and link-local routes of IPv6 come and go late.
		if r.Family == netlink.FAMILY_V4 || r.Type == 1 && r.Table == 254 && !r.Dst.IP.IsLinkLocalUnicast() {
			b.WriteString(r.String() + "\n")
		}
	}
	return b.String()
}

func TestNamespaceThatIsNone(t *testing.T) {
	b, err := vxlan.New(vxlan.Config{NetNS: "/proc/self/status"})
	require.NoError(t, err, "no I/O yet")
	assert.Zero(t, b.MTU())
	require.Error(t, b.Cleanup(t.Context()))
	err = b.Watch(t.Context(), nil)
	require.Error(t, err)
	assert.ErrorContains(t, err, "/proc/self/status")
	assert.False(t, errors.Is(err, errors.ErrUnsupported))
	require.NoError(t, b.Close())
}
