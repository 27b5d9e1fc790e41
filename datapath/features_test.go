package datapath_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/datapath"
)

func TestKernelFeatures(t *testing.T) {
	for version, small := range map[string]bool{
		"6.1.0-44-amd64": false, "6.8.12": false, "6.9.0-rc1": true, "6.12.117+deb12-amd64": true, "6.18": true, "7.0.1": true, "5.15.0": false,
	} {
		features, err := datapath.KernelFeatures(version)
		require.NoError(t, err, version)
		assert.Equal(t, datapath.Features{SmallFrames: small}, features, version)
	}
	for _, version := range []string{"", "6", "six.one", "6.", "6.x"} {
		_, err := datapath.KernelFeatures(version)
		require.ErrorContains(t, err, "parse kernel version", version)
	}
}
