package netif_test

import (
	"context"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWaitRunning(t *testing.T) {
	node, pod := newSpace(t), newSpace(t)
	plug(t, node, pod, "veth1")
	require.NoError(t, node.nl.SetDown(node.link(t, "veth1")))
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	err := node.WaitRunning(ctx, "veth1")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "veth1")
	require.ErrorContains(t, node.WaitRunning(t.Context(), "none"), "none")
}

func TestWaitAnswering(t *testing.T) {
	pod := newSpace(t)
	pod.addLink(t, "eth0")
	own := parse("10.1.0.2/24", "fd00::12:3456/64")
	require.NoError(t, pod.AddAddresses("eth0", own...))
	require.NoError(t, pod.WaitAnswering(t.Context(), "eth0", own[0].Addr(), own[1].Addr()))
	var groups []byte
	require.NoError(t, pod.ns.Do(func() (err error) {
		groups, err = os.ReadFile("/proc/thread-self/net/igmp6")
		return err
	}))
	require.Regexp(t, `eth0\s+ff0200000000000000000001ff123456 `, string(groups))

	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	err := pod.WaitAnswering(ctx, "eth0", netip.MustParseAddr("fd00::65:4321"))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "fd00::65:4321")
}
