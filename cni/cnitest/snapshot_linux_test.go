//go:build amd64 || arm64

package cnitest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/internal/testenv"
)

// TestTablesOfIptables: a plugin is not blamed for what iptables -L leaves.
func TestTablesOfIptables(t *testing.T) {
	nft := testenv.Tool(t, "nft")
	x, err := newExam(t.Context(), filing(t, ":", ":"), Options{})
	require.NoError(t, err)
	defer x.close()
	p, err := x.probe(t.Context(), "tables")
	require.NoError(t, err)
	defer p.close()
	for rules, want := range map[string]string{
		"add table ip6 nat; add table ip filter":        "",
		"add table ip mangle; add chain ip mangle left": "+ node: nft chain ip mangle left",
		"add table ip left":                             "+ node: nft table ip left",
	} {
		before := p.look()
		require.NoError(t, p.node.Command(t.Context(), nft, rules).Run())
		require.Equal(t, want, before.Diff(p.look()))
	}
}
