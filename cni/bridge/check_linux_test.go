package bridge_test

import (
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/cni/netif"
)

func parse(list ...string) []netip.Prefix {
	var parsed []netip.Prefix
	for _, s := range list {
		parsed = append(parsed, netip.MustParsePrefix(s))
	}
	return parsed
}

func TestCheck(t *testing.T) {
	host := netif.HostName("c1", "eth0")
	for _, test := range []struct {
		rule  string
		act   func(t *testing.T, n *node, pod *space)
		words []string // of the error; nil: all is well
	}{
		{rule: "right after ADD", act: func(*testing.T, *node, *space) {}},
		{rule: "tolerates other MAC addresses", act: func(t *testing.T, n *node, pod *space) {
			require.NoError(t, n.nl.SetMAC(n.link(t, host), net.HardwareAddr{2, 0, 0, 0, 0, 1}))
			require.NoError(t, n.nl.SetMAC(n.link(t, "cni0"), net.HardwareAddr{2, 0, 0, 0, 0, 2}))
			require.NoError(t, pod.nl.SetMAC(pod.link(t, "eth0"), net.HardwareAddr{2, 0, 0, 0, 0, 3}))
		}},
		{rule: "address gone", act: func(t *testing.T, _ *node, pod *space) {
			require.NoError(t, pod.nl.DelAddr(pod.link(t, "eth0"), &netlink.Addr{IPNet: ipNet("10.1.0.2/24")}))
		}, words: []string{"10.1.0.2/24"}},
		{rule: "route gone", act: func(t *testing.T, _ *node, pod *space) {
			require.NoError(t, pod.nl.DelRoute(&netlink.Route{Dst: ipNet("::/0"), LinkIndex: pod.link(t, "eth0").Attrs().Index}))
		}, words: []string{"::/0"}},
		{rule: "interface gone", act: func(t *testing.T, n *node, _ *space) {
			require.NoError(t, n.nl.DelLink(n.link(t, host)))
		}, words: []string{"eth0"}},
		{rule: "bridge gone", act: func(t *testing.T, n *node, _ *space) {
			require.NoError(t, n.nl.DelLink(n.link(t, "cni0")))
		}, words: []string{"cni0"}},
		{rule: "bridge switched off", act: func(t *testing.T, n *node, _ *space) {
			require.NoError(t, n.nl.SetDown(n.link(t, "cni0")))
		}, words: []string{"cni0", "switched off"}},
		{rule: "bridge is another kind of link", act: func(t *testing.T, n *node, _ *space) {
			require.NoError(t, n.nl.DelLink(n.link(t, "cni0")))
			n.addLink(t, "cni0")
		}, words: []string{"cni0", "veth"}},
		{rule: "no port of the bridge", act: func(t *testing.T, n *node, _ *space) {
			require.NoError(t, n.nl.SetNoMaster(n.link(t, host)))
		}, words: []string{host, "no port"}},
		{rule: "port of another bridge", act: func(t *testing.T, n *node, _ *space) {
			require.NoError(t, n.nl.SetMaster(n.link(t, host), n.addBridge(t, "other")))
		}, words: []string{host, "no port"}},
		{rule: "hairpin mode changed", act: func(t *testing.T, n *node, _ *space) {
			require.NoError(t, n.nl.SetHairpin(n.link(t, host), false))
		}, words: []string{"hairpin", "false", "true"}},
		{rule: "gateway address gone", act: func(t *testing.T, n *node, _ *space) {
			require.NoError(t, n.nl.DelAddr(n.link(t, "cni0"), &netlink.Addr{IPNet: ipNet("fd00:1::1/64")}))
		}, words: []string{"cni0", "fd00:1::1/64"}},
		{rule: "the node's end is renamed", act: func(t *testing.T, n *node, _ *space) {
			require.NoError(t, n.nl.SetDown(n.link(t, host)))
			require.NoError(t, n.nl.SetName(n.link(t, host), "renamed"))
			require.NoError(t, n.nl.SetUp(n.link(t, "renamed")))
		}, words: []string{host}},
		{rule: "lease gone", act: func(t *testing.T, n *node, _ *space) {
			require.NoError(t, n.ipam.del(t.Context(), &fakeRequest{ContainerID: "c1", IfName: "eth0"}))
		}, words: []string{"no lease"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			n, pod := newNode(t), newSpace(t, "c1")
			c := config("hairpinMode", true)
			result := n.mustAdd(t, pod, "eth0", c)
			test.act(t, n, pod)
			err := n.check(pod, "eth0", c, result)
			if test.words == nil {
				require.NoError(t, err)
			}
			for _, words := range test.words {
				require.ErrorContains(t, err, words)
			}
		})
	}
	t.Run("the node's end belongs to another container", func(t *testing.T) {
		n, pod := newNode(t), newSpace(t, "c1")
		result := n.mustAdd(t, pod, "eth0", config())
		require.NoError(t, n.nl.SetDown(n.link(t, host)))
		require.NoError(t, n.nl.SetName(n.link(t, host), "renamed"))
		require.NoError(t, n.nl.SetUp(n.link(t, "renamed")))
		n.mustAdd(t, newSpace(t, "c1"), "eth0", config())
		require.ErrorContains(t, n.check(pod, "eth0", config(), result), "not the other end")
	})
	t.Run("tolerates what a later plugin added to the result", func(t *testing.T) {
		n, pod := newNode(t), newSpace(t, "c1")
		result := n.mustAdd(t, pod, "eth0", config())
		result.Interfaces = append(result.Interfaces, cni.Interface{Name: "later0", Sandbox: result.Interfaces[len(result.Interfaces)-1].Sandbox})
		require.NoError(t, n.check(pod, "eth0", config(), result))
	})
	t.Run("without IPAM", func(t *testing.T) {
		n, pod := newNode(t), newSpace(t, "c1")
		c := config("ipam", nil, "isDefaultGateway", nil)
		require.NoError(t, n.check(pod, "eth0", c, n.mustAdd(t, pod, "eth0", c)))
	})
}

func TestStatus(t *testing.T) {
	status := func(n *node, config map[string]any) error {
		_, err := n.call(t.Context(), cni.Invocation{Command: cni.CommandStatus}, config)
		return err
	}
	t.Run("ready", func(t *testing.T) {
		n := newNode(t)
		require.NoError(t, status(n, config()))
		require.Nil(t, n.link(t, "cni0"), "STATUS makes nothing")
		n.addBridge(t, "cni0")
		require.NoError(t, status(n, config()))
		require.NoError(t, status(n, config("ipam", nil, "isDefaultGateway", nil)))
	})
	t.Run("bridge is none", func(t *testing.T) {
		n := newNode(t)
		n.addLink(t, "cni0")
		requireCode(t, status(n, config()), cni.CodeNotAvailable, `bridge="cni0"`, "veth")
	})
	t.Run("bridge with a spanning tree", func(t *testing.T) {
		n := newNode(t)
		addSpanningTree(t, n, nil)
		requireCode(t, status(n, config()), cni.CodeNotAvailable, `bridge="cni0"`, "spanning tree")
	})
	t.Run("passes on what the IPAM plugin says", func(t *testing.T) {
		n := newNode(t)
		n.ipam.fail = cni.Errorf(cni.CodeLimitedConnectivity, "no addresses")
		requireCode(t, status(n, config()), cni.CodeLimitedConnectivity, "no addresses")
	})
	t.Run("bad configuration", func(t *testing.T) {
		requireCode(t, status(newNode(t), config("mtu", -1)), cni.CodeInvalidConfig, "mtu=-1")
	})
}
