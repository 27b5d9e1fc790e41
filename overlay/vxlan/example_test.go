package vxlan_test

import (
	"fmt"
	"net/netip"

	"github.com/cnikit/cnikit/overlay/vxlan"
)

// A configuration is checked before anything is done, and says what to do instead.
func ExampleNew() {
	_, err := vxlan.New(vxlan.Config{VNI: 1 << 24})
	fmt.Println(err)

	backend, err := vxlan.New(vxlan.Config{VNI: 42})
	fmt.Println(backend.Name(), backend.Overhead(), err)
	for _, target := range backend.Targets() {
		fmt.Println(target.Name())
	}
	// Output:
	// configure vxlan: vni=16777216: not a VXLAN network identifier; use 1 to 16777215
	// vxlan 50 <nil>
	// vxlan device
	// vxlan sysctls
	// vxlan addresses
	// vxlan forwarding entries
	// vxlan neighbours
	// vxlan routes
}

// The metric depends on the Pod CIDR alone, so a Pod CIDR that moves to another node
// keeps its place in the routing table.
func ExampleMetric() {
	fmt.Println(vxlan.Metric(netip.MustParsePrefix("10.244.1.0/24")))
	fmt.Println(vxlan.Metric(netip.MustParsePrefix("10.244.2.0/24")))
	fmt.Println(vxlan.Metric(netip.MustParsePrefix("fd00:10:244:1::/64")))
	// Output:
	// 26635448
	// 28299876
	// 1024
}
