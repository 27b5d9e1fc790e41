package overlay_test

import (
	"fmt"
	"time"

	"github.com/cnikit/cnikit/overlay"
)

// Plan sorts out a network in which one node is fine, one is new and claims what another has, and one has a typing error.
func ExamplePlan() {
	at := func(day int) time.Time { return time.Date(2025, 3, day, 0, 0, 0, 0, time.UTC) }
	topology := overlay.Plan([]overlay.Node{
		{Name: "node-a", UID: "a1", Created: at(1), Addresses: []string{"192.0.2.1"}, PodCIDRs: []string{"10.1.1.0/24"}},
		{Name: "node-b", UID: "b1", Created: at(2), Addresses: []string{"192.0.2.2"}, PodCIDRs: []string{"10.1.2.0/24", "fd00:2::/64"}},
		{Name: "node-c", UID: "c1", Created: at(3), Addresses: []string{"192.0.2.3"}, PodCIDRs: []string{"10.1.2.0/25"}},
		{Name: "node-d", UID: "d1", Created: at(4), Addresses: []string{"192.0.2.4"}, PodCIDRs: []string{"10.1.4.1/24"}},
	}, overlay.Local{NodeName: "node-a"}, overlay.Policy{})
	fmt.Print(topology)
	// Output:
	// self node-a at 192.0.2.1 by tunnel, MAC 7a:5a:e4:b4:a7:28, pods [10.1.1.0/24]
	// peer node-b at 192.0.2.2 by tunnel, MAC 82:58:1f:bb:48:c6, pods [10.1.2.0/24 fd00:2::/64]
	// problem: node "node-c": pod CIDR "10.1.2.0/25": overlaps one of the older node "node-b"; assign the node another one
	// problem: node "node-d": pod CIDR "10.1.4.1/24": has host bits set; write 10.1.4.0/24 if that is meant
}

// A Tracker keeps the nodes of a source and plans anew on each change. This one has no backend and tells what it finds wrong.
func ExampleTracker() {
	tracker := overlay.NewTracker(nil, overlay.TrackerOptions{
		Local:      overlay.Local{NodeName: "node-a"},
		OnProblems: func(ps []overlay.Problem) { fmt.Println("problems:", ps) },
	})
	tracker.Replace([]overlay.Node{
		{Name: "node-a", UID: "a1", Addresses: []string{"192.0.2.1"}, PodCIDRs: []string{"10.1.1.0/24"}},
	})
	tracker.Upsert(overlay.Node{Name: "node-b", UID: "b1", PodCIDRs: []string{"10.1.2.0/24"}})
	topology, _ := tracker.Topology()
	fmt.Println("peers:", len(topology.Peers))
	// Output:
	// problems: [node "node-b": addresses "": none is an IPv4 unicast address; give the node one that the others reach]
	// peers: 0
}
