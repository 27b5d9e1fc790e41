package netif_test

import (
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni/netif"
)

func TestCheckVacant(t *testing.T) {
	pod := newSpace(t)
	pod.addLink(t, "eth0")
	path := pod.ns.Path()
	require.NoError(t, netif.CheckVacant(path))
	require.NoError(t, netif.CheckVacant(path, "net1", "net2"))
	err := netif.CheckVacant(path, "net1", "eth0")
	require.ErrorIs(t, err, netif.ErrExists)
	require.ErrorContains(t, err, `"eth0"`)
	require.ErrorIs(t, netif.CheckVacant("/nowhere", "eth0"), fs.ErrNotExist)
}
