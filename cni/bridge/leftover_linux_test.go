package bridge_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/cni/netif"
)

// addHostEnd makes what an ADD that was killed leaves: a pair whose other end is in the
// container.
func (n *node) addHostEnd(t *testing.T, pod *space, alias string) netlink.Link {
	t.Helper()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = netif.HostName(pod.id, "eth0")
	pair := netlink.NewVeth(attrs)
	pair.PeerName = "eth0"
	pair.PeerNamespace = netlink.NsFd(pod.ns.Fd())
	require.NoError(t, n.nl.AddLink(pair))
	link := n.hostEnd(t, pod, "eth0")
	require.NoError(t, n.nl.SetAlias(link, alias))
	return link
}

// TestLiveAttachment repeats an ADD for the same container and interface with another
// network namespace.
func TestLiveAttachment(t *testing.T) {
	for _, test := range []struct {
		rule  string
		live  func(t *testing.T, n *node, first *space)
		words []string
	}{
		{"in use", func(*testing.T, *node, *space) {}, []string{"is in use", "DEL it first"}},
		{"in use without carrier", func(t *testing.T, _ *node, first *space) {
			require.NoError(t, first.nl.SetDown(first.link(t, "eth0")))
		}, []string{"is in use"}},
		{"of another network", func(t *testing.T, n *node, first *space) {
			require.NoError(t, n.nl.SetAlias(n.hostEnd(t, first, "eth0"), "cnikit:storage:c1:eth0"))
		}, []string{`"storage"`, "DEL it there"}},
		{"of something else", func(t *testing.T, n *node, first *space) {
			require.NoError(t, n.nl.SetAlias(n.hostEnd(t, first, "eth0"), "mine"))
		}, []string{`"mine"`}},
		{"of another network, off", func(t *testing.T, n *node, first *space) {
			require.NoError(t, n.nl.SetAlias(n.hostEnd(t, first, "eth0"), "cnikit:storage:c1:eth0"))
			require.NoError(t, n.nl.SetDown(n.hostEnd(t, first, "eth0")))
		}, []string{`"storage"`}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			n, first, second := newNode(t), newSpace(t, "c1"), newSpace(t, "c1")
			n.mustAdd(t, first, "eth0", config())
			test.live(t, n, first)
			onNode, inFirst, inSecond := n.state(t), first.state(t), second.state(t)
			_, err := n.add(second, "eth0", config())
			requireCode(t, err, cni.CodeInvalidEnvironment, append(test.words, "CNI_CONTAINERID=c1, CNI_IFNAME=eth0")...)
			require.Equal(t, onNode, n.state(t))
			require.Equal(t, inFirst, first.state(t))
			require.Equal(t, inSecond, second.state(t))
			require.Equal(t, 1, n.ipam.held(), "the address of the attachment in use")
		})
	}
}

// TestLeftover replaces what an ADD left that was killed.
func TestLeftover(t *testing.T) {
	for rule, alias := range map[string]string{"marked": "cnikit:pods:c1:eth0", "not marked yet": ""} {
		t.Run(rule, func(t *testing.T) {
			n, first, second := newNode(t), newSpace(t, "c1"), newSpace(t, "c1")
			old := n.addHostEnd(t, first, alias)
			n.mustAdd(t, second, "eth0", config())
			require.Nil(t, first.link(t, "eth0"))
			requireReach(t, second, n.space, netip.MustParseAddr("10.1.0.1"), 10)
			require.NotEqual(t, old.Attrs().Index, n.hostEnd(t, second, "eth0").Attrs().Index)
		})
	}
}
