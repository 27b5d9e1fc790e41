package cnitest_test

import (
	"errors"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni/cnitest"
	"github.com/cnikit/cnikit/internal/testenv"
)

func TestSupports(t *testing.T) {
	testenv.Kernel(t, testenv.Bridge, testenv.Veth, testenv.VXLAN)
	require.NoError(t, cnitest.Supports("bridge", "veth", "vxlan"))
	for _, f := range []testenv.Feature{testenv.Dummy, testenv.IPVLAN, testenv.MACVLAN, testenv.VLAN, testenv.VRF} {
		err := cnitest.Supports(string(f)) // some kernels lack some
		require.True(t, err == nil || errors.Is(err, syscall.EOPNOTSUPP), err)
	}
	require.ErrorContains(t, cnitest.Supports("veth", "wormhole"), "links of kind wormhole")
}
