package hostlocal_test

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/cnikit/cnikit/ipam"
	"github.com/cnikit/cnikit/ipam/hostlocal"
)

// Released addresses rest for as long as the pool says, if the store keeps the times of
// release as long.
func ExampleOptions() {
	dataDir, err := os.MkdirTemp("", "networks")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dataDir) }()

	for _, rest := range []time.Duration{0, time.Minute} {
		store, err := hostlocal.New(dataDir, "mynet", hostlocal.Options{Rest: rest})
		if err != nil {
			fmt.Println(err)
			return
		}
		_, err = ipam.NewPool(store, ipam.PoolOptions{Quarantine: time.Minute}, ipam.RangeSet{{Subnet: netip.MustParsePrefix("10.1.0.0/24")}})
		fmt.Println(err)
	}
	// Output:
	// quarantine 1m0s: the store keeps times of release for 0s only; set Rest in its options (hostlocal.Options, ipam.MemoryOptions) to at least 1m0s
	// <nil>
}

// A store on disk, and what it looks like: the directory of host-local.
func Example() {
	dataDir, err := os.MkdirTemp("", "networks")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dataDir) }()

	store, err := hostlocal.New(dataDir, "mynet", hostlocal.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	pool, err := ipam.NewPool(store, ipam.PoolOptions{}, ipam.RangeSet{{Subnet: netip.MustParsePrefix("10.1.0.0/24")}})
	if err != nil {
		fmt.Println(err)
		return
	}
	leases, err := pool.Allocate(context.Background(), ipam.Owner{ContainerID: "web", IfName: "eth0"}, ipam.Options{})
	fmt.Println(leases, err)

	content, err := os.ReadFile(filepath.Join(dataDir, "mynet", "10.1.0.2"))
	fmt.Printf("%q %v\n", content, err)
	// Output:
	// [10.1.0.2/24 web/eth0] <nil>
	// "web\r\neth0" <nil>
}
