package bridge_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/internal/nl"
)

// TestParallelAdds is about the first ADDs on a node, all of which need the bridge; those
// that fail must not take it away from the others.
func TestParallelAdds(t *testing.T) {
	const count = 24
	n := newNode(t)
	pods := make([]*space, count)
	for i := range pods {
		pods[i] = newSpace(t, fmt.Sprint("c", i))
		if i%3 == 0 { // fails late: its default route is taken
			occupyDefault(t, pods[i])
		}
	}
	results, errs := make([]*cni.Result, count), make([]error, count)
	var all sync.WaitGroup
	start := time.Now()
	for i := range pods {
		all.Go(func() { results[i], errs[i] = n.add(pods[i], "eth0", config()) })
	}
	all.Wait()
	t.Logf("%d parallel ADDs, a third failing: %v", count, time.Since(start).Round(time.Millisecond))
	for i, pod := range pods {
		if i%3 == 0 {
			requireCode(t, errs[i], cni.CodeInvalidConfig, "isDefaultGateway")
			require.Nil(t, pod.link(t, "eth0"))
			continue
		}
		require.NoError(t, errs[i])
		pod.requireAnswers(t, "eth0", address(t, results[i], true))
		for _, gateway := range []string{"10.1.0.1", "fd00:1::1"} {
			requireReach(t, pod, n.space, netip.MustParseAddr(gateway), 10)
		}
	}
	require.Equal(t, count-count/3, n.ipam.held())
	links, err := n.nl.Links()
	require.NoError(t, err)
	require.Len(t, links, 2+count-count/3, "lo, the bridge and a port for each")
}

// TestFailureBesideSuccess lets one ADD take back the bridge and its addresses while
// another looks for them: the other starts at the first sign of the undoing.
func TestFailureBesideSuccess(t *testing.T) {
	for round := range 20 {
		n, failing, good := newNode(t), newSpace(t, "failing"), newSpace(t, "good")
		occupyDefault(t, failing)
		events, err := nl.Subscribe(failing.ns, nl.LinkEvent) // the interface goes first
		if round%3 > 0 {
			events, err = nl.Subscribe(n.ns, nl.AddrEvent)
		}
		require.NoError(t, err)
		n.ipam.before = func(a cni.Attachment) {
			if a.ContainerID == "good" {
				awaitGone(t, events)
			}
		}
		var both sync.WaitGroup
		var failed, succeeded error
		both.Go(func() { _, failed = n.add(failing, "eth0", config()) })
		both.Go(func() { _, succeeded = n.add(good, "eth0", config()) })
		both.Wait()
		require.NoError(t, events.Close())
		require.Error(t, failed)
		require.NoError(t, succeeded)
		for _, gateway := range []string{"10.1.0.1", "fd00:1::1"} {
			requireReach(t, good, n.space, netip.MustParseAddr(gateway), 10)
		}
	}
}

// awaitGone waits until an interface is deleted.
func awaitGone(t *testing.T, events *nl.Subscription) {
	ctx, cancel := context.WithTimeout(t.Context(), trafficTimeout)
	defer cancel()
	for {
		batch, err := events.Receive(ctx)
		if err != nil {
			t.Error(err)
			return
		}
		for _, event := range batch {
			if event.Gone {
				return
			}
		}
	}
}

// TestReusedAddress gives a new container the address that the node knows at another
// MAC address.
func TestReusedAddress(t *testing.T) {
	n, pod := newNode(t), newSpace(t, "c1")
	n.mustAdd(t, newSpace(t, "first"), "eth0", config())
	index := n.link(t, "cni0").Attrs().Index
	addrs := []string{"10.1.0.3", "fd00:1::3"}
	for _, addr := range addrs {
		require.NoError(t, n.nl.SetNeighbor(&netlink.Neigh{LinkIndex: index, IP: net.ParseIP(addr),
			HardwareAddr: net.HardwareAddr{2, 9, 9, 9, 9, 9}, State: unix.NUD_REACHABLE}))
	}
	events, err := nl.Subscribe(n.ns, nl.NeighEvent)
	require.NoError(t, err)
	defer func() { _ = events.Close() }()
	mac := n.mustAdd(t, pod, "eth0", config()).Interfaces[2].MAC
	ctx, cancel := context.WithTimeout(t.Context(), trafficTimeout)
	defer cancel()
	for _, addr := range addrs {
		for n.neighbour(t, index, addr) != mac {
			_, err := events.Receive(ctx)
			require.NoError(t, err, "%s is still known at the old MAC address", addr)
		}
	}
}

func (n *node) neighbour(t *testing.T, index int, addr string) string {
	t.Helper()
	entries, err := n.nl.Neighbors(index, unix.AF_UNSPEC)
	require.NoError(t, err)
	for _, entry := range entries {
		if entry.IP.Equal(net.ParseIP(addr)) {
			return entry.HardwareAddr.String()
		}
	}
	return ""
}

// TestParallelFailures is about first ADDs that all fail, in whatever order they find the
// bridge and leave it.
func TestParallelFailures(t *testing.T) {
	for range 8 {
		n := newNode(t)
		before := n.state(t)
		var all sync.WaitGroup
		for i := range 8 {
			pod := newSpace(t, fmt.Sprint("c", i))
			occupyDefault(t, pod)
			all.Go(func() {
				if _, err := n.add(pod, "eth0", config()); err == nil {
					t.Error("the default route was not taken")
				}
			})
		}
		all.Wait()
		require.Equal(t, before, n.state(t))
		require.Zero(t, n.ipam.held())
	}
}

// TestFailureAfterSuccess leaves the bridge of an attachment that is gone by now.
func TestFailureAfterSuccess(t *testing.T) {
	n, first, failing := newNode(t), newSpace(t, "first"), newSpace(t, "failing")
	n.mustAdd(t, first, "eth0", config())
	require.Equal(t, "cnikit:bridge", n.link(t, "cni0").Attrs().Alias)
	require.NoError(t, n.del(first, "eth0", config()))
	before := n.state(t)
	occupyDefault(t, failing)
	_, err := n.add(failing, "eth0", config())
	require.Error(t, err)
	require.Equal(t, before, n.state(t))
}

// TestKilledFirstAdd leaves a bridge that no ADD has completed on.
func TestKilledFirstAdd(t *testing.T) {
	for rule, fails := range map[string]bool{"the next ADD succeeds": false, "the next ADD fails": true} {
		t.Run(rule, func(t *testing.T) {
			n, pod := newNode(t), newSpace(t, "c1")
			require.NoError(t, n.nl.SetAlias(n.addBridge(t, "cni0"), "cnikit:bridge:new"))
			if fails {
				occupyDefault(t, pod)
				_, err := n.add(pod, "eth0", config())
				require.Error(t, err)
				require.Nil(t, n.link(t, "cni0"))
				return
			}
			n.mustAdd(t, pod, "eth0", config("mtu", 9000)) // as for a bridge of its own
			require.Equal(t, "cnikit:bridge", n.link(t, "cni0").Attrs().Alias)
		})
	}
}
