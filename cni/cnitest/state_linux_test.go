package cnitest_test

import (
	"testing"

	"github.com/google/nftables"
	"github.com/stretchr/testify/require"
)

// TestStateSeesNftables writes with google/nftables what nft(8) would.
func TestStateSeesNftables(t *testing.T) {
	n := newNamespace(t)
	before := look(t, n)
	var conn *nftables.Conn
	require.NoError(t, n.Do(func() (err error) {
		conn, err = nftables.New(nftables.AsLasting())
		return err
	}))
	defer func() { require.NoError(t, conn.CloseLasting()) }()
	table := conn.AddTable(&nftables.Table{Name: "left", Family: nftables.TableFamilyIPv4})
	conn.AddChain(&nftables.Chain{Name: "forward", Table: table})
	require.NoError(t, conn.Flush())
	require.Equal(t, "+ nft chain ip left forward\n+ nft table ip left", before.Diff(look(t, n)))

	monitor := watch(t, n)
	conn.DelTable(table)
	require.NoError(t, conn.Flush())
	require.NotEmpty(t, seen(t, monitor))
	require.Empty(t, before.Diff(look(t, n)))
}
