package cnitest_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni/cnitest"
)

func TestKnownTypesHaveTargets(t *testing.T) {
	require.Subset(t, cnitest.KnownTypes(), []string{
		"bridge", "ptp", "macvlan", "ipvlan", "vlan", "host-local", "static", "loopback", "portmap", "tuning", "firewall",
		"bandwidth", "sbr", "vrf", "route-override", "cnikit-bridge", "cnikit-ipam",
	})
	for _, plugin := range cnitest.KnownTypes() {
		t.Run(plugin, func(t *testing.T) {
			target, err := cnitest.KnownTarget(plugin, "delegate")
			require.NoError(t, err)
			require.Equal(t, plugin, target.Plugin)
			require.NotEmpty(t, target.Profile)
			var config struct {
				Type string
				IPAM struct{ Type, DataDir string }
			}
			require.NoError(t, json.Unmarshal(target.Config, &config))
			require.Equal(t, plugin, config.Type)
			switch target.Profile {
			case cnitest.ProfileInterface:
				require.Equal(t, "delegate", config.IPAM.Type)
				require.Equal(t, cnitest.Placeholder, config.IPAM.DataDir)
			case cnitest.ProfileIPAM:
				require.Equal(t, plugin, config.IPAM.Type)
			}
		})
	}
}

func TestKnownTargetOfOtherTypes(t *testing.T) {
	_, err := cnitest.KnownTarget("mine", "host-local")
	require.ErrorIs(t, err, cnitest.ErrNoDefault)
	require.ErrorContains(t, err, `"mine"`)

	for plugin, why := range map[string]string{"whereabouts": "Kubernetes API", "ovs": "Open vSwitch", "bond": "other plugins"} {
		_, err := cnitest.KnownTarget(plugin, "host-local")
		require.ErrorIs(t, err, errors.ErrUnsupported)
		require.ErrorContains(t, err, why)
	}
	route, err := cnitest.KnownTarget("route-override", "host-local")
	require.NoError(t, err)
	require.Equal(t, cnitest.ProfileChained, route.Profile)

	_, err = cnitest.KnownTarget("dhcp", "host-local")
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.NotErrorIs(t, err, cnitest.ErrNoDefault)
	require.ErrorContains(t, err, "DHCP server")
}
