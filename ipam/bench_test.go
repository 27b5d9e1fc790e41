package ipam_test

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"
	"testing"
	"time"

	"github.com/cnikit/cnikit/ipam"
)

// What a pool over memory costs must not depend on how many leases there are, nor on
// how they lie: each of the sizes is measured dense and with every other lease gone.
func BenchmarkPool(b *testing.B) {
	a := ipam.Owner{ContainerID: "a", IfName: "eth0"}
	for _, size := range []int{10, 1_000, 60_000} {
		for _, shape := range []string{"dense", "sparse"} {
			p := benchPool(b, size, shape == "sparse")
			for _, op := range []struct {
				name string
				call func(ctx context.Context) error
			}{
				{"add and del", func(ctx context.Context) error {
					if _, err := p.Allocate(ctx, a, ipam.Options{}); err != nil {
						return err
					}
					return p.Release(ctx, a)
				}},
				{"add again", func(ctx context.Context) error {
					_, err := p.Allocate(ctx, ipam.Owner{ContainerID: "1", IfName: "eth0"}, ipam.Options{})
					return err
				}},
				{"del unknown", func(ctx context.Context) error { return p.Release(ctx, a) }},
				{"status", p.Status},
				{"usage", func(ctx context.Context) error { _, err := p.Usage(ctx); return err }},
			} {
				b.Run(fmt.Sprintf("%s/leases=%d/%s", op.name, size, shape), func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						if err := op.call(b.Context()); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		}
	}
}

// The floor under "add and del": a map of as many leases.
func BenchmarkFloorMap(b *testing.B) {
	for _, size := range []int{10, 1_000, 60_000} {
		leases := map[netip.Addr]ipam.Owner{}
		addr := netip.MustParseAddr("10.1.0.0")
		for i := range size {
			leases[addr] = ipam.Owner{ContainerID: strconv.Itoa(i), IfName: "eth0"}
			addr = addr.Next()
		}
		b.Run(fmt.Sprintf("leases=%d", size), func(b *testing.B) {
			for b.Loop() {
				leases[addr] = ipam.Owner{ContainerID: "a", IfName: "eth0"}
				delete(leases, addr)
			}
		})
	}
}

// benchPool returns a pool with so many leases of 65533 addresses. The quarantine is
// over at once: it costs what a longer one does, and exhausts nothing.
func benchPool(b *testing.B, leases int, sparse bool) *ipam.Pool {
	b.Helper()
	p, err := ipam.NewPool(ipam.NewMemory(ipam.MemoryOptions{Rest: time.Nanosecond}), ipam.PoolOptions{Quarantine: time.Nanosecond},
		ipam.RangeSet{{Subnet: netip.MustParsePrefix("10.1.0.0/16")}})
	if err != nil {
		b.Fatal(err)
	}
	owner := func(i int) ipam.Owner { return ipam.Owner{ContainerID: strconv.Itoa(i), IfName: "eth0"} }
	step := 1
	if sparse {
		step = 2
	}
	n := min(step*leases, 65_000)
	for i := range n {
		if _, err := p.Allocate(b.Context(), owner(i), ipam.Options{}); err != nil {
			b.Fatal(err)
		}
	}
	for i := 0; sparse && i < 2*(n-leases); i += 2 {
		if err := p.Release(b.Context(), owner(i)); err != nil {
			b.Fatal(err)
		}
	}
	return p
}
