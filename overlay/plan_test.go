package overlay_test

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/overlay"
)

// day returns a creation time; nodes of a lower day are older.
func day(n int) time.Time { return time.Date(2025, 1, n, 0, 0, 0, 0, time.UTC) }

// node returns a good node named and identified by name, created on a day, with an address and Pod CIDRs.
func node(name string, created int, address string, podCIDRs ...string) overlay.Node {
	return overlay.Node{
		Name: name, UID: "uid-" + name, Created: day(created), PodCIDRs: podCIDRs, Addresses: []string{address},
	}
}

// good is a network without problems.
func good() []overlay.Node {
	return []overlay.Node{
		node("a", 1, "192.0.2.1", "10.1.1.0/24", "fd00:1:1::/64"),
		node("b", 2, "192.0.2.2", "10.1.2.0/24", "fd00:1:2::/64"),
		node("c", 3, "192.0.2.3", "10.1.3.0/24", "fd00:1:3::/64"),
	}
}

func prefixes(ss ...string) []netip.Prefix {
	var ps []netip.Prefix
	for _, s := range ss {
		ps = append(ps, netip.MustParsePrefix(s))
	}
	return ps
}

var onA = overlay.Local{NodeName: "a"}

func TestPlanGood(t *testing.T) {
	got := overlay.Plan(good(), onA, overlay.Policy{})
	require.Empty(t, got.Problems)
	require.Equal(t, &overlay.Peer{
		Name: "a", UID: "uid-a", MAC: overlay.TunnelMAC("uid-a"), Underlay: netip.MustParseAddr("192.0.2.1"),
		PodCIDRs: prefixes("10.1.1.0/24", "fd00:1:1::/64"), Path: overlay.Tunnel,
	}, got.Self)
	require.Len(t, got.Peers, 2)
	require.Equal(t, "b", got.Peers[0].Name)
	require.Equal(t, "c", got.Peers[1].Name)
}

// Each case adds a node to the good network, or changes one, and says what is different then.
func TestPlanProblems(t *testing.T) {
	for _, tc := range []struct {
		rule   string
		add    overlay.Node
		local  overlay.Local
		peers  string // of node a, with their Pod CIDRs
		kind   string
		other  string
		phrase string // value, reason or way out
	}{
		{"pod cidr/malformed", node("x", 9, "192.0.2.9", "10.1.9.0-24"), onA, "b2 c2", overlay.BadPodCIDR, "",
			`node "x": pod CIDR "10.1.9.0-24": is no prefix; write`},
		{"pod cidr/host bits", node("x", 9, "192.0.2.9", "10.1.9.7/24"), onA, "b2 c2", overlay.BadPodCIDR, "", "write 10.1.9.0/24"},
		{"pod cidr/ipv4 in ipv6", node("x", 9, "192.0.2.9", "::ffff:10.1.9.0/120"), onA, "b2 c2", overlay.BadPodCIDR, "", "as IPv4"},
		{"pod cidr/too small", node("x", 9, "192.0.2.9", "10.1.9.2/31"), onA, "b2 c2", overlay.BadPodCIDR, "", "four addresses"},
		{"pod cidr/everything", node("x", 0, "192.0.2.9", "0.0.0.0/0", "::/0"), onA, "b2 c2", overlay.BadPodCIDR, "", "another use"},
		{"pod cidr/link-local", node("x", 0, "192.0.2.9", "fe80::/64"), onA, "b2 c2", overlay.BadPodCIDR, "", "fe80::/10"},
		{"pod cidr/one bad, the other family stays", node("x", 9, "192.0.2.9", "10.1.9.0/33", "fd00:1:9::/64"), onA, "b2 c2 x1",
			overlay.BadPodCIDR, "", `"10.1.9.0/33"`},
		{"pod cidr/none", node("x", 9, "192.0.2.9"), onA, "b2 c2", overlay.NoPodCIDR, "", "assign one"},
		{"address/none", overlay.Node{Name: "x", UID: "u", PodCIDRs: []string{"10.1.9.0/24"}}, onA, "b2 c2", overlay.NoAddress, "",
			"none is an IPv4 unicast address"},
		{"address/unusable", node("x", 9, "fd00::9", "10.1.9.0/24"), onA, "b2 c2", overlay.NoAddress, "", `"fd00::9"`},
		{"address/with a prefix length", node("x", 9, "192.0.2.9/24", "10.1.9.0/24"), onA, "b2 c2", overlay.NoAddress, "",
			`node "x": address "192.0.2.9/24": has a prefix length; write 192.0.2.9`},
		{"address/with a prefix length, unusable without", node("x", 9, "fd00::9/64", "10.1.9.0/24"), onA, "b2 c2", overlay.NoAddress, "",
			"none is an IPv4 unicast address"},
		{"address/duplicate, the older wins", node("x", 9, "192.0.2.2", "10.1.9.0/24"), onA, "b2 c2", overlay.DuplicateAddress, "b",
			`node "x": address "192.0.2.2": the older node "b" has the same`},
		{"address/in the pods of an older node", node("x", 9, "10.1.2.77", "10.1.9.0/24"), onA, "b2 c2", overlay.AddressInPods, "b",
			`lies in a pod CIDR of the older node "b"`},
		{"overlap/equal, the older wins", node("x", 9, "192.0.2.9", "10.1.2.0/24"), onA, "b2 c2", overlay.PodCIDROverlap, "b",
			`node "x": pod CIDR "10.1.2.0/24": overlaps one of the older node "b"; assign`},
		{"overlap/inside", node("x", 9, "192.0.2.9", "10.1.2.128/25"), onA, "b2 c2", overlay.PodCIDROverlap, "b", `"b"`},
		{"overlap/around", node("x", 9, "192.0.2.9", "10.1.0.0/16"), onA, "b2 c2", overlay.PodCIDROverlap, "a", `"a"`},
		{"overlap/with the own node", node("x", 9, "192.0.2.9", "10.1.1.0/24"), onA, "b2 c2", overlay.PodCIDROverlap, "a", `"a"`},
		{"overlap/of one family only", node("x", 9, "192.0.2.9", "10.1.2.0/24", "fd00:1:9::/64"), onA, "b2 c2 x1",
			overlay.PodCIDROverlap, "b", "10.1.2.0/24"},
		{"overlap/with itself", node("x", 9, "192.0.2.9", "10.1.9.0/24", "10.1.9.128/25"), onA, "b2 c2 x1",
			overlay.PodCIDROverlap, "x", "of the node itself"},
		{"overlap/a newcomer without a creation time loses", overlay.Node{Name: "x", UID: "0", PodCIDRs: []string{"10.1.3.0/24"},
			Addresses: []string{"192.0.2.9"}}, onA, "b2 c2", overlay.PodCIDROverlap, "c", `"c"`},
		{"overlap/of equal age the lower uid wins", overlay.Node{Name: "bb", UID: "zzz", Created: day(3), PodCIDRs: []string{"10.1.3.0/24"},
			Addresses: []string{"192.0.2.9"}}, onA, "b2 c2", overlay.PodCIDROverlap, "c", `"c"`},
		{"overlap/with the address of an older node", node("x", 9, "192.0.2.9", "192.0.2.0/28"), onA, "b2 c2", overlay.PodCIDROnNode, "a",
			`contains the address of the older node "a"`},
		{"overlap/with its own address", node("x", 0, "198.51.100.9", "198.51.100.0/24"), onA, "b2 c2", overlay.PodCIDROnNode, "x",
			"contains the address of the node itself"},
		{"uid/missing", overlay.Node{Name: "x", PodCIDRs: []string{"10.1.9.0/24"}, Addresses: []string{"192.0.2.9"}}, onA, "b2 c2",
			overlay.BadUID, "", "is missing"},
		{"uid/duplicate", overlay.Node{Name: "x", UID: "uid-b", Created: day(9), PodCIDRs: []string{"10.1.9.0/24"},
			Addresses: []string{"192.0.2.9"}}, onA, "b2 c2", overlay.BadUID, "b", `the older node "b" has the same`},
		{"name/missing", node("", 9, "192.0.2.9", "10.1.9.0/24"), onA, "b2 c2", overlay.BadName, "", "give every node one"},
		{"name/duplicate", overlay.Node{Name: "b", UID: "u", Created: day(9), PodCIDRs: []string{"10.1.9.0/24"},
			Addresses: []string{"192.0.2.9"}}, onA, "b2 c2", overlay.BadName, "b", "older node has the same name"},
		{"host/overlap with a route of this host", node("x", 0, "192.0.2.9", "172.17.0.0/16", "fd00:1:9::/64"),
			overlay.Local{NodeName: "a", HostRoutes: prefixes("0.0.0.0/0", "172.17.128.0/17")}, "b2 c2 x1", overlay.HostOverlap, "",
			"overlaps 172.17.128.0/17, which this host reaches otherwise"},
		{"host/overlap with an own subnet", node("x", 9, "192.0.2.9", "192.0.2.128/25"),
			overlay.Local{NodeName: "a", Underlay: prefixes("192.0.2.1/24")}, "b2 c2", overlay.HostOverlap, "", "192.0.2.0/24"},
		{"host/a local problem does not give the prefix to the loser", node("x", 9, "192.0.2.9", "10.1.2.0/24"),
			overlay.Local{NodeName: "a", HostRoutes: prefixes("10.1.2.0/24")}, "b1 c2", overlay.PodCIDROverlap, "b", `"b"`},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			got := overlay.Plan(append(good(), tc.add), tc.local, overlay.Policy{})
			var peers []string
			for _, p := range got.Peers {
				peers = append(peers, p.Name+string(rune('0'+len(p.PodCIDRs))))
			}
			require.Equal(t, tc.peers, strings.Join(peers, " "), "%v", got)
			require.NotNil(t, got.Self)
			require.Len(t, got.Self.PodCIDRs, 2)
			i := slices.IndexFunc(got.Problems, func(p overlay.Problem) bool { return p.Kind == tc.kind && p.Node == tc.add.Name })
			require.GreaterOrEqual(t, i, 0, "%v", got)
			require.Equal(t, tc.other, got.Problems[i].Other)
			require.Contains(t, got.Problems[i].Message, tc.phrase)
			for _, p := range got.Problems {
				if p.Kind != overlay.HostOverlap {
					require.Equal(t, tc.add.Name, p.Node, "only the bad node has problems")
				}
			}
		})
	}
}

func TestPlanSelf(t *testing.T) {
	for _, tc := range []struct {
		rule  string
		nodes []overlay.Node
		local overlay.Local
		kind  string
	}{
		{"absent", good()[1:], onA, overlay.NotHere},
		{"no name", good(), overlay.Local{}, overlay.NotHere},
		{"unusable", append(good()[1:], node("a", 1, "", "10.1.1.0/24")), onA, overlay.NoAddress},
		{"loses its pod cidr", append(good()[1:], node("a", 9, "192.0.2.1", "10.1.2.0/24")), onA, overlay.PodCIDROverlap},
		{"address is not on this host", good(), overlay.Local{NodeName: "a", Underlay: prefixes("192.0.2.77/24")}, overlay.NotHere},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			got := overlay.Plan(tc.nodes, tc.local, overlay.Policy{})
			require.Nil(t, got.Self)
			require.Len(t, got.Problems, 1)
			require.Equal(t, tc.kind, got.Problems[0].Kind)
			require.Equal(t, tc.local.NodeName, got.Problems[0].Node)
			require.GreaterOrEqual(t, len(got.Peers), 2, "the peers do not suffer")
		})
	}
}

func TestPlanSelfUnknown(t *testing.T) {
	many := append(good()[1:], node("e", 5, "192.0.2.5", "10.1.5.0/24"), node("d", 4, "192.0.2.4", "10.1.4.0/24"), node("d", 4, "", ""))
	for _, tc := range []struct {
		rule  string
		nodes []overlay.Node
		name  string
		want  string
	}{
		{"a few known names", good()[1:], "a", `node "a": is not among the nodes, which are "b", "c"; correct the name, or add the node`},
		{"not all names", many, "a", `node "a": is not among the nodes, which are "b", "c", "d" and 1 more; correct the name, or add the node`},
		{"no names", nil, "a", `node "a": is not among the nodes, of which there are none; add the node`},
		{"nameless nodes do not count", []overlay.Node{{}}, "a", `node "a": is not among the nodes, of which there are none; add the node`},
		{"the own name is empty", good(), "", `node "": the own name is empty; give the name that this node has among the nodes`},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			got := overlay.Plan(tc.nodes, overlay.Local{NodeName: tc.name}, overlay.Policy{})
			i := slices.IndexFunc(got.Problems, func(p overlay.Problem) bool { return p.Kind == overlay.NotHere })
			require.GreaterOrEqual(t, i, 0)
			require.Equal(t, overlay.Problem{Node: tc.name, Kind: overlay.NotHere, Value: tc.name, Message: tc.want}, got.Problems[i])
		})
	}
}

func TestPlanSaysEverythingOnce(t *testing.T) {
	bad := node("x", 9, "192.0.2.9", "bad", "bad")
	got := overlay.Plan(append(good(), bad, bad), onA, overlay.Policy{})
	require.Len(t, got.Problems, 1)
}

func TestPlanAddressRule(t *testing.T) {
	n := node("b", 2, "", "10.1.2.0/24")
	n.Addresses = []string{"nonsense", "fd00::2", "::ffff:192.0.2.7", "127.0.0.1", "169.254.1.1", "224.0.0.1", "0.0.0.0", "192.0.2.2", "192.0.2.3"}
	got := overlay.Plan([]overlay.Node{good()[0], n}, onA, overlay.Policy{})
	require.Equal(t, netip.MustParseAddr("192.0.2.2"), got.Peers[0].Underlay, "the first IPv4 unicast address")
}

func TestPlanPath(t *testing.T) {
	nodes := append(good(), node("far", 4, "198.51.100.4", "10.1.4.0/24"))
	local := overlay.Local{NodeName: "a", Underlay: prefixes("192.0.2.1/24")}
	direct := overlay.Plan(nodes, local, overlay.Policy{DirectOnLink: true}).Peers
	require.Equal(t, overlay.Direct, direct[0].Path)
	require.Equal(t, overlay.Tunnel, direct[2].Path)
	for _, p := range overlay.Plan(nodes, local, overlay.Policy{}).Peers {
		require.Equal(t, overlay.Tunnel, p.Path)
	}
}

func TestTunnelMAC(t *testing.T) {
	require.Equal(t, "72:8a:c4:ed:66:aa", overlay.TunnelMAC("4f9f8b1e-6c1a-4f9e-8f53-0d3a5b0f6c11").String(),
		"a change would cut every running network off from its upgraded nodes")
	seen := map[overlay.MAC]bool{}
	for range 10_000 {
		m := overlay.TunnelMAC(time.Duration(rand.Int64()).String())
		require.Equal(t, byte(0x02), m[0]&0x03, "locally administered, not a group")
		require.False(t, seen[m])
		seen[m] = true
	}
}
