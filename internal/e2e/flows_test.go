package e2e

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni/cnitest"
)

const (
	interval = 10 * time.Millisecond // a hundred messages a second
	perPhase = 100                   // answers that each flow must get before and after
)

// flows are a UDP echo of a hundred packets a second and a TCP stream, in each family.
type flows struct {
	names []string
	all   []*cnitest.Flow
}

func openFlows(t *testing.T, from, to *pod) *flows {
	t.Helper()
	f := &flows{}
	for _, at := range to.ips {
		udp, err := cnitest.OpenUDP(t.Context(), from.ns, to.ns, at, interval)
		require.NoError(t, err)
		tcp, err := cnitest.OpenTCP(t.Context(), from.ns, to.ns, at, interval)
		require.NoError(t, err)
		f.all = append(f.all, udp, tcp)
		f.names = append(f.names, fmt.Sprintf("UDP %s to %s at %s", from.name, to.name, at), fmt.Sprintf("TCP %s to %s at %s", from.name, to.name, at))
	}
	return f
}

// requireUntouched keeps traffic between two pods running before, while and after fn
// runs: no packet may be lost and no stream reset.
func requireUntouched(t *testing.T, from, to *pod, fn func()) {
	t.Helper()
	f := openFlows(t, from, to)
	ctx, stop := context.WithCancel(t.Context())
	reports := make([]cnitest.FlowReport, len(f.all))
	var running sync.WaitGroup
	for i, flow := range f.all {
		running.Go(func() { reports[i] = flow.Run(ctx) })
	}
	defer running.Wait() // also when fn ends the test
	defer stop()
	f.phase(t)
	fn()
	f.phase(t)
	stop()
	running.Wait()
	for i, r := range reports {
		t.Logf("%s: %v", f.names[i], r)
		assert.NoError(t, r.Err, f.names[i])
		assert.Zero(t, r.Lost(), f.names[i])
		assert.GreaterOrEqual(t, r.Back, 2*perPhase, f.names[i])
	}
}

// phase waits for more answers in each flow.
func (f *flows) phase(t *testing.T) {
	t.Helper()
	until := make([]int, len(f.all))
	for i, flow := range f.all {
		until[i] = flow.Report().Back + perPhase
	}
	for i, flow := range f.all {
		require.Eventually(t, func() bool { return flow.Report().Back >= until[i] }, patience, interval, f.names[i])
	}
}
