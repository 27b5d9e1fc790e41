package main

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/cnikit/cnikit/overlay"
)

// The address plan: node N has the address 192.0.2.N on the underlay and gives its pods
// addresses of 10.244.N.0/24 and fd00:10:244:N::/64.
const (
	underlayMTU = 1500

	// vxlanOverhead is what the tunnel adds to a packet, in bytes: Ethernet (14), VXLAN
	// (8), UDP (8) and IPv4 (20) headers.
	vxlanOverhead = 50

	// podMTU is therefore the largest packet that a pod can send unfragmented.
	podMTU = underlayMTU - vxlanOverhead

	underlayBits = 24
	network      = "cnikit"
	device       = "cnikit.5000"
)

func nodeName(number int) string { return fmt.Sprintf("node%d", number) }

func nodeAddr(number int) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, byte(number)}) }

// member is the node as the topology lists it. The later a node, the younger it is.
func member(number int) overlay.Node {
	return overlay.Node{
		Name:      nodeName(number),
		UID:       fmt.Sprintf("00000000-0000-4000-8000-%012d", number),
		Created:   time.Date(2025, time.January, 1, 0, number, 0, 0, time.UTC),
		PodCIDRs:  []string{fmt.Sprintf("10.244.%d.0/24", number), fmt.Sprintf("fd00:10:244:%x::/64", number)},
		Addresses: []string{nodeAddr(number).String()},
	}
}

// tunnelAddrs are a node's own addresses in the overlay: the network addresses of its Pod
// CIDRs.
func tunnelAddrs(n overlay.Node) []string {
	var addrs []string
	for _, cidr := range n.PodCIDRs {
		addrs = append(addrs, netip.MustParsePrefix(cidr).Addr().String())
	}
	return addrs
}
