package netif_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/cnikit/cnikit/cni/netif"
)

// What a plugin does on ADD: it gives a container an interface on the bridge cni0, with
// an address and a default route. This needs root and a namespace, so that the example is
// compiled but not run.
func Example() {
	attach := func(ctx context.Context, node, pod *netif.Namespace, host string) error {
		if _, _, err := node.EnsureBridge(netif.Bridge{Name: "cni0"}); err != nil {
			return err
		}
		if _, _, err := node.CreateVeth(netif.Veth{Name: host, Peer: "eth0"}, pod); err != nil {
			return err
		}
		address := netip.MustParsePrefix("10.244.1.2/24")
		route := netif.Route{Dst: netip.MustParsePrefix("0.0.0.0/0"), Via: netip.MustParseAddr("10.244.1.1")}
		for _, step := range []func() error{
			func() error { return node.SetPort(host, "cni0", netif.PortOptions{}) },
			func() error { return pod.AddAddresses("eth0", address) },
			func() error { return pod.SetUp("eth0") },
			func() error { return pod.AddRoutes("eth0", route) },
			func() error { return node.SetUp(host) }, // last: no packet passes before
			func() error { return pod.WaitRunning(ctx, "eth0") },
			func() error { return pod.Announce("eth0", address.Addr()) },
		} {
			if err := step(); err != nil {
				return errors.Join(err, node.DeleteLink(host)) // and all that is on the pair
			}
		}
		return nil
	}

	node, err := netif.Current()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer node.Close()
	pod, err := netif.Open("/run/netns/4f1d2a")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pod.Close()
	fmt.Println(attach(context.Background(), node, pod, netif.HostName("4f1d2a", "eth0")))
}

// A plugin that stands behind others in a chain adds routes to the interface that is
// there, looks for them on CHECK and deletes them on DEL. The program examples/static-route
// is such a plugin.
func ExampleNamespace_AddRoutes() {
	pod, err := netif.Open("/run/netns/4f1d2a")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pod.Close()
	route := netif.Route{Dst: netip.MustParsePrefix("192.0.2.0/24"), Via: netip.MustParseAddr("10.244.1.9"), MTU: 1400}

	var conflict *netif.RouteConflict
	err = pod.AddRoutes("eth0", route)
	if errors.As(err, &conflict) {
		fmt.Println("the container has another route there:", conflict.Has)
	}
	routes, err := pod.Routes("eth0")
	fmt.Println("it is there:", slices.ContainsFunc(routes, route.Equal), err)
	fmt.Println("it is gone again:", pod.DeleteRoutes("eth0", route))
}

// A configuration is checked before anything is touched.
func ExampleRoute_Validate() {
	for _, route := range []netif.Route{
		{Dst: netip.MustParsePrefix("192.0.2.0/24"), Via: netip.MustParseAddr("10.244.1.9"), MTU: 1400},
		{Dst: netip.MustParsePrefix("192.0.2.7/24")},
		{Dst: netip.MustParsePrefix("192.0.2.0/24"), Via: netip.MustParseAddr("fd00::1")},
	} {
		if err := route.Validate(); err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(route)
	}
	// Output:
	// 192.0.2.0/24 via 10.244.1.9 mtu 1400
	// Dst=192.0.2.7/24: has host bits set; write 192.0.2.0/24
	// Via=fd00::1: is not of the address family of 192.0.2.0/24; use a gateway of the same family
}

// Defaults that are left out and defaults that are written down are the same.
func ExampleRoute_Equal() {
	table, scope := 254, 253
	short := netif.Route{Dst: netip.MustParsePrefix("10.5.0.0/16")}
	long := netif.Route{Dst: netip.MustParsePrefix("10.5.0.0/16"), Table: &table, Scope: &scope}
	fmt.Println(short.Equal(long))
	// Output: true
}
