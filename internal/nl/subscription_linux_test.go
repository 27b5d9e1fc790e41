package nl_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"

	"github.com/cnikit/cnikit/internal/nl"
	"github.com/cnikit/cnikit/internal/testenv"
)

func allKinds() []nl.EventKind {
	return []nl.EventKind{nl.LinkEvent, nl.AddrEvent, nl.RouteEvent, nl.NeighEvent, nl.RuleEvent, nl.NetconfEvent}
}

func watch(t *testing.T, c *nl.Conn, kinds ...nl.EventKind) *nl.Subscription {
	t.Helper()
	s, err := nl.Subscribe(c.NS(), kinds...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// receive returns what is queued, and waits for it if nothing is.
func receive(t *testing.T, s *nl.Subscription) []nl.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	events, err := s.Receive(ctx)
	require.NoError(t, err)
	return events
}

// await receives until the event came, and returns those before it.
func await(t *testing.T, s *nl.Subscription, want nl.Event) (before []nl.Event) {
	t.Helper()
	for {
		before = append(before, receive(t, s)...)
		if i := slices.Index(before, want); i >= 0 {
			return before[:i]
		}
	}
}

// still is open for tests that look at each event: in this namespace nothing happens but what they do. With IPv6 a link that
// goes up is given an address, which is announced again a second or two later.
func still(t *testing.T) *nl.Conn {
	t.Helper()
	c := open(t)
	for _, links := range []string{"all", "default"} {
		_, err := c.SetSysctl("net/ipv6/conf/"+links+"/disable_ipv6", "1")
		require.NoError(t, err)
	}
	return c
}

// carrier waits until the kernel has looked at a link that went up, which it does on its own time and announces.
func carrier(t *testing.T, c *nl.Conn, name string) {
	t.Helper()
	require.Eventually(t, func() bool {
		l, err := c.Link(name)
		return err == nil && l.Attrs().OperState == netlink.OperUp
	}, time.Minute, time.Millisecond)
}

func TestEveryKindOfEventIsSeen(t *testing.T) {
	testenv.Kernel(t, testenv.Veth, testenv.VXLAN)
	ip := testenv.Tool(t, "ip")
	c := open(t)
	a := pair(t, c, "a")
	index := a.Attrs().Index
	require.NoError(t, c.AddLink(&netlink.Vxlan{LinkAttrs: attrs("vx"), VxlanId: 7, Port: 4789}))
	vx, err := c.Link("vx")
	require.NoError(t, err)
	mac := net.HardwareAddr{2, 0, 0, 0, 0, 9}
	addr4, addr6 := &netlink.Addr{IPNet: cidr("10.1.0.1/24")}, &netlink.Addr{IPNet: cidr("fd01::1/64"), Flags: 2}
	route4 := &netlink.Route{Dst: cidr("10.9.0.0/24"), Gw: net.ParseIP("10.1.0.9")}
	route6 := &netlink.Route{Dst: cidr("fd09::/64"), Gw: net.ParseIP("fd01::9")}
	neigh := &netlink.Neigh{LinkIndex: index, IP: net.ParseIP("10.1.0.9"), HardwareAddr: mac}
	fdb := &netlink.Neigh{LinkIndex: vx.Attrs().Index, IP: net.ParseIP("192.0.2.9"), HardwareAddr: mac}
	rule := func(args ...string) func() error {
		return func() error { return runIn(c, append([]string{ip}, args...)) }
	}
	sysctl := func(key, value string) func() error {
		return func() error { _, err := c.SetSysctl(key, value); return err }
	}
	for _, k := range []struct {
		name string
		do   func() error
		want nl.Event
	}{
		{"link changed", func() error { return c.SetMTU(a, 1400) }, nl.Event{Kind: nl.LinkEvent, Link: index}},
		{"address", func() error { return c.ReplaceAddr(a, addr4) }, nl.Event{Kind: nl.AddrEvent, Link: index}},
		{"ipv6 address", func() error { return c.ReplaceAddr(a, addr6) }, nl.Event{Kind: nl.AddrEvent, Link: index}},
		{"route", func() error { return c.AddRoute(route4) }, nl.Event{Kind: nl.RouteEvent, Link: index}},
		{"ipv6 route", func() error { return c.AddRoute(route6) }, nl.Event{Kind: nl.RouteEvent, Link: index}},
		{"route gone", func() error { return c.DelRoute(route4) }, nl.Event{Kind: nl.RouteEvent, Link: index, Gone: true}},
		{"ipv6 route gone", func() error { return c.DelRoute(route6) }, nl.Event{Kind: nl.RouteEvent, Link: index, Gone: true}},
		{"neighbour", func() error { return c.SetNeighbor(neigh) }, nl.Event{Kind: nl.NeighEvent, Link: index}},
		{"neighbour gone", func() error { return c.DelNeighbor(neigh) }, nl.Event{Kind: nl.NeighEvent, Link: index, Gone: true}},
		{"forwarding entry", func() error { return c.SetFDB(fdb) }, nl.Event{Kind: nl.NeighEvent, Link: fdb.LinkIndex}},
		{"forwarding entry gone", func() error { return c.DelFDB(fdb) }, nl.Event{Kind: nl.NeighEvent, Link: fdb.LinkIndex, Gone: true}},
		{"rule", rule("rule", "add", "pref", "99", "table", "7"), nl.Event{Kind: nl.RuleEvent}},
		{"rule gone", rule("rule", "del", "pref", "99"), nl.Event{Kind: nl.RuleEvent, Gone: true}},
		{"ipv6 rule", rule("-6", "rule", "add", "pref", "99", "table", "7"), nl.Event{Kind: nl.RuleEvent}},
		{"forwarding of all", sysctl(forward, "1"), nl.Event{Kind: nl.NetconfEvent, Link: -1}},
		{"ipv6 forwarding of one", sysctl("net/ipv6/conf/a/forwarding", "1"), nl.Event{Kind: nl.NetconfEvent, Link: index}},
		{"address gone", func() error { return c.DelAddr(a, addr4) }, nl.Event{Kind: nl.AddrEvent, Link: index, Gone: true}},
		{"link gone", func() error { return c.DelLink(a) }, nl.Event{Kind: nl.LinkEvent, Link: index, Gone: true}},
	} {
		t.Run(k.name, func(t *testing.T) {
			s := watch(t, c, k.want.Kind)
			require.NoError(t, k.do())
			await(t, s, k.want)
		})
	}
}

func TestOnlySubscribedKindsAndNamespace(t *testing.T) {
	testenv.Kernel(t, testenv.Veth)
	c, other := still(t), still(t)
	s := watch(t, c, nl.AddrEvent)
	pair(t, other, "o")
	a := pair(t, c, "a")
	index, addr := a.Attrs().Index, &netlink.Addr{IPNet: cidr("10.1.0.1/24")}
	require.NoError(t, c.SetMTU(a, 1300))
	require.NoError(t, other.ReplaceAddr(byName("o"), &netlink.Addr{IPNet: cidr("10.2.0.1/24")}))
	require.NoError(t, c.ReplaceAddr(a, addr))
	require.NoError(t, c.DelAddr(a, addr))
	gone := nl.Event{Kind: nl.AddrEvent, Link: index, Gone: true}
	assert.Equal(t, []nl.Event{{Kind: nl.AddrEvent, Link: index}}, await(t, s, gone))

	_, err := nl.Subscribe(c.NS(), nl.EventKind(42))
	require.ErrorContains(t, err, "event 42")
}

// Reading must not look like a change.
func TestReadingMakesNoEvents(t *testing.T) {
	testenv.Kernel(t, testenv.Veth)
	c := still(t)
	a := pair(t, c, "a")
	carrier(t, c, "a")
	carrier(t, c, "ap")
	require.NoError(t, c.ReplaceAddr(a, &netlink.Addr{IPNet: cidr("10.1.0.1/24")}))
	s := watch(t, c, allKinds()...)
	_, err := c.Links()
	require.NoError(t, err)
	_, err = c.Routes(nil, 0, netlink.FAMILY_ALL)
	require.NoError(t, err)
	_, err = c.Neighbors(a.Attrs().Index, netlink.FAMILY_ALL)
	require.NoError(t, err)
	require.NoError(t, c.SetMTU(a, 1300))
	assert.Empty(t, await(t, s, nl.Event{Kind: nl.LinkEvent, Link: a.Attrs().Index}), "before the change")
}

// The queue is made tiny and flooded while nobody receives.
func TestOverflow(t *testing.T) {
	testenv.Kernel(t, testenv.Veth)
	c := still(t)
	a := pair(t, c, "a")
	s, err := nl.SubscribeTiny(c.NS(), 4096, []nl.EventKind{nl.NeighEvent})
	require.NoError(t, err)
	defer s.Close()
	neighbour := func(i int) *netlink.Neigh {
		return &netlink.Neigh{LinkIndex: a.Attrs().Index, IP: net.IPv4(10, 1, byte(i>>8), byte(i)), HardwareAddr: net.HardwareAddr{2, 0, 0, 0, 0, 9}}
	}
	for i := range 500 {
		require.NoError(t, c.SetNeighbor(neighbour(i)))
	}
	events := receive(t, s)
	overflows := 0
	for _, e := range events {
		if e.Kind == nl.Overflow {
			overflows++
		}
	}
	assert.Equal(t, 1, overflows, "of %d events", len(events))
	assert.Less(t, len(events), 500)

	t.Run("works on afterwards", func(t *testing.T) {
		require.NoError(t, c.DelNeighbor(neighbour(1)))
		await(t, s, nl.Event{Kind: nl.NeighEvent, Link: a.Attrs().Index, Gone: true})
	})
	t.Run("the ordinary queue holds the burst", func(t *testing.T) {
		s := watch(t, c, nl.NeighEvent)
		for i := range 500 {
			require.NoError(t, c.SetNeighbor(neighbour(1000+i)))
		}
		assert.Len(t, receive(t, s), 500)
	})
}

func TestReceiveEndsWithItsContext(t *testing.T) {
	testenv.Kernel(t, testenv.Veth)
	c := open(t)
	s := watch(t, c, nl.LinkEvent)
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { _, err := s.Receive(ctx); done <- err }()
		cancel()
		require.ErrorIs(t, <-done, context.Canceled)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := s.Receive(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)

	t.Run("events of meanwhile are not lost", func(t *testing.T) {
		a := pair(t, c, "a")
		await(t, s, nl.Event{Kind: nl.LinkEvent, Link: a.Attrs().Index})
	})
	t.Run("close ends a waiting receive", func(t *testing.T) {
		done := make(chan error, 1)
		go func() {
			var err error
			for err == nil { // events of the pair may still come
				_, err = s.Receive(t.Context())
			}
			done <- err
		}()
		require.NoError(t, s.Close())
		require.ErrorIs(t, <-done, os.ErrClosed)
	})
}

func TestNoDescriptorIsLeaked(t *testing.T) {
	testenv.Kernel(t, testenv.Veth)
	c := open(t)
	pair(t, c, "a")
	count := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		require.NoError(t, err)
		return len(entries)
	}
	before := count()
	for range 20 {
		s, err := nl.Subscribe(c.NS(), allKinds()...)
		require.NoError(t, err)
		require.NoError(t, s.Close())
		again, err := nl.OpenIn(c.NS())
		require.NoError(t, err)
		_, err = again.Sysctl(forward)
		require.NoError(t, err)
		again.Close()
		_, err = nl.Subscribe(c.NS(), 42)
		require.Error(t, err)
	}
	assert.LessOrEqual(t, count(), before+2)
}

func TestParseEventToleratesGarbage(t *testing.T) {
	for kind := range uint16(100) {
		for size := range 20 {
			data := make([]byte, size)
			for i := range data {
				data[i] = 0xff
			}
			m := syscall.NetlinkMessage{Header: syscall.NlMsghdr{Type: kind}, Data: data}
			assert.NotPanics(t, func() { nl.ParseEvent(m) }, fmt.Sprint(kind, size))
		}
	}
}
