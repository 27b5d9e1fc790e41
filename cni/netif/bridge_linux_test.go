package netif_test

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnikit/cnikit/cni/netif"
)

func TestEnsureBridge(t *testing.T) {
	t.Run("create", func(t *testing.T) {
		node := newSpace(t)
		link, created, err := node.EnsureBridge(netif.Bridge{Name: "cni0", MTU: 1400, Alias: "mark"})
		require.NoError(t, err)
		require.True(t, created)
		require.Equal(t, "bridge", link.Kind)
		require.Equal(t, 1400, link.MTU)
		require.Equal(t, "mark", link.Alias)
		require.True(t, link.Up)
		require.Zero(t, node.link(t, "cni0").Attrs().Promisc)
		for _, setting := range []string{"accept_ra", "accept_dad"} {
			value, err := node.nl.Sysctl("net/ipv6/conf/cni0/" + setting)
			require.NoError(t, err)
			require.Equal(t, "0", value, setting)
		}
	})
	t.Run("name that is a template", func(t *testing.T) {
		node := newSpace(t)
		_, _, err := node.EnsureBridge(netif.Bridge{Name: "br%d"})
		require.ErrorContains(t, err, `"br%d" contains '%'`)
		require.Equal(t, []string{"lo"}, node.names(t))
	})
	t.Run("again changes nothing", func(t *testing.T) {
		node := newSpace(t)
		first, _, err := node.EnsureBridge(netif.Bridge{Name: "cni0", Alias: "mark"})
		require.NoError(t, err)
		second, created, err := node.EnsureBridge(netif.Bridge{Name: "cni0", Alias: "mark", MTU: 1300})
		require.NoError(t, err)
		require.False(t, created)
		require.Equal(t, first, second)
	})
	t.Run("adopt keeps the owner and switches on", func(t *testing.T) {
		node := newSpace(t)
		attrs := netlink.NewLinkAttrs()
		attrs.Name = "br.lan"
		require.NoError(t, node.nl.AddLink(&netlink.Bridge{LinkAttrs: attrs}))
		link, created, err := node.EnsureBridge(netif.Bridge{Name: "br.lan", Alias: "mark"})
		require.NoError(t, err)
		require.False(t, created)
		require.True(t, link.Up)
		require.Empty(t, link.Alias)
	})
	t.Run("another kind is left alone", func(t *testing.T) {
		node := newSpace(t)
		node.addLink(t, "cni0")
		_, _, err := node.EnsureBridge(netif.Bridge{Name: "cni0"})
		require.ErrorIs(t, err, netif.ErrWrongKind)
		require.ErrorContains(t, err, "veth")
		require.Equal(t, "veth", node.link(t, "cni0").Type())
	})
	t.Run("failure leaves nothing", func(t *testing.T) {
		node := newSpace(t)
		_, created, err := node.EnsureBridge(netif.Bridge{Name: "cni0", Alias: string(make([]byte, 300))})
		require.Error(t, err)
		require.False(t, created)
		require.NotContains(t, node.names(t), "cni0")
	})
	t.Run("one of many creates it", func(t *testing.T) {
		node := newSpace(t)
		var created atomic.Int32
		var all sync.WaitGroup
		for range 24 {
			all.Go(func() {
				_, first, err := node.EnsureBridge(netif.Bridge{Name: "cni0", Alias: "mark"})
				if err != nil {
					t.Error(err)
				}
				if first {
					created.Add(1)
				}
			})
		}
		all.Wait()
		require.EqualValues(t, 1, created.Load())
	})
}

// TestBridgeMAC is about the kernel's habit of giving a bridge the lowest MAC address of
// its ports.
func TestBridgeMAC(t *testing.T) {
	lowest := net.HardwareAddr{2, 0, 0, 0, 0, 1}
	makers := map[string]func(*testing.T, space){
		"created": func(*testing.T, space) {},
		"adopted": func(t *testing.T, node space) {
			attrs := netlink.NewLinkAttrs()
			attrs.Name = "cni0"
			require.NoError(t, node.nl.AddLink(&netlink.Bridge{LinkAttrs: attrs}))
		},
		"adopted after its last port left": func(t *testing.T, node space) {
			attrs := netlink.NewLinkAttrs()
			attrs.Name = "cni0"
			require.NoError(t, node.nl.AddLink(&netlink.Bridge{LinkAttrs: attrs}))
			port := node.addLink(t, "port0")
			require.NoError(t, node.nl.SetMaster(port, node.link(t, "cni0")))
			require.NoError(t, node.nl.DelLink(port))
		},
	}
	for name, make := range makers {
		t.Run(name, func(t *testing.T) {
			node := newSpace(t)
			make(t, node)
			bridge, _, err := node.EnsureBridge(netif.Bridge{Name: "cni0", Alias: "mark"})
			require.NoError(t, err)
			require.NotEqual(t, net.HardwareAddr{0, 0, 0, 0, 0, 0}, bridge.MAC)
			require.Len(t, bridge.MAC, 6)
			port := node.addLink(t, "port1")
			require.NoError(t, node.nl.SetMAC(port, lowest))
			require.NoError(t, node.SetPort("port1", "cni0", netif.PortOptions{}))
			require.Equal(t, bridge.MAC, node.link(t, "cni0").Attrs().HardwareAddr, "with a port")
			require.NoError(t, node.DeleteLink("port1"))
			require.Equal(t, bridge.MAC, node.link(t, "cni0").Attrs().HardwareAddr, "after the last port")
		})
	}
}

// TestBridgeNeighbours is about the kernel's habit of forgetting the neighbours of an
// interface whose MAC address is set, even to what it was.
func TestBridgeNeighbours(t *testing.T) {
	for name, alias := range map[string]string{"created": "mark", "adopted": ""} {
		t.Run(name, func(t *testing.T) {
			node := newSpace(t)
			ensure := func() {
				_, _, err := node.EnsureBridge(netif.Bridge{Name: "cni0", Alias: alias})
				require.NoError(t, err)
			}
			ensure()
			ensure() // adopts
			node.addLink(t, "port")
			require.NoError(t, node.SetPort("port", "cni0", netif.PortOptions{}))
			index := node.link(t, "cni0").Attrs().Index
			require.NoError(t, node.nl.SetNeighbor(&netlink.Neigh{LinkIndex: index, IP: net.IP{10, 1, 0, 9},
				HardwareAddr: net.HardwareAddr{2, 9, 9, 9, 9, 9}, State: unix.NUD_STALE}))
			ensure()
			require.Equal(t, "02:09:09:09:09:09", macOf(t, node, index, "10.1.0.9"))
		})
	}
}

func TestPorts(t *testing.T) {
	node := newSpace(t)
	_, _, err := node.EnsureBridge(netif.Bridge{Name: "cni0"})
	require.NoError(t, err)
	node.addLink(t, "port")
	_, err = node.Port("port")
	require.ErrorIs(t, err, netif.ErrNotFound)
	_, err = node.Port("none")
	require.ErrorIs(t, err, netif.ErrNotFound)

	for _, hairpin := range []bool{true, false, true} {
		require.NoError(t, node.SetPort("port", "cni0", netif.PortOptions{Hairpin: hairpin}))
		got, err := node.Port("port")
		require.NoError(t, err)
		require.Equal(t, hairpin, got.Hairpin)
	}
	ports, err := node.Ports("cni0")
	require.NoError(t, err)
	require.Len(t, ports, 1)
	require.Equal(t, "port", ports[0].Name)
	_, err = node.Ports("port")
	require.ErrorIs(t, err, netif.ErrWrongKind)

	gone, err := node.DeleteBridge("cni0")
	require.NoError(t, err)
	require.False(t, gone, "a bridge with a port stays")
	require.NoError(t, node.DeleteLink("port"))
	for range 2 {
		gone, err = node.DeleteBridge("cni0")
		require.NoError(t, err)
		require.True(t, gone)
	}
	require.NotContains(t, node.names(t), "cni0")
}
