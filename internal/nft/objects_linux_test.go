package nft_test

import (
	"testing"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/internal/netns"
	"github.com/cnikit/cnikit/internal/nft"
	"github.com/cnikit/cnikit/internal/testenv"
)

// TestObjects writes with google/nftables and reads with the package, so that the two
// check each other.
func TestObjects(t *testing.T) {
	testenv.NetAdmin(t)
	ns := newNS(t)

	require.Empty(t, list(t, ns), "a new namespace has no nftables objects")

	conn, err := nftables.New(nftables.WithNetNSFd(ns.Fd()))
	require.NoError(t, err)
	table := conn.AddTable(&nftables.Table{Name: "left", Family: nftables.TableFamilyINet})
	require.NoError(t, conn.Flush())
	require.Equal(t, []string{"table inet left"}, list(t, ns))

	write(t, conn, table)
	require.ElementsMatch(t, []string{ // a set has no order
		"table inet left",
		"chain inet left forward",
		"rule inet left forward handle 5 counter",
		"set inet left members",
		"element inet left members 0a000001",
		"element inet left members 0a000002",
		"set inet left learned",
		"object inet left hits",
	}, list(t, ns))

	conn.DelTable(table)
	require.NoError(t, conn.Flush())
	require.Empty(t, list(t, ns))
}

func TestFlush(t *testing.T) {
	testenv.NetAdmin(t)
	ns := newNS(t)
	require.NoError(t, nft.Flush(ns), "nothing to delete is no error")
	conn, err := nftables.New(nftables.WithNetNSFd(ns.Fd()))
	require.NoError(t, err)
	for _, family := range []nftables.TableFamily{nftables.TableFamilyINet, nftables.TableFamilyIPv4} {
		write(t, conn, conn.AddTable(&nftables.Table{Name: "left", Family: family}))
	}
	require.NotEmpty(t, list(t, ns))
	require.NoError(t, nft.Flush(ns))
	require.Empty(t, list(t, ns))
}

func write(t *testing.T, conn *nftables.Conn, table *nftables.Table) {
	t.Helper()
	chain := conn.AddChain(&nftables.Chain{
		Name: "forward", Table: table, Type: nftables.ChainTypeFilter,
		Hooknum: nftables.ChainHookForward, Priority: nftables.ChainPriorityFilter,
	})
	members := &nftables.Set{Table: table, Name: "members", KeyType: nftables.TypeIPAddr}
	require.NoError(t, conn.AddSet(members, []nftables.SetElement{{Key: []byte{10, 0, 0, 2}}, {Key: []byte{10, 0, 0, 1}}}))
	learned := &nftables.Set{Table: table, Name: "learned", KeyType: nftables.TypeIPAddr, HasTimeout: true, Dynamic: true}
	require.NoError(t, conn.AddSet(learned, []nftables.SetElement{{Key: []byte{10, 0, 0, 3}}}))
	conn.AddObj(&nftables.CounterObj{Table: table, Name: "hits"})
	conn.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: []expr.Any{&expr.Counter{}}})
	require.NoError(t, conn.Flush())
}

func list(t *testing.T, ns *netns.NS) []string {
	t.Helper()
	objects, err := nft.Objects(ns)
	require.NoError(t, err)
	var lines []string
	for _, o := range objects {
		lines = append(lines, o.String())
	}
	return lines
}

func newNS(t *testing.T) *netns.NS {
	t.Helper()
	ns, err := netns.New()
	require.NoError(t, err)
	t.Cleanup(func() { _ = ns.Close() })
	return ns
}
