package bridge_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/netip"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/cni/netif"
)

func TestAdd(t *testing.T) {
	n, pod := newNode(t), newSpace(t, "c1")
	r := n.mustAdd(t, pod, "eth0", config("mtu", 1400))
	t.Run("result/interfaces", func(t *testing.T) {
		require.Len(t, r.Interfaces, 3)
		for i, want := range []struct {
			at      *space
			name    string
			sandbox string
		}{{n.space, "cni0", ""}, {n.space, netif.HostName("c1", "eth0"), ""}, {pod, "eth0", pod.ns.Path()}} {
			link := want.at.link(t, want.name).Attrs()
			require.Equal(t, cni.Interface{Name: want.name, MAC: link.HardwareAddr.String(), MTU: 1400, Sandbox: want.sandbox}, r.Interfaces[i])
			require.Equal(t, 1400, link.MTU)
		}
	})
	t.Run("result/addresses and routes", func(t *testing.T) {
		require.Len(t, r.IPs, 2)
		for _, ip := range r.IPs {
			require.Equal(t, 2, *ip.Interface)
		}
		require.Equal(t, []cni.Route{
			{Dst: netip.MustParsePrefix("0.0.0.0/0"), GW: netip.MustParseAddr("10.1.0.1")},
			{Dst: netip.MustParsePrefix("::/0"), GW: netip.MustParseAddr("fd00:1::1")},
		}, r.Routes)
	})
	t.Run("usable at once", func(t *testing.T) {
		for _, link := range []netlink.Link{n.hostEnd(t, pod, "eth0"), n.link(t, "cni0"), pod.link(t, "eth0")} {
			require.NotZero(t, link.Attrs().RawFlags&unix.IFF_RUNNING, link.Attrs().Name)
		}
		pod.requireAnswers(t, "eth0", address(t, r, true))
		n.requireAnswers(t, "cni0", netip.MustParseAddr("fd00:1::1"))
		for _, gateway := range []string{"10.1.0.1", "fd00:1::1"} {
			requireReach(t, pod, n.space, netip.MustParseAddr(gateway), 100)
		}
	})
	t.Run("forwarding", func(t *testing.T) {
		for _, key := range []string{"net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding"} {
			value, err := n.nl.Sysctl(key)
			require.NoError(t, err)
			require.Equal(t, "1", value, key)
		}
	})
	t.Run("owner marks", func(t *testing.T) {
		require.Equal(t, "cnikit:pods:c1:eth0", n.hostEnd(t, pod, "eth0").Attrs().Alias)
		require.Equal(t, "cnikit:bridge", n.link(t, "cni0").Attrs().Alias)
	})
	t.Run("between containers, in packets of the MTU", func(t *testing.T) {
		other := newSpace(t, "c2")
		peer := n.mustAdd(t, other, "eth0", config("mtu", 1400))
		for v6, headers := range map[bool]int{false: 28, true: 48} {
			requireReach(t, pod, other, address(t, peer, v6), 1400-headers)
			requireTooLong(t, pod, address(t, peer, v6), 1400-headers+1)
		}
	})
	t.Run("second ADD of the same", func(t *testing.T) {
		before, held := pod.state(t), n.ipam.held()
		_, err := n.add(pod, "eth0", config())
		requireCode(t, err, cni.CodeInvalidEnvironment, "CNI_IFNAME=eth0")
		require.Equal(t, before, pod.state(t))
		require.Equal(t, held, n.ipam.held())
	})
}

func TestAddVariants(t *testing.T) {
	t.Run("without IPAM", func(t *testing.T) {
		n, a, b := newNode(t), newSpace(t, "a"), newSpace(t, "b")
		l2 := config("isDefaultGateway", nil, "ipam", nil)
		r := n.mustAdd(t, a, "eth0", l2)
		n.mustAdd(t, b, "eth0", l2)
		require.Len(t, r.Interfaces, 3)
		require.Empty(t, r.IPs)
		require.Empty(t, r.Routes)
		from, to := packetSocket(t, a, "eth0"), packetSocket(t, b, "eth0")
		broadcast(t, from)
		require.True(t, receives(t, to, trafficTimeout))
	})
	t.Run("IPv4 only touches no IPv6", func(t *testing.T) {
		n, pod := newNode(t), newSpace(t, "c1")
		_, err := n.nl.SetSysctl("net/ipv6/conf/all/forwarding", "0")
		require.NoError(t, err)
		n.ipam.subnets = n.ipam.subnets[:1]
		r := n.mustAdd(t, pod, "eth0", config())
		require.Len(t, r.Routes, 1)
		value, err := n.nl.Sysctl("net/ipv6/conf/all/forwarding")
		require.NoError(t, err)
		require.Equal(t, "0", value)
	})
	t.Run("isGateway sets no default route", func(t *testing.T) {
		n, pod := newNode(t), newSpace(t, "c1")
		r := n.mustAdd(t, pod, "eth0", config("isDefaultGateway", nil, "isGateway", true))
		require.Empty(t, r.Routes)
		requireReach(t, pod, n.space, netip.MustParseAddr("10.1.0.1"), 10)
	})
	t.Run("no gateway leaves the bridge without addresses", func(t *testing.T) {
		n, pod := newNode(t), newSpace(t, "c1")
		n.mustAdd(t, pod, "eth0", config("isDefaultGateway", nil))
		addrs, err := n.nl.Addrs(n.link(t, "cni0"), unix.AF_INET)
		require.NoError(t, err)
		require.Empty(t, addrs)
	})
	t.Run("routes of the IPAM plugin", func(t *testing.T) {
		n, pod := newNode(t), newSpace(t, "c1")
		table := 100
		n.ipam.answer = func(r *cni.Result) {
			r.Routes = []cni.Route{{Dst: netip.MustParsePrefix("192.0.2.0/24")},
				{Dst: netip.MustParsePrefix("198.51.100.0/24"), GW: netip.MustParseAddr("10.1.0.9"), MTU: 1300, Table: &table}}
		}
		r := n.mustAdd(t, pod, "eth0", config("isDefaultGateway", nil, "isGateway", true))
		require.Len(t, r.Routes, 2)
		require.False(t, r.Routes[0].GW.IsValid(), "what the IPAM plugin said is not rewritten")
		routes, err := pod.nl.Routes(&netlink.Route{}, netlink.RT_FILTER_TABLE, unix.AF_INET)
		require.NoError(t, err)
		got := map[string]string{}
		for _, route := range routes {
			got[route.Dst.String()] = fmt.Sprint(route.Gw, " ", route.MTU, " ", route.Table)
		}
		require.Equal(t, "10.1.0.1 0 254", got["192.0.2.0/24"])
		require.Equal(t, "10.1.0.9 1300 100", got["198.51.100.0/24"])
	})
	t.Run("misspelt key is logged", func(t *testing.T) {
		n, pod := newNode(t), newSpace(t, "c1")
		var log bytes.Buffer
		inv := invocation(cni.CommandAdd, pod, "eth0")
		inv.Log = slog.New(slog.NewTextHandler(&log, nil))
		_, err := n.call(t.Context(), inv, config("brigde", "br0"))
		require.NoError(t, err)
		require.Contains(t, log.String(), "level=WARN")
		require.Contains(t, log.String(), "key=brigde similar=bridge")
	})
	t.Run("routes that are there already", func(t *testing.T) {
		n, pod := newNode(t), newSpace(t, "c1")
		answerRoutes("192.0.2.0/24", "10.1.0.1", "192.0.2.0/24", "", "10.1.0.0/24", "", "fd00:1::/64", "", "0.0.0.0/0", "10.1.0.1")(t, n, pod)
		n.mustAdd(t, pod, "eth0", config())
		requireReach(t, pod, n.space, netip.MustParseAddr("10.1.0.1"), 10)
		requireReach(t, pod, n.space, netip.MustParseAddr("fd00:1::1"), 10)
	})
	t.Run("gateway outside the subnet, not on the bridge", func(t *testing.T) {
		n, pod := newNode(t), newSpace(t, "c1")
		n.ipam.answer = func(r *cni.Result) {
			r.IPs = []cni.IP{{Address: netip.MustParsePrefix("10.1.0.2/32"), Gateway: netip.MustParseAddr("169.254.1.1")}}
			r.Routes = []cni.Route{{Dst: netip.MustParsePrefix("0.0.0.0/0")}}
		}
		n.mustAdd(t, pod, "eth0", config("isDefaultGateway", nil))
	})
	t.Run("IPv6 switched off in new namespaces", func(t *testing.T) {
		n, pod := newNode(t), newSpace(t, "c1")
		for _, s := range []*space{n.space, pod} {
			for _, name := range []string{"all", "default"} {
				_, err := s.nl.SetSysctl("net/ipv6/conf/"+name+"/disable_ipv6", "1")
				require.NoError(t, err)
			}
		}
		n.mustAdd(t, pod, "eth0", config())
		requireReach(t, pod, n.space, netip.MustParseAddr("fd00:1::1"), 10)
	})
	t.Run("route of link scope", func(t *testing.T) {
		n, pod := newNode(t), newSpace(t, "c1")
		scope := 253
		n.ipam.answer = func(r *cni.Result) {
			r.Routes = []cni.Route{{Dst: netip.MustParsePrefix("169.254.7.0/24"), Scope: &scope}}
		}
		n.mustAdd(t, pod, "eth0", config())
		routes, err := pod.nl.Routes(&netlink.Route{Dst: ipNet("169.254.7.0/24")}, netlink.RT_FILTER_DST, unix.AF_INET)
		require.NoError(t, err)
		require.Len(t, routes, 1)
		require.Nil(t, routes[0].Gw)
		require.Equal(t, netlink.SCOPE_LINK, routes[0].Scope)
	})
	t.Run("dns of the configuration outranks", func(t *testing.T) {
		n, pod := newNode(t), newSpace(t, "c1")
		n.ipam.answer = func(r *cni.Result) { r.DNS = cni.DNS{Nameservers: []string{"192.0.2.1"}} }
		require.Equal(t, []string{"192.0.2.1"}, n.mustAdd(t, pod, "eth0", config()).DNS.Nameservers)
		r := n.mustAdd(t, pod, "net1", config("name", "second", "isDefaultGateway", nil, "dns", map[string]any{"domain": "example.org"}))
		require.Equal(t, cni.DNS{Domain: "example.org"}, r.DNS)
	})
	t.Run("behind another plugin", func(t *testing.T) {
		n, pod := newNode(t), newSpace(t, "c1")
		prev := json.RawMessage(`{"cniVersion":"1.1.0","interfaces":[{"name":"dummy0","sandbox":"` + pod.ns.Path() + `"}],
			"ips":[{"address":"192.0.2.7/32","interface":0}],"x":1}`)
		r := n.mustAdd(t, pod, "eth0", config("prevResult", prev))
		require.Len(t, r.Interfaces, 4)
		require.Equal(t, "dummy0", r.Interfaces[0].Name)
		require.Len(t, r.IPs, 3)
		require.Equal(t, []int{0, 3, 3}, []int{*r.IPs[0].Interface, *r.IPs[1].Interface, *r.IPs[2].Interface})
		require.JSONEq(t, "1", string(r.Extra["x"]))
	})
	t.Run("mtu of an adopted bridge", func(t *testing.T) {
		n, pod := newNode(t), newSpace(t, "c1")
		br := n.addBridge(t, "br0")
		require.NoError(t, n.nl.SetMTU(br, 1380))
		r := n.mustAdd(t, pod, "eth0", config("bridge", "br0"))
		require.Equal(t, 1380, r.Interfaces[2].MTU)
	})
	t.Run("another mtu while older containers stay", func(t *testing.T) {
		n, a, b := newNode(t), newSpace(t, "a"), newSpace(t, "b")
		n.mustAdd(t, a, "eth0", config("mtu", 1400))
		r := n.mustAdd(t, b, "eth0", config("mtu", 1500))
		require.Equal(t, []int{1400, 1500}, []int{r.Interfaces[0].MTU, r.Interfaces[2].MTU})
	})
}

func TestHairpin(t *testing.T) {
	for _, hairpin := range []bool{true, false} {
		t.Run(strconv.FormatBool(hairpin), func(t *testing.T) {
			n, pod, witness := newNode(t), newSpace(t, "c1"), newSpace(t, "c2")
			n.mustAdd(t, witness, "eth0", config("hairpinMode", hairpin))
			n.mustAdd(t, pod, "eth0", config("hairpinMode", hairpin))
			own, other := packetSocket(t, pod, "eth0"), packetSocket(t, witness, "eth0")
			broadcast(t, own)
			require.True(t, receives(t, other, trafficTimeout), "the bridge has flooded the frame")
			wait := trafficTimeout
			if !hairpin {
				wait = 50 * time.Millisecond
			}
			require.Equal(t, hairpin, receives(t, own, wait))
		})
	}
}

func TestForceAddress(t *testing.T) {
	n, pod := newNode(t), newSpace(t, "c1")
	n.addBridge(t, "cni0", "10.1.0.99/24", "10.77.0.1/16", "fd00:1::99/64", "fd77::1/64")
	n.mustAdd(t, pod, "eth0", config("forceAddress", true))
	addrs, err := n.nl.Addrs(n.link(t, "cni0"), unix.AF_UNSPEC)
	require.NoError(t, err)
	var got []string
	for _, addr := range addrs {
		if addr.Scope == unix.RT_SCOPE_UNIVERSE {
			got = append(got, addr.IPNet.String())
		}
	}
	require.ElementsMatch(t, []string{"10.1.0.1/24", "fd00:1::1/64", "fd77::1/64"}, got)
	requireReach(t, pod, n.space, netip.MustParseAddr("10.1.0.1"), 10)
}
