package cnitest_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni/cnitest"
	"github.com/cnikit/cnikit/internal/testenv"
)

func TestSupports(t *testing.T) {
	testenv.Kernel(t, testenv.Bridge, testenv.Veth, testenv.VXLAN)
	require.NoError(t, cnitest.Supports("bridge", "veth", "vxlan"))
	require.ErrorContains(t, cnitest.Supports("veth", "wormhole"), "links of kind wormhole")
}
