package ipamtest_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/cnikit/cnikit/ipam"
	"github.com/cnikit/cnikit/ipam/ipamtest"
)

// attach is what an author tests: it asks twice before it gives up.
func attach(ctx context.Context, a ipam.Allocator, id string) (netip.Prefix, error) {
	o := ipam.Owner{ContainerID: id, IfName: "eth0"}
	leases, err := a.Allocate(ctx, o, ipam.Options{})
	if err != nil {
		leases, err = a.Allocate(ctx, o, ipam.Options{})
	}
	if err != nil {
		return netip.Prefix{}, err
	}
	return leases[0].Address, nil
}

// A fake hands out real leases, and fails when it is told to.
func ExampleFake() {
	ctx := context.Background()
	fake, err := ipamtest.NewFake(ipam.PoolOptions{}, ipam.RangeSet{{Subnet: netip.MustParsePrefix("10.1.0.0/30")}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fake.Fail(ipamtest.Allocate, errors.New("disk full"))
	fmt.Println(attach(ctx, fake, "web"))
	_, err = attach(ctx, fake, "db")
	fmt.Println(err)
	fmt.Print(fake)
	for _, call := range fake.Calls() {
		fmt.Println(call)
	}
	// Output:
	// 10.1.0.2/30 <nil>
	// range set 0 (10.1.0.1-10.1.0.2): no free address: all 1 that may be handed out are taken (1 kept back as gateway, excluded, network or broadcast address); release stale leases (GC) or widen the range
	// 10.1.0.2 web/eth0
	// allocate web/eth0
	// allocate web/eth0
	// allocate db/eth0
	// allocate db/eth0
}

// TestStore is what the author of a store writes.
func ExampleStore() {
	_ = func(t *testing.T) {
		ipamtest.Store(t, func(_ *testing.T, rest time.Duration) ipam.Store {
			return ipam.NewMemory(ipam.MemoryOptions{Rest: rest})
		})
	}
	// `go test` then has a subtest for each rule:
	//
	//	TestStore/reserve/takes_what_is_free
	//	TestStore/release/absent_is_nil
	//	...
}
