package netif_test

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"

	"github.com/cnikit/cnikit/cni/netif"
	"github.com/cnikit/cnikit/internal/netns"
	"github.com/cnikit/cnikit/internal/nl"
	"github.com/cnikit/cnikit/internal/testenv"
)

// space is a fresh network namespace, seen through the package and beside it.
type space struct {
	*netif.Namespace
	ns *netns.NS
	nl *nl.Conn
}

func newSpace(t *testing.T) space {
	t.Helper()
	testenv.Kernel(t, testenv.Bridge, testenv.Veth)
	ns, err := netns.New()
	require.NoError(t, err)
	t.Cleanup(func() { _ = ns.Close() })
	conn, err := nl.OpenIn(ns)
	require.NoError(t, err)
	t.Cleanup(conn.Close)
	handle, err := netif.Open(ns.Path())
	require.NoError(t, err)
	t.Cleanup(handle.Close)
	return space{Namespace: handle, ns: ns, nl: conn}
}

// link is the interface as netlink has it.
func (s space) link(t *testing.T, name string) netlink.Link {
	t.Helper()
	link, err := s.nl.Link(name)
	require.NoError(t, err)
	return link
}

// addLink makes an interface that is in nobody's way: one end of a veth pair, whose
// other end has an x behind its name and stays here.
func (s space) addLink(t *testing.T, name string) netlink.Link {
	t.Helper()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	pair := netlink.NewVeth(attrs)
	pair.PeerName = name + "x"
	require.NoError(t, s.nl.AddLink(pair))
	return s.link(t, name)
}

func (s space) names(t *testing.T) []string {
	t.Helper()
	links, err := s.Links()
	require.NoError(t, err)
	var names []string
	for _, link := range links {
		names = append(names, link.Name)
	}
	return names
}

// plug connects a container to the bridge cni0 of the node, complete and running.
func plug(t *testing.T, node, pod space, host string, addrs ...string) netif.Link {
	t.Helper()
	_, _, err := node.EnsureBridge(netif.Bridge{Name: "cni0"})
	require.NoError(t, err)
	_, _, err = node.CreateVeth(netif.Veth{Name: host, Peer: "eth0"}, pod.Namespace)
	require.NoError(t, err)
	require.NoError(t, node.SetPort(host, "cni0", netif.PortOptions{}))
	require.NoError(t, pod.AddAddresses("eth0", parse(addrs...)...))
	require.NoError(t, pod.SetUp("eth0"))
	require.NoError(t, node.SetUp(host))
	require.NoError(t, node.WaitRunning(t.Context(), host))
	require.NoError(t, pod.WaitRunning(t.Context(), "eth0"))
	link, err := pod.Link("eth0")
	require.NoError(t, err)
	return link
}

func parse(list ...string) []netip.Prefix {
	var parsed []netip.Prefix
	for _, s := range list {
		parsed = append(parsed, netip.MustParsePrefix(s))
	}
	return parsed
}

func TestNamespace(t *testing.T) {
	t.Run("open/absent", func(t *testing.T) {
		_, err := netif.Open(t.TempDir() + "/none")
		require.ErrorContains(t, err, "none")
	})
	t.Run("current/of the thread", func(t *testing.T) {
		s := newSpace(t)
		s.addLink(t, "mark")
		require.NoError(t, s.ns.Do(func() error {
			here, err := netif.Current()
			require.NoError(t, err)
			defer here.Close()
			_, err = here.Link("mark")
			return err
		}))
	})
	t.Run("link/absent", func(t *testing.T) {
		s := newSpace(t)
		_, err := s.Link("none")
		require.ErrorIs(t, err, netif.ErrNotFound)
		require.ErrorContains(t, err, "none")
		_, err = s.LinkByIndex(4711)
		require.ErrorIs(t, err, netif.ErrNotFound)
		require.NoError(t, s.DeleteLink("none"))
		require.ErrorIs(t, s.SetAlias("none", "mark"), netif.ErrNotFound)
	})
	t.Run("link/alias", func(t *testing.T) {
		s := newSpace(t)
		s.addLink(t, "veth1")
		require.NoError(t, s.SetAlias("veth1", "mark"))
		link, err := s.Link("veth1")
		require.NoError(t, err)
		require.Equal(t, "mark", link.Alias)
	})
}

func TestLock(t *testing.T) {
	s := newSpace(t)
	other, err := netif.Open(s.ns.Path())
	require.NoError(t, err)
	defer other.Close()

	unlock, err := s.Lock(t.Context())
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = other.Lock(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	_, err = s.Lock(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded, "the lock is not re-entrant")

	unlock()
	again, err := other.Lock(t.Context())
	require.NoError(t, err)
	again()

	t.Run("one per namespace", func(t *testing.T) {
		third := newSpace(t)
		first, err := s.Lock(t.Context())
		require.NoError(t, err)
		defer first()
		second, err := third.Lock(t.Context())
		require.NoError(t, err)
		second()
	})
}
