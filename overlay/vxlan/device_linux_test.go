package vxlan_test

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"

	"github.com/cnikit/cnikit/overlay/vxlan"
)

// refusal waits until the device cannot be made and returns why.
func (n *node) refusal() error {
	n.t.Helper()
	var err error
	n.eventually("refusal", func() bool {
		for _, target := range n.engine.Status().Targets {
			if target.Name == "vxlan device" && len(target.Failing) > 0 {
				err = target.Failing[0].Err
			}
		}
		var field *vxlan.FieldError
		return errors.As(err, &field)
	})
	return err
}

// What is in the way is named with a way out, and left alone.
func TestWhatIsInTheWayIsNamed(t *testing.T) {
	for _, k := range []struct {
		name   string
		config vxlan.Config
		before func(t *testing.T, n *node)
		key    string
		words  []string
		after  func(t *testing.T, n *node)
	}{
		{"device with the VNI and port", vxlan.Config{}, func(t *testing.T, n *node) {
			require.NoError(t, n.conn.AddLink(&netlink.Vxlan{LinkAttrs: attrs("flannel.1"), VxlanId: 5000, Port: 4789}))
		}, "vni", []string{"vni=5000", "flannel.1", "port 4789", "use another VNI"}, func(t *testing.T, n *node) {
			require.NoError(t, n.conn.DelLink(byName("flannel.1")))
		}},
		{"link with the name", vxlan.Config{}, func(t *testing.T, n *node) {
			require.NoError(t, n.conn.AddLink(&netlink.Bridge{LinkAttrs: attrs("cnikit.5000")}))
		}, "device", []string{"device=cnikit.5000", "bridge link that is not ours", "use another name"}, func(t *testing.T, n *node) {
			require.NoError(t, n.conn.DelLink(byName("cnikit.5000")))
		}},
		{"foreign vxlan device with the name", vxlan.Config{}, func(t *testing.T, n *node) {
			require.NoError(t, n.conn.AddLink(&netlink.Vxlan{LinkAttrs: attrs("cnikit.5000"), VxlanId: 5000, Port: 4789}))
		}, "device", []string{"vxlan link that is not ours"}, func(t *testing.T, n *node) {
			require.NoError(t, n.conn.DelLink(byName("cnikit.5000")))
		}},
		{"device that takes the whole port", vxlan.Config{}, func(t *testing.T, n *node) {
			require.NoError(t, n.conn.AddLink(&netlink.Vxlan{LinkAttrs: attrs("cilium"), FlowBased: true, Port: 4789}))
			require.NoError(t, n.conn.SetUp(byName("cilium")))
		}, "port", []string{"port=4789", "cilium", "use another port"}, func(t *testing.T, n *node) {
			require.NoError(t, n.conn.DelLink(byName("cilium")))
		}},
		{"program that has the port", vxlan.Config{}, func(t *testing.T, n *node) {
			socket, err := listen(n.conn.NS(), netip.MustParseAddrPort("127.0.0.1:4789"))
			require.NoError(t, err)
			t.Cleanup(func() { _ = socket.Close() })
		}, "port", []string{"port=4789", "a program of this node"}, nil},
		{"MTU beyond the underlay", vxlan.Config{MTU: 1451}, func(*testing.T, *node) {}, "mtu",
			[]string{"mtu=1451", "eth0 has an MTU of 1500 and the tunnel adds 50", "use at most 1450"}, nil},
		{"no underlay address", vxlan.Config{}, func(t *testing.T, n *node) {
			require.NoError(t, n.conn.DelAddr(byName("eth0"), addr("192.0.2.1/24")))
		}, "underlay", []string{"underlay=192.0.2.1", "no link of this node"}, func(t *testing.T, n *node) {
			require.NoError(t, n.conn.ReplaceAddr(byName("eth0"), addr("192.0.2.1/24")))
		}},
	} {
		t.Run(k.name, func(t *testing.T) {
			f := newFabric(t, 1)
			n := f.nodes[0]
			require.NoError(t, n.conn.SetUp(byName("lo")))
			k.before(t, n)
			before := everything(t, n.conn)
			n.start(k.config)
			f.join(n)
			err := n.refusal()
			var field *vxlan.FieldError
			require.ErrorAs(t, err, &field)
			assert.Equal(t, k.key, field.Key)
			for _, words := range k.words {
				assert.ErrorContains(t, err, words)
			}
			if k.key != "port" { // there the device exists, down, and waits for the port
				assert.Equal(t, before, everything(t, n.conn), "nothing made, nothing removed")
			}
			if k.after == nil {
				return
			}
			k.after(t, n)
			n.settled()
			assert.Contains(t, n.state(), "alias \"cnikit vxlan cnikit.5000\"")
		})
	}
}

// An explicit MTU that no longer fits is reported, and the device not touched.
func TestUnderlayShrinksBelowTheConfiguredMTU(t *testing.T) {
	f := newFabric(t, 1)
	f.start(vxlan.Config{MTU: 1450})
	n := f.nodes[0]
	assert.Equal(t, 1450, n.backend.MTU())
	before := n.state()
	require.NoError(t, n.conn.SetMTU(byName("eth0"), 1400))
	assert.ErrorContains(t, n.refusal(), "use at most 1350")
	assert.Equal(t, before, n.state())
	assert.Zero(t, n.backend.MTU())
	require.NoError(t, n.conn.SetMTU(byName("eth0"), 1500))
	n.settled()
	assert.Equal(t, before, n.state())
}

// What a configuration before left goes, when it has the network's mark.
func TestEarlierConfigurationIsRemoved(t *testing.T) {
	f := newFabric(t, 2)
	f.start(vxlan.Config{VNI: 4000, Network: "pods"})
	for _, n := range f.nodes {
		n.stop()
		n.start(vxlan.Config{VNI: 5000, Network: "pods"})
	}
	f.join(f.nodes...)
	for _, n := range f.nodes {
		n.settled()
		n.eventually("removal", func() bool { return !strings.Contains(everything(t, n.conn), "cnikit.4000") })
	}
	f.allReach(f.nodes...)

	t.Run("another network's stays", func(t *testing.T) {
		n := f.nodes[0]
		second, err := vxlan.New(vxlan.Config{VNI: 6000, RouteProtocol: 156, NetNS: n.conn.NS().Path()})
		require.NoError(t, err)
		defer second.Close()
		require.NoError(t, second.Cleanup(t.Context()))
		assert.NotEqual(t, "no device\n", n.state())
	})
}

// An agent that is killed between creating and marking its device knows it again.
func TestDeviceWithoutMarkIsKnownByItsMAC(t *testing.T) {
	f := newFabric(t, 1)
	n := f.nodes[0]
	link := &netlink.Vxlan{LinkAttrs: attrs("cnikit.5000"), VxlanId: 5000, Port: 4789, SrcAddr: net.ParseIP("192.0.2.1")}
	link.HardwareAddr = n.peer.MAC.HardwareAddr()
	require.NoError(t, n.conn.AddLink(link))
	f.start(vxlan.Config{})
	assert.Contains(t, n.state(), `alias "cnikit vxlan cnikit.5000"`)
	after, err := n.conn.Link("cnikit.5000")
	require.NoError(t, err)
	assert.Equal(t, link.Index, after.Attrs().Index, "adopted, not made again")
}

// Whatever an earlier version or anybody else made of it.
func TestDeviceOfOursWithOtherSettingsIsPutRight(t *testing.T) {
	for name, change := range map[string]func(*netlink.Vxlan){
		"another VNI":  func(v *netlink.Vxlan) { v.VxlanId = 77 },
		"another port": func(v *netlink.Vxlan) { v.Port = 8472 },
		"a group":      func(v *netlink.Vxlan) { v.Group = net.ParseIP("239.1.1.1") },
		"external":     func(v *netlink.Vxlan) { v.FlowBased = true; v.SrcAddr = nil },
		"no local":     func(v *netlink.Vxlan) { v.SrcAddr = nil },
		"no underlay":  func(v *netlink.Vxlan) { v.VtepDevIndex = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFabric(t, 2)
			n := f.nodes[0]
			eth0, err := n.conn.Link("eth0")
			require.NoError(t, err)
			link := &netlink.Vxlan{LinkAttrs: attrs("cnikit.5000"), VxlanId: 5000, Port: 4789, SrcAddr: net.ParseIP("192.0.2.1"), VtepDevIndex: eth0.Attrs().Index}
			change(link)
			require.NoError(t, n.conn.AddLink(link))
			require.NoError(t, n.conn.SetAlias(link, "cnikit vxlan cnikit.5000"))
			f.start(vxlan.Config{})
			f.allReach(f.nodes...)
			after, err := n.conn.Link("cnikit.5000")
			require.NoError(t, err)
			assert.Equal(t, eth0.Attrs().Index, after.(*netlink.Vxlan).VtepDevIndex)
		})
	}
}

func TestSkipForwarding(t *testing.T) {
	f := newFabric(t, 1)
	f.start(vxlan.Config{SkipForwarding: true})
	assert.Equal(t, "0", sysctl(t, f.nodes[0].conn, "net/ipv4/ip_forward"))
}

// A node with one family only has nothing of the other.
func TestFamiliesAreIndependent(t *testing.T) {
	f := newFabric(t, 2)
	n := f.nodes[0]
	n.peer.PodCIDRs = n.peer.PodCIDRs[:1]
	f.start(vxlan.Config{})
	assert.NotContains(t, n.state(), "fd00")
	assert.Equal(t, "0", sysctl(t, n.conn, "net/ipv6/conf/all/forwarding"))
	assert.NotContains(t, f.nodes[1].state(), "route fd00")
	require.NoError(t, echo(n, f.nodes[1], 0))
}

// A family that the kernel refuses is missing, and says so; the other one works.
func TestRefusedFamilyLeavesTheOther(t *testing.T) {
	f := newFabric(t, 2)
	n := f.nodes[0]
	_, err := n.conn.SetSysctl("net/ipv6/conf/default/disable_ipv6", "1") // for the device to come
	require.NoError(t, err)
	for _, each := range f.nodes {
		each.start(vxlan.Config{})
	}
	f.join(f.nodes...)
	f.nodes[1].settled()
	n.eventually("the IPv4 route and the word on IPv6", func() bool {
		return strings.Contains(n.state(), "route 10.244.2.0/24") && strings.Contains(n.failing(), "fd00:10:244:1::/128")
	})
	require.NoError(t, echo(n, f.nodes[1], 0))
	essential := map[string]bool{}
	for _, target := range n.backend.Essential() {
		essential[target.Name()] = true
	}
	for _, s := range n.engine.Status().Targets {
		assert.True(t, s.Converged || !essential[s.Name], "%s does not wait for a family", s.Name)
	}
}
