//go:build !linux

package kube

import (
	"net"
	"testing"

	"github.com/stretchr/testify/require"
)

// reserve returns an address on loopback with a port that was free a moment ago.
func reserve(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return l.Addr().String()
}
