package ipam_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/cnikit/cnikit/ipam"
)

// A pool gives an owner one address out of each range set, and the same ones
// when it asks again.
func Example() {
	ctx := context.Background()
	pool, err := ipam.NewPool(ipam.NewMemory(ipam.MemoryOptions{}), ipam.PoolOptions{},
		ipam.RangeSet{{Subnet: netip.MustParsePrefix("10.1.0.0/29")}},
		ipam.RangeSet{{Subnet: netip.MustParsePrefix("fd00:1::/64")}},
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, id := range []string{"web", "db", "web"} {
		leases, err := pool.Allocate(ctx, ipam.Owner{ContainerID: id, IfName: "eth0"}, ipam.Options{})
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, l := range leases {
			fmt.Println(l, "via", l.Gateway)
		}
	}
	fmt.Println("release:", pool.Release(ctx, ipam.Owner{ContainerID: "web", IfName: "eth0"}))
	// Output:
	// 10.1.0.2/29 web/eth0 via 10.1.0.1
	// fd00:1::2/64 web/eth0 via fd00:1::1
	// 10.1.0.3/29 db/eth0 via 10.1.0.1
	// fd00:1::3/64 db/eth0 via fd00:1::1
	// 10.1.0.2/29 web/eth0 via 10.1.0.1
	// fd00:1::2/64 web/eth0 via fd00:1::1
	// release: <nil>
}

// Errors name what is wrong and what to do about it.
func ExampleParseRange() {
	_, err := ipam.ParseRange("10.1.0.0/24", "", "", "10.2.0.1")
	fmt.Println(err)

	r, err := ipam.ParseRange("10.1.0.0/24", "10.1.0.100", "", "")
	fmt.Println(r, r.Gateway, err)
	// Output:
	// gateway="10.2.0.1": is outside the subnet 10.1.0.0/24; name an address of the subnet or leave it out for the default
	// 10.1.0.100-10.1.0.254 10.1.0.1 <nil>
}

// Status tells that a range set is exhausted before an Allocate fails.
func ExamplePool_Status() {
	ctx := context.Background()
	pool, _ := ipam.NewPool(ipam.NewMemory(ipam.MemoryOptions{}), ipam.PoolOptions{}, ipam.RangeSet{{Subnet: netip.MustParsePrefix("10.1.0.0/30")}})
	fmt.Println(pool.Status(ctx))
	_, _ = pool.Allocate(ctx, ipam.Owner{ContainerID: "web", IfName: "eth0"}, ipam.Options{})
	err := pool.Status(ctx)
	fmt.Println(errors.Is(err, ipam.ErrExhausted), err)
	// Output:
	// <nil>
	// true range set 0 (10.1.0.1-10.1.0.2): no free address: all 1 are taken; release stale leases (GC) or widen the range
}
