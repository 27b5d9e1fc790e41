package bridge_test

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnikit/cnikit/cni/netif"
)

// requireAnswers looks for the multicast group in which an interface answers for an IPv6
// address, and for the link-local address. Without either the first packet takes a second.
func (s *space) requireAnswers(t *testing.T, name string, addr netip.Addr) {
	t.Helper()
	var groups []byte
	require.NoError(t, s.ns.Do(func() (err error) {
		groups, err = os.ReadFile("/proc/thread-self/net/igmp6")
		return err
	}))
	addrs, err := s.nl.Addrs(s.link(t, name), unix.AF_INET6)
	require.NoError(t, err)
	linkLocal := 0
	for _, addr := range addrs {
		require.Zero(t, addr.Flags&unix.IFA_F_TENTATIVE, "without a valid link-local address nothing is solicited for others: %s", addr)
		if addr.Scope == unix.RT_SCOPE_LINK {
			linkLocal++
		}
	}
	require.Equal(t, 1, linkLocal)
	bytes := addr.As16()
	require.Regexp(t, name+` +ff0200000000000000000001ff`+hex.EncodeToString(bytes[13:])+" ", string(groups))
}

// requireOneWithin repeats something until it takes less than what it must not wait for. A
// busy machine may hold up some, and what waits never succeeds.
func requireOneWithin(t *testing.T, limit time.Duration, took func(try int) time.Duration) {
	t.Helper()
	const tries = 20
	for try := range tries {
		if took := took(try); took < limit {
			t.Logf("took %v", took.Round(10*time.Microsecond))
			return
		}
	}
	require.Fail(t, "too slow", "none of %d took less than %v", tries, limit)
}

// requireFast bounds an ADD with IPv6: duplicate address detection alone takes longer.
func requireFast(t *testing.T, add func(pod *space)) {
	t.Helper()
	requireOneWithin(t, time.Second, func(try int) time.Duration {
		pod := newSpace(t, fmt.Sprint("fast", try))
		start := time.Now()
		add(pod)
		return time.Since(start)
	})
}

func TestAddLatency(t *testing.T) {
	n := newNode(t)
	requireFast(t, func(pod *space) { n.mustAdd(t, pod, "eth0", config()) })
}

// TestFirstPacket sends from beyond the node to the first container on it. The kernel
// does not forward to a neighbour that it cannot solicit yet.
func TestFirstPacket(t *testing.T) {
	const repeated = 900 * time.Millisecond // a solicitation that gets lost is, after a second
	requireOneWithin(t, repeated, func(int) time.Duration {
		n, outside, pod := newNode(t), newSpace(t, "outside"), newSpace(t, "c1")
		n.connect(t, outside, "2001:db8::1/64", "2001:db8::2/64")
		require.NoError(t, outside.nl.AddRoute(&netlink.Route{Dst: ipNet("fd00:1::/64"), Gw: netip.MustParseAddr("2001:db8::1").AsSlice()}))
		requireReach(t, outside, n.space, netip.MustParseAddr("2001:db8::1"), 10)
		r := n.mustAdd(t, pod, "eth0", config())
		start := time.Now()
		requireReach(t, outside, pod, address(t, r, true), 10)
		return time.Since(start)
	})
}

// connect joins the node with a namespace outside of it.
func (n *node) connect(t *testing.T, outside *space, own, other string) {
	t.Helper()
	here, err := netif.Open(n.ns.Path())
	require.NoError(t, err)
	defer here.Close()
	there, err := netif.Open(outside.ns.Path())
	require.NoError(t, err)
	defer there.Close()
	_, _, err = here.CreateVeth(netif.Veth{Name: "uplink", Peer: "eth0"}, there)
	require.NoError(t, err)
	require.NoError(t, here.AddAddresses("uplink", parse(own)...))
	require.NoError(t, there.AddAddresses("eth0", parse(other)...))
	require.NoError(t, here.SetUp("uplink"))
	require.NoError(t, there.SetUp("eth0"))
	require.NoError(t, here.WaitRunning(t.Context(), "uplink"))
	require.NoError(t, here.WaitAnswering(t.Context(), "uplink", parse(own)[0].Addr()))
	require.NoError(t, there.WaitRunning(t.Context(), "eth0"))
	require.NoError(t, there.WaitAnswering(t.Context(), "eth0", parse(other)[0].Addr()))
}
