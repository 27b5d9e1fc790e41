package overlay

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/internal/testenv"
)

// fewMACs makes collisions of tunnel addresses likely.
func fewMACs(uid string) MAC { return MAC{2, 0, 0, 0, 0, TunnelMAC(uid)[5] % 32} }

// anyNode draws a node from so few values that every kind of conflict is common.
func anyNode(r *rand.Rand) Node {
	n := Node{Name: fmt.Sprint("n", r.IntN(20)), UID: fmt.Sprint("u", r.IntN(20)), Created: time.Unix(int64(r.IntN(5)), 0)}
	if r.IntN(8) == 0 {
		n.Created = time.Time{}
	}
	if r.IntN(20) == 0 {
		n.UID = ""
	}
	for range r.IntN(4) {
		n.PodCIDRs = append(n.PodCIDRs, pick(r, "", "10.1.0.0/15", "10.%d.0.0/16", "10.%d.64.0/18", "10.%d.1.3/24", "fd00:%d::/64",
			"fd00::%d:0/112", "192.0.%d.0/24"))
	}
	for range r.IntN(3) {
		n.Addresses = append(n.Addresses, pick(r, "", "192.0.%d.1", "192.0.2.%d", "10.%d.1.1", "fd00::%d"))
	}
	return n
}

// pick draws a format and puts a number from 1 to 4 into it.
func pick(r *rand.Rand, formats ...string) string {
	f := formats[r.IntN(len(formats))]
	if !slices.ContainsFunc([]rune(f), func(c rune) bool { return c == '%' }) {
		return f
	}
	return fmt.Sprintf(f, 1+r.IntN(4))
}

func TestPlanProperties(t *testing.T) {
	local := Local{NodeName: "n1", HostRoutes: []netip.Prefix{netip.MustParsePrefix("10.3.0.0/16")}}
	for seed := range uint64(testenv.Scale(t, 100)) {
		r := rand.New(rand.NewPCG(seed, 0))
		var nodes []Node
		for range r.IntN(30) {
			nodes = append(nodes, anyNode(r))
		}
		want := plan(nodes, local, Policy{}, fewMACs)
		requireSound(t, want, local)

		for range 5 {
			shuffled := slices.Clone(nodes)
			r.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
			require.Equal(t, want, plan(shuffled, local, Policy{}, fewMACs), "seed %d: the order must not matter", seed)
		}
		requireNoTrace(t, nodes, fewMACs)
		requireAgreement(t, nodes, fewMACs)
	}
}

// requireSound checks that nothing in the topology is in conflict with anything else in it.
func requireSound(t *testing.T, top Topology, local Local) {
	t.Helper()
	peers := slices.Clone(top.Peers)
	require.True(t, slices.IsSortedFunc(peers, func(a, b Peer) int { return strings.Compare(a.Name, b.Name) }))
	if top.Self != nil {
		require.Equal(t, local.NodeName, top.Self.Name)
		peers = append(peers, *top.Self)
	}
	names, uids, macs, addrs := map[string]bool{}, map[string]bool{}, map[MAC]bool{}, map[netip.Addr]bool{}
	var pods []netip.Prefix
	for _, p := range peers {
		require.NotEmpty(t, p.PodCIDRs)
		require.True(t, p.Underlay.Is4() && p.Underlay.IsGlobalUnicast())
		require.False(t, names[p.Name] || uids[p.UID] || macs[p.MAC] || addrs[p.Underlay], "%v", top)
		names[p.Name], uids[p.UID], macs[p.MAC], addrs[p.Underlay] = true, true, true, true
		for _, c := range p.PodCIDRs {
			require.Equal(t, c.Masked(), c)
			require.False(t, slices.ContainsFunc(pods, c.Overlaps), "%v overlaps: %v", c, top)
			require.False(t, slices.ContainsFunc(local.HostRoutes, c.Overlaps))
			pods = append(pods, c)
		}
	}
	for _, p := range peers {
		for _, c := range pods {
			require.False(t, c.Contains(p.Underlay), "%v contains %v", c, p.Underlay)
		}
	}
	for _, p := range top.Problems {
		require.NotEmpty(t, p.Kind)
		require.Contains(t, p.Message, fmt.Sprintf("node %q: ", p.Node))
	}
}

// requireNoTrace checks that a node that is left out changes nothing for the others: without it the peers are the same.
func requireNoTrace(t *testing.T, nodes []Node, mac func(string) MAC) {
	t.Helper()
	want := plan(nodes, Local{}, Policy{}, mac)
	isPeer := func(n Node) bool {
		return slices.ContainsFunc(want.Peers, func(p Peer) bool { return p.Name == n.Name && p.UID == n.UID })
	}
	for i, n := range nodes {
		if !isPeer(n) {
			got := plan(slices.Delete(slices.Clone(nodes), i, i+1), Local{}, Policy{}, mac)
			require.Equal(t, want.Peers, got.Peers, "without %v", n)
		}
	}
}

// requireAgreement checks that every node sees the same peers, itself among them.
func requireAgreement(t *testing.T, nodes []Node, mac func(string) MAC) {
	t.Helper()
	all := plan(nodes, Local{}, Policy{}, mac).Peers
	for i, p := range all {
		got := plan(nodes, Local{NodeName: p.Name}, Policy{}, mac)
		require.Equal(t, p, *got.Self)
		require.Equal(t, slices.Delete(slices.Clone(all), i, i+1), append([]Peer{}, got.Peers...))
	}
}

func TestPlanMACCollision(t *testing.T) {
	same := func(string) MAC { return MAC{2, 1, 1, 1, 1, 1} }
	nodes := []Node{
		{Name: "young", UID: "1", Created: time.Unix(2, 0), PodCIDRs: []string{"10.1.1.0/24"}, Addresses: []string{"192.0.2.1"}},
		{Name: "old", UID: "2", Created: time.Unix(1, 0), PodCIDRs: []string{"10.1.2.0/24"}, Addresses: []string{"192.0.2.2"}},
	}
	got := plan(nodes, Local{NodeName: "young"}, Policy{}, same)
	require.Nil(t, got.Self)
	require.Equal(t, "old", got.Peers[0].Name)
	require.Equal(t, []Problem{{
		Node: "young", Kind: MACCollision, Value: "1", Other: "old",
		Message: `node "young": UID "1": gives the tunnel address 02:01:01:01:01:01, which the older node "old" has; recreate one of them`,
	}}, got.Problems)
}

func FuzzPlan(f *testing.F) {
	for _, s := range []string{"10.1.2.0/24", "fd00::/64", "::ffff:10.0.0.0/104", "0.0.0.0/0", "10.1.2.3", "fe80::1%eth0", "1.2.3.4/", "010.1.1.1"} {
		f.Add(s, s, "name", "uid")
	}
	f.Fuzz(func(t *testing.T, cidr, address, name, uid string) {
		local := Local{NodeName: "good"}
		good := Node{Name: "good", UID: "good-uid", Created: time.Unix(1, 0), PodCIDRs: []string{"10.9.1.0/24"}, Addresses: []string{"192.0.2.1"}}
		bad := Node{Name: name, UID: uid, Created: time.Unix(2, 0), PodCIDRs: []string{cidr, "10.9.2.0/24"}, Addresses: []string{address, "192.0.2.2"}}
		got := Plan([]Node{bad, good}, local, Policy{})
		requireSound(t, got, local)
		require.NotNil(t, got.Self, "whatever a younger node says, it does no harm")
		if len(got.Peers) == 0 {
			require.NotEmpty(t, got.Problems, "who is left out is told why")
		}
	})
}

func BenchmarkPlan(b *testing.B) {
	for _, n := range []int{100, 1_000, 10_000} {
		var nodes []Node
		for i := range n {
			nodes = append(nodes, Node{
				Name: fmt.Sprintf("node-%05d", i), UID: fmt.Sprint(i), Created: time.Unix(int64(i), 0),
				PodCIDRs:  []string{fmt.Sprintf("10.%d.%d.0/24", i>>8, i&0xff), fmt.Sprintf("fd00:%x::/64", i)},
				Addresses: []string{fmt.Sprintf("192.168.%d.%d", i>>8, i&0xff)},
			})
		}
		b.Run(fmt.Sprintf("nodes=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if got := Plan(nodes, Local{NodeName: "node-00007"}, Policy{}); len(got.Peers) != n-1 {
					b.Fatal(got.Problems)
				}
			}
		})
	}
}
