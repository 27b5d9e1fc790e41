package netif_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/cnikit/cnikit/cni/netif"
)

func TestAddAddresses(t *testing.T) {
	t.Run("usable at once", func(t *testing.T) {
		node, pod := newSpace(t), newSpace(t)
		plug(t, node, pod, "veth1", "10.1.0.2/24", "fd00::2/64")
		addrs, err := pod.nl.Addrs(pod.link(t, "eth0"), unix.AF_UNSPEC)
		require.NoError(t, err)
		for _, addr := range addrs {
			if addr.Scope == unix.RT_SCOPE_UNIVERSE {
				require.Zero(t, addr.Flags&unix.IFA_F_TENTATIVE, addr)
			}
		}
		dad, err := pod.nl.Sysctl("net/ipv6/conf/eth0/accept_dad")
		require.NoError(t, err)
		require.Equal(t, "0", dad, "for the link-local address")
	})
	t.Run("again", func(t *testing.T) {
		pod := newSpace(t)
		pod.addLink(t, "eth0")
		for range 2 {
			require.NoError(t, pod.AddAddresses("eth0", parse("10.1.0.2/24", "fd00::2/64")...))
		}
		got, err := pod.Addresses("eth0")
		require.NoError(t, err)
		require.ElementsMatch(t, parse("10.1.0.2/24", "fd00::2/64"), got)
	})
	t.Run("IPv6 switched off", func(t *testing.T) {
		pod := newSpace(t)
		_, err := pod.nl.SetSysctl("net/ipv6/conf/all/disable_ipv6", "1")
		require.NoError(t, err)
		pod.addLink(t, "eth0.1")
		require.NoError(t, pod.AddAddresses("eth0.1", parse("10.1.0.2/24")...))
		off, err := pod.nl.Sysctl("net/ipv6/conf/eth0.1/disable_ipv6")
		require.NoError(t, err)
		require.Equal(t, "1", off, "IPv4 alone leaves IPv6 as it is")
		require.NoError(t, pod.AddAddresses("eth0.1", parse("fd00::2/64")...))
		got, err := pod.Addresses("eth0.1")
		require.NoError(t, err)
		require.Contains(t, got, parse("fd00::2/64")[0])
		off, err = pod.nl.Sysctl("net/ipv6/conf/lo/disable_ipv6")
		require.NoError(t, err)
		require.Equal(t, "0", off, "packets to own addresses pass through lo")
	})
	t.Run("stay when the interface is switched off", func(t *testing.T) {
		pod := newSpace(t)
		link := pod.addLink(t, "eth0")
		require.NoError(t, pod.AddAddresses("eth0", parse("10.1.0.2/24", "fd00::2/64")...))
		require.NoError(t, pod.nl.SetUp(link))
		require.NoError(t, pod.nl.SetDown(link))
		got, err := pod.Addresses("eth0")
		require.NoError(t, err)
		require.ElementsMatch(t, parse("10.1.0.2/24", "fd00::2/64"), got)
	})
	for rule, bad := range map[string]string{"IPv6 impossible": "fd00::2/64", "address refused": "ff02::5/64"} {
		t.Run("failure leaves none/"+rule, func(t *testing.T) {
			pod := newSpace(t)
			link := pod.addLink(t, "eth0")
			if bad == "fd00::2/64" {
				require.NoError(t, pod.nl.SetMTU(link, 1000)) // too little for IPv6
			}
			require.Error(t, pod.AddAddresses("eth0", parse("10.1.0.2/24", bad)...))
			got, err := pod.Addresses("eth0")
			require.NoError(t, err)
			require.Empty(t, got)
		})
	}
	t.Run("absent interface", func(t *testing.T) {
		require.ErrorIs(t, newSpace(t).AddAddresses("eth0", parse("10.1.0.2/24")...), netif.ErrNotFound)
	})
}

func TestSetGateways(t *testing.T) {
	both := []string{"10.1.0.1/24", "fd00::1/64"}
	fresh := func(t *testing.T, has ...string) space {
		node := newSpace(t)
		_, _, err := node.EnsureBridge(netif.Bridge{Name: "cni0"})
		require.NoError(t, err)
		require.NoError(t, node.AddAddresses("cni0", parse(has...)...))
		return node
	}
	addresses := func(t *testing.T, node space) []string {
		got, err := node.Addresses("cni0")
		require.NoError(t, err)
		var list []string
		for _, addr := range got {
			list = append(list, addr.String())
		}
		return list
	}
	t.Run("set and revert", func(t *testing.T) {
		node := fresh(t, "fd09::1/64")
		change, err := node.SetGateways("cni0", parse(both...), false)
		require.NoError(t, err)
		require.ElementsMatch(t, append([]string{"fd09::1/64"}, both...), addresses(t, node))
		again, err := node.SetGateways("cni0", parse(both...), false)
		require.NoError(t, err)
		require.True(t, again.Empty())
		require.NoError(t, node.RevertAddresses("cni0", change))
		require.Equal(t, []string{"fd09::1/64"}, addresses(t, node))
	})
	t.Run("usable at once", func(t *testing.T) {
		node := fresh(t)
		plug(t, node, newSpace(t), "veth1") // a bridge without ports has no carrier
		_, err := node.SetGateways("cni0", parse(both...), false)
		require.NoError(t, err)
		addrs, err := node.nl.Addrs(node.link(t, "cni0"), unix.AF_INET6)
		require.NoError(t, err)
		for _, addr := range addrs {
			if addr.Scope == unix.RT_SCOPE_UNIVERSE {
				require.Zero(t, addr.Flags&unix.IFA_F_TENTATIVE, addr)
			}
		}
	})
	t.Run("conflict changes nothing", func(t *testing.T) {
		node := fresh(t, "fd00::9/48")
		_, err := node.SetGateways("cni0", parse(both...), false)
		var conflict *netif.AddressConflict
		require.ErrorAs(t, err, &conflict)
		require.Equal(t, []string{"fd00::9/48"}, addresses(t, node))
	})
	t.Run("force in the same subnet, and revert", func(t *testing.T) {
		node := fresh(t, "10.1.0.9/24", "10.1.0.8/24")
		change, err := node.SetGateways("cni0", parse(both...), true)
		require.NoError(t, err)
		require.ElementsMatch(t, both, addresses(t, node))
		require.NoError(t, node.RevertAddresses("cni0", change))
		require.ElementsMatch(t, []string{"10.1.0.9/24", "10.1.0.8/24"}, addresses(t, node))
	})
	t.Run("revert without the interface", func(t *testing.T) {
		require.NoError(t, newSpace(t).RevertAddresses("cni0", netif.AddressChange{Added: parse(both...)}))
	})
}

func TestEnableForwarding(t *testing.T) {
	const v4, v6 = "net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding"
	for _, test := range []struct {
		rule   string
		addrs  []string
		v4, v6 string
	}{
		{"no address", nil, "0", "0"},
		{"IPv4 only", []string{"10.1.0.1/24"}, "1", "0"},
		{"IPv6 only", []string{"fd00::1/64"}, "0", "1"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			node := newSpace(t)
			for _, key := range []string{v4, v6} {
				_, err := node.nl.SetSysctl(key, "0")
				require.NoError(t, err)
			}
			require.NoError(t, node.EnableForwarding(t.Context(), parse(test.addrs...)...))
			got4, err := node.nl.Sysctl(v4)
			require.NoError(t, err)
			got6, err := node.nl.Sysctl(v6)
			require.NoError(t, err)
			require.Equal(t, []string{test.v4, test.v6}, []string{got4, got6})
		})
	}
}
