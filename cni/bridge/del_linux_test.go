package bridge_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/cni/netif"
)

func TestDel(t *testing.T) {
	t.Run("del/idempotent", func(t *testing.T) {
		n, pod := newNode(t), newSpace(t, "c1")
		inPod := pod.state(t)
		n.mustAdd(t, pod, "eth0", config())
		for range 3 {
			require.NoError(t, n.del(pod, "eth0", config()))
			require.Equal(t, inPod, pod.state(t))
			require.Nil(t, n.hostEnd(t, pod, "eth0"))
			require.Zero(t, n.ipam.held())
		}
		require.NotNil(t, n.link(t, "cni0"), "the bridge stays")
		n.mustAdd(t, pod, "eth0", config())
	})
	t.Run("del/of the unknown", func(t *testing.T) {
		n, pod := newNode(t), newSpace(t, "c1")
		require.NoError(t, n.del(pod, "eth0", config()))
	})
	t.Run("del/the link goes before the address", func(t *testing.T) {
		n, pod := newNode(t), newSpace(t, "c1")
		n.mustAdd(t, pod, "eth0", config())
		asked := false
		n.ipam.onDel = func() {
			asked = true
			require.Nil(t, pod.link(t, "eth0"))
		}
		require.NoError(t, n.del(pod, "eth0", config()))
		require.True(t, asked)
	})
	t.Run("del/reports the IPAM plugin's error, and finishes when repeated", func(t *testing.T) {
		n, pod := newNode(t), newSpace(t, "c1")
		n.mustAdd(t, pod, "eth0", config())
		n.ipam.fail = cni.Errorf(cni.CodeIO, "disk full")
		requireCode(t, n.del(pod, "eth0", config()), cni.CodeIO, "disk full")
		require.Nil(t, n.hostEnd(t, pod, "eth0"))
		n.ipam.fail = nil
		require.NoError(t, n.del(pod, "eth0", config()))
	})
	t.Run("del/keeps the address while the link cannot be deleted", func(t *testing.T) {
		n, pod := newNode(t), newSpace(t, "c1")
		n.mustAdd(t, pod, "eth0", config())
		inv := invocation(cni.CommandDel, pod, "eth0")
		var err error
		inv.Config, err = json.Marshal(config())
		require.NoError(t, err)
		require.NoError(t, n.ns.Do(func() error {
			return withoutNetAdmin(t, func() {
				_, err := n.handler().Handle(t.Context(), inv)
				requireCode(t, err, cni.CodeInternal, "operation not permitted")
			})
		}))
		require.NotNil(t, pod.link(t, "eth0"))
		require.Equal(t, 1, n.ipam.held())
		require.NoError(t, n.del(pod, "eth0", config()))
	})
	t.Run("del/broken configuration", func(t *testing.T) {
		n, pod := newNode(t), newSpace(t, "c1")
		n.mustAdd(t, pod, "eth0", config())
		require.NoError(t, n.del(pod, "eth0", config("mtu", 1, "bridge", "a/b", "ipMasq", true)))
		require.Nil(t, n.hostEnd(t, pod, "eth0"))
		require.Zero(t, n.ipam.held())
	})
}

// withoutNetAdmin runs fn while the calling thread has no right to change interfaces.
func withoutNetAdmin(t *testing.T, fn func()) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var all [2]unix.CapUserData
	require.NoError(t, unix.Capget(&header, &all[0]))
	fewer := all
	fewer[0].Effective &^= 1 << unix.CAP_NET_ADMIN
	if err := unix.Capset(&header, &fewer[0]); err != nil {
		return err
	}
	defer func() { require.NoError(t, unix.Capset(&header, &all[0])) }()
	fn()
	return nil
}

// TestDelWithoutNamespace passes what a runtime may have for CNI_NETNS at the end.
func TestDelWithoutNamespace(t *testing.T) {
	for _, test := range []struct {
		rule  string
		path  func(t *testing.T, n *node, pod *space) string
		alive bool // the container's namespace is still there, held by somebody
	}{
		{"empty", func(*testing.T, *node, *space) string { return "" }, true},
		{"absent", func(_ *testing.T, _ *node, pod *space) string {
			path := pod.ns.Path()
			pod.close()
			return path + "0"
		}, false},
		{"a plain file", func(t *testing.T, _ *node, _ *space) string {
			path := filepath.Join(t.TempDir(), "ns")
			require.NoError(t, os.WriteFile(path, nil, 0o600))
			return path
		}, true},
		{"the node's own", func(_ *testing.T, n *node, _ *space) string { return n.ns.Path() }, true},
		{"another container's", func(t *testing.T, n *node, _ *space) string {
			other := newSpace(t, "other")
			n.mustAdd(t, other, "eth0", config("name", "elsewhere"))
			require.NoError(t, n.ipam.del(t.Context(), &fakeRequest{ContainerID: "other", IfName: "eth0"}))
			t.Cleanup(func() { require.NotNil(t, other.link(t, "eth0"), "the other's interface stays") })
			return other.ns.Path()
		}, true},
	} {
		t.Run(test.rule, func(t *testing.T) {
			n, pod := newNode(t), newSpace(t, "c1")
			n.addLink(t, "eth0") // the node's own
			n.mustAdd(t, pod, "eth0", config())
			inv := cni.Invocation{Command: cni.CommandDel, ContainerID: "c1", IfName: "eth0", NetNS: test.path(t, n, pod)}
			for range 2 {
				_, err := n.call(t.Context(), inv, config())
				require.NoError(t, err)
			}
			require.NotNil(t, n.link(t, "eth0"))
			require.Nil(t, n.link(t, netif.HostName("c1", "eth0")))
			require.Zero(t, n.ipam.held())
			if test.alive {
				require.Nil(t, pod.link(t, "eth0"), "an address that was given back is not in use")
			}
		})
	}
}

// TestDelForeign is about interfaces that look like ours and are not.
func TestDelForeign(t *testing.T) {
	t.Run("the container's interface was made by something else", func(t *testing.T) {
		n, pod := newNode(t), newSpace(t, "c1")
		pod.addLink(t, "eth0")
		require.NoError(t, n.del(pod, "eth0", config()))
		require.NotNil(t, pod.link(t, "eth0"))
	})
	t.Run("a veth pair of another plugin", func(t *testing.T) {
		n, pod := newNode(t), newSpace(t, "c1")
		attrs := netlink.NewLinkAttrs()
		attrs.Name = "vethforeign"
		pair := netlink.NewVeth(attrs)
		pair.PeerName, pair.PeerNamespace = "eth0", netlink.NsFd(pod.ns.Fd())
		require.NoError(t, n.nl.AddLink(pair))
		require.NoError(t, n.del(pod, "eth0", config()))
		require.NotNil(t, pod.link(t, "eth0"))
	})
	t.Run("another network of this plugin", func(t *testing.T) {
		n, pod := newNode(t), newSpace(t, "c1")
		n.mustAdd(t, pod, "eth0", config("name", "first"))
		_, err := n.add(pod, "eth0", config("name", "second"))
		require.Error(t, err)
		require.NoError(t, n.del(pod, "eth0", config("name", "second", "ipam", nil, "isDefaultGateway", nil)))
		require.NotNil(t, pod.link(t, "eth0"))
	})
	t.Run("the name of the node's end", func(t *testing.T) {
		n, pod := newNode(t), newSpace(t, "c1")
		n.addBridge(t, netif.HostName("c1", "eth0"))
		require.NoError(t, n.del(pod, "eth0", config()))
		require.NotNil(t, n.hostEnd(t, pod, "eth0"))
	})
	t.Run("ours without its mark is ours", func(t *testing.T) {
		n, pod := newNode(t), newSpace(t, "c1")
		n.mustAdd(t, pod, "eth0", config())
		require.NoError(t, n.nl.SetAlias(n.hostEnd(t, pod, "eth0"), ""))
		require.NoError(t, n.del(pod, "eth0", config()))
		require.Nil(t, pod.link(t, "eth0"))
	})
	t.Run("ours with another name is ours", func(t *testing.T) {
		n, pod := newNode(t), newSpace(t, "c1")
		n.mustAdd(t, pod, "eth0", config())
		host := n.hostEnd(t, pod, "eth0")
		require.NoError(t, n.nl.SetDown(host))
		require.NoError(t, n.nl.SetName(host, "renamed"))
		require.NoError(t, n.del(pod, "eth0", config()))
		require.Nil(t, pod.link(t, "eth0"))
		require.Zero(t, n.ipam.held())
	})
}

// TestSecondInterface deletes the interfaces of a container in both orders.
func TestSecondInterface(t *testing.T) {
	first := config("name", "first")
	second := config("name", "second", "bridge", "cni1", "isDefaultGateway", nil, "isGateway", true)
	for name, order := range map[string][]string{"net1 before eth0": {"net1", "eth0"}, "net1 after eth0": {"eth0", "net1"}} {
		t.Run(name, func(t *testing.T) {
			n, pod := newNode(t), newSpace(t, "c1")
			inPod := pod.state(t)
			configs := map[string]map[string]any{"eth0": first, "net1": second}
			results := map[string]*cni.Result{}
			subnets := n.ipam.subnets
			for _, ifName := range []string{"eth0", "net1"} {
				results[ifName] = n.mustAdd(t, pod, ifName, configs[ifName])
				n.ipam.subnets = parse("10.2.0.0/24", "fd00:2::/64")
			}
			n.ipam.subnets = subnets
			require.NoError(t, n.del(pod, order[0], configs[order[0]]))
			require.Nil(t, pod.link(t, order[0]))
			left := order[1]
			require.NoError(t, n.check(pod, left, configs[left], results[left]))
			for _, ip := range results[left].IPs {
				requireReach(t, pod, n.space, ip.Gateway, 10)
			}
			require.NoError(t, n.del(pod, left, configs[left]))
			require.Equal(t, inPod, pod.state(t))
			require.Zero(t, n.ipam.held())
		})
	}
}
