package ipam_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

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
	// true range set 0 (10.1.0.1-10.1.0.2): no free address: all 1 that may be handed out are taken (1 kept back as gateway, excluded, network or broadcast address); release stale leases (GC) or widen the range
}

// An owner can ask for an address; it gets that one or an error.
func ExampleOptions() {
	ctx := context.Background()
	pool, _ := ipam.NewPool(ipam.NewMemory(ipam.MemoryOptions{}), ipam.PoolOptions{}, ipam.RangeSet{{Subnet: netip.MustParsePrefix("10.1.0.0/24")}})
	want := ipam.Options{Requested: []netip.Addr{netip.MustParseAddr("10.1.0.50")}}
	for _, id := range []string{"web", "db"} {
		leases, err := pool.Allocate(ctx, ipam.Owner{ContainerID: id, IfName: "eth0"}, want)
		fmt.Println(leases, errors.Is(err, ipam.ErrTaken))
	}
	// Output:
	// [10.1.0.50/24 web/eth0] false
	// [] true
}

// Parts of a subnet can be kept back, addresses can rest after their release, and an
// owner that asks twice can be refused.
func ExamplePoolOptions() {
	ctx := context.Background()
	routers, _ := ipam.ParseExclude("10.1.0.4/30")
	pool, err := ipam.NewPool(ipam.NewMemory(ipam.MemoryOptions{Rest: time.Hour}),
		ipam.PoolOptions{Quarantine: time.Hour, RefuseHeld: true},
		ipam.RangeSet{{Subnet: netip.MustParsePrefix("10.1.0.0/29"), Exclude: []netip.Prefix{routers}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	web, db := ipam.Owner{ContainerID: "web", IfName: "eth0"}, ipam.Owner{ContainerID: "db", IfName: "eth0"}
	fmt.Println(pool.Allocate(ctx, web, ipam.Options{}))
	fmt.Println(pool.Allocate(ctx, web, ipam.Options{}))
	fmt.Println(pool.Release(ctx, web))
	fmt.Println(pool.Allocate(ctx, web, ipam.Options{}))
	_, err = pool.Allocate(ctx, db, ipam.Options{})
	var full *ipam.ExhaustedError
	fmt.Println(errors.As(err, &full), full.Size, full.Resting, time.Until(full.Next) > 50*time.Minute)
	// Output:
	// [10.1.0.2/29 web/eth0] <nil>
	// [] owner already holds an address: web/eth0 has 10.1.0.2; delete its attachment first
	// <nil>
	// [10.1.0.3/29 web/eth0] <nil>
	// true 2 1 true
}

// A pool tells what is in use, also what a changed configuration has no place for.
func ExamplePool_Usage() {
	ctx := context.Background()
	store := ipam.NewMemory(ipam.MemoryOptions{})
	before, _ := ipam.NewPool(store, ipam.PoolOptions{}, ipam.RangeSet{{Subnet: netip.MustParsePrefix("10.1.0.0/24")}})
	for _, id := range []string{"web", "db", "cache"} {
		_, _ = before.Allocate(ctx, ipam.Owner{ContainerID: id, IfName: "eth0"}, ipam.Options{})
	}
	after, _ := ipam.NewPool(store, ipam.PoolOptions{}, ipam.RangeSet{
		{Subnet: netip.MustParsePrefix("10.1.0.0/24"), Start: netip.MustParseAddr("10.1.0.4"), End: netip.MustParseAddr("10.1.0.9")},
		{Subnet: netip.MustParsePrefix("10.2.0.0/16")},
	})
	usage, err := after.Usage(ctx)
	fmt.Print(usage)
	fmt.Println(usage.Sets[0].Free(), err)
	// Output:
	// set 0: 10.1.0.4-10.1.0.9: 1 of 6 used
	// set 0: 10.2.0.1-10.2.255.254: 0 of 65533 used
	// outside: 10.1.0.2/32 web/eth0
	// outside: 10.1.0.3/32 db/eth0
	// 65538 <nil>
}
