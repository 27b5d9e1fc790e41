package cnitest

import (
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func ciDocument(t *testing.T) string {
	t.Helper()
	document, err := os.ReadFile("../../docs/conformance-ci.md")
	require.NoError(t, err)
	return string(document)
}

// TestDocumentNamesNetworks that a plugin's configuration must leave alone.
func TestDocumentNamesNetworks(t *testing.T) {
	document := ciDocument(t)
	delegated := netip.MustParsePrefix(delegateAddress).Masked()
	for _, network := range []netip.Prefix{forerunNetwork, otherNetwork, delegated, uplinkAddress, uplinkAddress.Masked()} {
		require.Contains(t, document, network.String())
	}
	for _, network := range []netip.Prefix{forerunNetwork, uplinkAddress.Masked()} {
		require.Contains(t, document, "a default route through "+network.Addr().Next().String())
	}
}

func TestDocumentNamesLimits(t *testing.T) {
	document := ciDocument(t)
	require.Contains(t, document, fmt.Sprintf("without it, that is %.0f seconds", DefaultTimeout.Seconds()))
	require.Contains(t, document, fmt.Sprintf("with `-v` only one that is longer than %d bytes", seenLimit))

	whole, long := strings.Repeat("x", seenLimit), strings.Repeat("x", seenLimit-1)+"éé"
	require.Contains(t, reply{stdout: []byte(whole)}.String(), "stdout "+whole)
	require.Equal(t, "exit status 0, stdout "+long[:seenLimit-1]+"…", reply{stdout: []byte(long)}.String())
}
