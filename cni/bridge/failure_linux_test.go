package bridge_test

import (
	"context"
	"net"
	"net/netip"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/cni/bridge"
	"github.com/cnikit/cnikit/cni/netif"
	"github.com/cnikit/cnikit/internal/testenv"
)

func ipNet(s string) *net.IPNet {
	p := netip.MustParsePrefix(s)
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// TestFailedAdd compares both namespaces before and after, and the leases.
func TestFailedAdd(t *testing.T) {
	for _, test := range []struct {
		rule   string
		before func(t *testing.T, n *node, pod *space)
		config map[string]any
		code   cni.Code
		words  []string
	}{
		{rule: "addresses exhausted", before: func(_ *testing.T, n *node, _ *space) {
			n.ipam.full = cni.Errorf(cni.CodeTryAgain, "no address left in 10.1.0.0/24")
		}, config: config(), code: cni.CodeTryAgain, words: []string{"no address left"}},
		{rule: "IPAM plugin missing", config: config("ipam", map[string]any{"type": "none"}), code: cni.CodeInvalidConfig, words: []string{"none"}},
		{rule: "IPAM plugin gives no address", before: func(_ *testing.T, n *node, _ *space) { n.ipam.subnets = nil },
			config: config(), code: cni.CodeInvalidConfig, words: []string{"ipam.type", "no address"}},
		{rule: "gateway outside the subnet", before: func(_ *testing.T, n *node, _ *space) {
			n.ipam.answer = func(r *cni.Result) { r.IPs[0].Gateway = netip.MustParseAddr("192.0.2.1") }
		}, config: config(), code: cni.CodeInvalidConfig, words: []string{"192.0.2.1", "outside the subnet", "isDefaultGateway"}},
		{rule: "gateway is the container's", before: func(_ *testing.T, n *node, _ *space) {
			n.ipam.answer = func(r *cni.Result) { r.IPs[1].Gateway = r.IPs[1].Address.Addr() }
		}, config: config(), code: cni.CodeInvalidConfig, words: []string{"own address"}},
		{rule: "gateway conflicts with an address of the bridge", before: func(t *testing.T, n *node, _ *space) {
			n.addBridge(t, "cni0", "10.77.0.1/16")
		}, config: config(), code: cni.CodeInvalidConfig, words: []string{`bridge="cni0"`, "10.77.0.1/16", "10.1.0.1/24", "forceAddress"}},
		{rule: "conflict in the second family", before: func(t *testing.T, n *node, _ *space) {
			n.addBridge(t, "cni0", "fd00:1::99/48")
		}, config: config(), code: cni.CodeInvalidConfig, words: []string{"fd00:1::99/48"}},
		{rule: "replaced addresses come back", before: func(t *testing.T, n *node, pod *space) {
			n.addBridge(t, "cni0", "10.77.0.1/16", "10.1.0.99/24")
			occupyDefault(t, pod)
		}, config: config("forceAddress", true), code: cni.CodeInvalidConfig, words: []string{"isDefaultGateway=true", "through other"}},
		{rule: "interface exists", before: func(t *testing.T, _ *node, pod *space) { pod.addLink(t, "eth0") },
			config: config(), code: cni.CodeInvalidEnvironment, words: []string{"CNI_IFNAME=eth0"}},
		{rule: "bridge is none", before: func(t *testing.T, n *node, _ *space) { n.addLink(t, "cni0") },
			config: config(), code: cni.CodeInvalidConfig, words: []string{`bridge="cni0"`, "veth"}},
		{rule: "bridge with a spanning tree", before: addSpanningTree,
			config: config(), code: cni.CodeInvalidConfig, words: []string{`bridge="cni0"`, "spanning tree", "stp_state 0"}},
		{rule: "bridge name", config: config("bridge", "a/b"), code: cni.CodeInvalidConfig, words: []string{`bridge="a/b"`, "'/'", "use up to 15"}},
		{rule: "bridge name is a template", config: config("bridge", "br%d"), code: cni.CodeInvalidConfig, words: []string{"'%'"}},
		{rule: "mtu too small", config: config("mtu", 67), code: cni.CodeInvalidConfig, words: []string{"mtu=67", "68"}},
		{rule: "mtu too large", config: config("mtu", 65536), code: cni.CodeInvalidConfig, words: []string{"mtu=65536", "65535"}},
		{rule: "mtu too small for IPv6", config: config("mtu", 1279), code: cni.CodeInvalidConfig, words: []string{"mtu=1279", "1280", "fd00:1::2"}},
		{rule: "mtu beyond the bridge", before: func(t *testing.T, n *node, _ *space) {
			require.NoError(t, n.nl.SetMTU(n.addBridge(t, "cni0"), 1400))
		}, config: config("mtu", 1401), code: cni.CodeInvalidConfig, words: []string{"mtu=1401", "cni0", "at most 1400"}},
		{rule: "mtu beyond an uplink", before: func(t *testing.T, n *node, pod *space) {
			other := newSpace(t, "other")
			n.mustAdd(t, other, "eth0", config()) // makes the bridge ours
			require.NoError(t, n.del(other, "eth0", config()))
			n.addUplink(t, "uplink", "cni0", 1450)
		}, config: config("mtu", 1451), code: cni.CodeInvalidConfig, words: []string{"mtu=1451", "uplink", "1450"}},
		{rule: "bridge too narrow for IPv6", before: func(t *testing.T, n *node, _ *space) {
			require.NoError(t, n.nl.SetMTU(n.addBridge(t, "cni0"), 1200))
		}, config: config(), code: cni.CodeInvalidConfig, words: []string{"1200", "1280"}},
		{rule: "default route taken", before: func(t *testing.T, _ *node, pod *space) { occupyDefault(t, pod) },
			config: config(), code: cni.CodeInvalidConfig, words: []string{"isDefaultGateway=true", "through other"}},
		{rule: "two gateways for one route", before: answerRoutes("192.0.2.0/24", "10.1.0.8", "192.0.2.0/24", "10.1.0.9"), config: config(),
			code: cni.CodeInvalidConfig, words: []string{`ipam.routes="192.0.2.0/24"`, "via 10.1.0.8 through eth0, not 192.0.2.0/24 via 10.1.0.9"}},
		{rule: "two gateways for the default route", before: answerRoutes("0.0.0.0/0", "10.1.0.8", "0.0.0.0/0", "10.1.0.9"), config: config(),
			code: cni.CodeInvalidConfig, words: []string{"ipam.routes=", "via 10.1.0.8", "via 10.1.0.9"}},
		{rule: "the container's own subnet through a gateway", before: answerRoutes("10.1.0.0/24", "10.1.0.9"), config: config(),
			code: cni.CodeInvalidConfig, words: []string{"10.1.0.0/24 through eth0", "via 10.1.0.9"}},
		{rule: "route with host bits", before: answerRoutes("192.0.2.7/24", ""), config: config(),
			code: cni.CodeInvalidConfig, words: []string{"ipam.routes=", "192.0.2.7/24 has host bits set; write 192.0.2.0/24"}},
		{rule: "ipam without type", config: config("ipam", map[string]any{"subnet": "10.1.0.0/24"}),
			code: cni.CodeInvalidConfig, words: []string{"ipam.type", "is missing", "cnikit-ipam"}},
		{rule: "route that the kernel refuses", before: func(_ *testing.T, n *node, _ *space) {
			scope := 254 // host: no gateway can be behind it
			n.ipam.answer = func(r *cni.Result) {
				r.Routes = []cni.Route{{Dst: netip.MustParsePrefix("192.0.2.0/24"), GW: netip.MustParseAddr("10.1.0.1"), Scope: &scope}}
			}
		}, config: config(), code: cni.CodeInternal, words: []string{"192.0.2.0/24"}},
		{rule: "masquerading", config: config("ipMasq", true), code: cni.CodeUnsupportedField, words: []string{"ipMasq=true", "set it to false"}},
		{rule: "key of the reference plugin", config: config("vlan", 100), code: cni.CodeUnsupportedField, words: []string{"vlan=100"}},
		{rule: "name of the node's end is taken", before: func(t *testing.T, n *node, _ *space) {
			n.addBridge(t, netif.HostName("c1", "eth0"))
		}, config: config(), code: cni.CodeInvalidEnvironment, words: []string{"bridge", "rename or remove it"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			n, pod := newNode(t), newSpace(t, "c1")
			if test.before != nil {
				test.before(t, n, pod)
			}
			onNode, inPod := n.state(t), pod.state(t)
			_, err := n.add(pod, "eth0", test.config)
			requireCode(t, err, test.code, test.words...)
			require.Equal(t, onNode, n.state(t))
			require.Equal(t, inPod, pod.state(t))
			require.Zero(t, n.ipam.held())

			n.ipam.full = nil
			if test.rule != "IPAM plugin missing" { // which is an error of DEL, too
				require.NoError(t, n.del(pod, "eth0", test.config), "the runtime's DEL after a failed ADD")
			}
			require.Equal(t, onNode, n.state(t))
			require.Equal(t, inPod, pod.state(t))
		})
	}
}

// addSpanningTree makes a bridge that blocks new ports for a while.
func addSpanningTree(t *testing.T, n *node, _ *space) {
	t.Helper()
	tool := testenv.Tool(t, "ip")
	n.addBridge(t, "cni0")
	require.NoError(t, n.ns.Do(func() error {
		return exec.Command(tool, "link", "set", "cni0", "type", "bridge", "stp_state", "1").Run()
	}))
}

// answerRoutes makes the IPAM plugin give routes: destination and gateway in turn.
func answerRoutes(list ...string) func(*testing.T, *node, *space) {
	return func(_ *testing.T, n *node, _ *space) {
		n.ipam.answer = func(r *cni.Result) {
			for i := 0; i < len(list); i += 2 {
				route := cni.Route{Dst: netip.MustParsePrefix(list[i])}
				if list[i+1] != "" {
					route.GW = netip.MustParseAddr(list[i+1])
				}
				r.Routes = append(r.Routes, route)
			}
		}
	}
}

// occupyDefault gives the container a default route through another interface.
func occupyDefault(t *testing.T, pod *space) {
	t.Helper()
	other := pod.addLink(t, "other")
	require.NoError(t, pod.nl.AddRoute(&netlink.Route{Dst: ipNet("0.0.0.0/0"), LinkIndex: other.Attrs().Index, Scope: netlink.SCOPE_LINK}))
}

func TestCancelledAdd(t *testing.T) {
	n, pod := newNode(t), newSpace(t, "c1")
	onNode, inPod := n.state(t), pod.state(t)
	ctx, cancel := context.WithCancel(t.Context())
	n.ipam.answer = func(*cni.Result) { cancel() }
	_, err := n.call(ctx, invocation(cni.CommandAdd, pod, "eth0"), config())
	requireCode(t, err, cni.CodeTryAgain)
	require.Equal(t, onNode, n.state(t))
	require.Equal(t, inPod, pod.state(t))
	require.Zero(t, n.ipam.held())
}

func TestLongNames(t *testing.T) {
	n, pod := newNode(t), newSpace(t, "c1")
	name := make([]byte, 250)
	for i := range name {
		name[i] = 'n'
	}
	_, err := n.add(pod, "eth0", config("name", string(name)))
	requireCode(t, err, cni.CodeInvalidEnvironment, "CNI_CONTAINERID", "10 bytes too many")
}

// TestAddEnds withholds the lock that every ADD needs.
func TestAddEnds(t *testing.T) {
	require.Equal(t, 2*time.Minute, bridge.Plugin().Timeout)
	n, pod := newNode(t), newSpace(t, "c1")
	n.timeout = time.Second
	handle, err := netif.Open(n.ns.Path())
	require.NoError(t, err)
	defer handle.Close()
	unlock, err := handle.Lock(t.Context())
	require.NoError(t, err)
	defer unlock()
	_, err = n.add(pod, "eth0", config())
	requireCode(t, err, cni.CodeTryAgain, "lock of the network namespace")
	require.Zero(t, n.ipam.held())
}
