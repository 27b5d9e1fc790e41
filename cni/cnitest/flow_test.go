package cnitest_test

import (
	"context"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni/cnitest"
	"github.com/cnikit/cnikit/internal/testenv"
)

const flowInterval = 2 * time.Millisecond

// opener is OpenUDP or OpenTCP.
type opener func(context.Context, *cnitest.Namespace, *cnitest.Namespace, netip.Addr, time.Duration) (*cnitest.Flow, error)

// running is a flow in the background.
type running struct {
	*cnitest.Flow
	stop context.CancelFunc
	done chan cnitest.FlowReport
}

func start(t *testing.T, open opener, a, b *cnitest.Namespace, to netip.Addr) running {
	t.Helper()
	flow, err := open(t.Context(), a, b, to, flowInterval)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	r := running{flow, stop, make(chan cnitest.FlowReport, 1)}
	go func() { r.done <- flow.Run(ctx) }()
	r.more(t, 20)
	return r
}

// more waits until more answers have come.
func (r running) more(t *testing.T, count int) {
	t.Helper()
	until := r.Report().Back + count
	require.Eventually(t, func() bool { return r.Report().Back >= until }, time.Minute, time.Millisecond)
}

func (r running) end() cnitest.FlowReport {
	r.stop()
	return <-r.done
}

func TestFlow(t *testing.T) {
	a, b := newPair(t, 1500)
	for name, open := range map[string]opener{"udp": cnitest.OpenUDP, "tcp": cnitest.OpenTCP} {
		t.Run(name, func(t *testing.T) {
			bothFamilies(t, func(t *testing.T, to netip.Addr) {
				t.Run("undisturbed", func(t *testing.T) {
					before := runtime.NumGoroutine()
					flow := start(t, open, a, b, to)
					flow.more(t, 50)
					report := flow.end()
					require.NoError(t, report.Err)
					require.GreaterOrEqual(t, report.Sent, 70)
					require.Zero(t, report.Lost())
					require.Positive(t, report.MaxGap)
					require.Eventually(t, func() bool {
						const condition = 1 // runs in a goroutine too
						return runtime.NumGoroutine()-condition <= before
					}, time.Minute, time.Millisecond, "no goroutine is left")
				})
			})
		})
	}
	t.Run("udp/lost packets are counted", func(t *testing.T) {
		flow := start(t, cnitest.OpenUDP, a, b, second)
		run(t, b, "ip", "link", "set", "eth0", "down")
		sent := flow.Report().Sent
		require.Eventually(t, func() bool { return flow.Report().Sent > sent+20 }, time.Minute, time.Millisecond)
		run(t, b, "ip", "link", "set", "eth0", "up")
		flow.more(t, 20)
		report := flow.end()
		require.GreaterOrEqual(t, report.Lost(), 20)
		require.Greater(t, report.MaxGap, 20*flowInterval)
		require.NoError(t, report.Err, "a datagram that is lost breaks nothing")
	})
	t.Run("tcp/a gap loses nothing", func(t *testing.T) {
		flow := start(t, cnitest.OpenTCP, a, b, second)
		run(t, b, "ip", "link", "set", "eth0", "down")
		sent := flow.Report().Sent
		require.Eventually(t, func() bool { return flow.Report().Sent > sent+20 }, time.Minute, time.Millisecond)
		run(t, b, "ip", "link", "set", "eth0", "up")
		flow.more(t, 20)
		report := flow.end()
		require.NoError(t, report.Err)
		require.Zero(t, report.Lost())
		require.Greater(t, report.MaxGap, 20*flowInterval)
	})
	t.Run("tcp/a reset is seen", func(t *testing.T) {
		tool := testenv.Tool(t, "ss")
		flow := start(t, cnitest.OpenTCP, a, b, second)
		run(t, b, tool, "-K", "state", "established")
		report := <-flow.done
		flow.stop()
		require.Error(t, report.Err)
		require.Contains(t, report.String(), report.Err.Error())
	})
}

func TestFlowOpen(t *testing.T) {
	a, b := newPair(t, 1500)
	for name, open := range map[string]opener{"udp": cnitest.OpenUDP, "tcp": cnitest.OpenTCP} {
		t.Run(name+"/an address the server does not have", func(t *testing.T) {
			_, err := open(t.Context(), a, b, first, flowInterval)
			require.ErrorContains(t, err, "echo server")
		})
		t.Run(name+"/closed without a run", func(t *testing.T) {
			flow, err := open(t.Context(), a, b, second, flowInterval)
			require.NoError(t, err)
			flow.Close()
		})
	}
}
