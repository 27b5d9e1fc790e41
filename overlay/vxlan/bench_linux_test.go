package vxlan_test

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnikit/cnikit/internal/testenv"
	"github.com/cnikit/cnikit/overlay/vxlan"
)

// BenchmarkRouteInsert adds N routes over one device, with one metric as everybody
// does and with a metric of their own, and prints the ratio. Times are CPU time of
// the process, the kernel's part included.
func BenchmarkRouteInsert(b *testing.B) {
	testenv.Kernel(b, testenv.VXLAN)
	for _, n := range []int{1000, 10000} {
		b.Run(fmt.Sprintf("N=%d", n), func(b *testing.B) {
			var one, own time.Duration
			for b.Loop() {
				one += insert(b, n, func(netip.Prefix) int { return 100 })
				own += insert(b, n, vxlan.Metric)
			}
			b.ReportMetric(float64(one.Microseconds())/float64(b.N*n), "µs/route-one-metric")
			b.ReportMetric(float64(own.Microseconds())/float64(b.N*n), "µs/route-own-metric")
			b.ReportMetric(float64(one)/float64(own), "ratio")
		})
	}
}

// insert adds n routes in a fresh namespace and returns the CPU time it took.
func insert(b *testing.B, n int, metric func(netip.Prefix) int) time.Duration {
	conn := newConn(b)
	defer conn.Close()
	device := &netlink.Vxlan{LinkAttrs: attrs("vx"), VxlanId: 5000, Port: 4789}
	require.NoError(b, conn.AddLink(device))
	require.NoError(b, conn.SetUp(device))
	require.NoError(b, conn.ReplaceAddr(device, addr("10.255.255.0/32")))
	routes := make([]*netlink.Route, n)
	for i := range routes {
		prefix := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 0}), 24)
		routes[i] = &netlink.Route{
			Dst: addr(prefix.String()).IPNet, Gw: prefix.Addr().AsSlice(), LinkIndex: device.Index, Flags: unix.RTNH_F_ONLINK,
			Priority: metric(prefix), Protocol: 155,
		}
	}
	before := cpuTime(b)
	for _, r := range routes {
		require.NoError(b, conn.AddRoute(r))
	}
	return cpuTime(b) - before
}

func cpuTime(b *testing.B) time.Duration {
	var usage unix.Rusage
	require.NoError(b, unix.Getrusage(unix.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
