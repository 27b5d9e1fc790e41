package vxlan_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/overlay/vxlan"
)

func TestBadConfigurationNamesKeyValueReasonAndWayOut(t *testing.T) {
	for name, k := range map[string]struct {
		config vxlan.Config
		want   string
	}{
		"vni too large":       {vxlan.Config{VNI: 1 << 24}, "vni=16777216: not a VXLAN network identifier; use 1 to 16777215"},
		"vni negative":        {vxlan.Config{VNI: -1}, "vni=-1"},
		"port too large":      {vxlan.Config{Port: 65536}, "port=65536: not a UDP port; use"},
		"mtu too small":       {vxlan.Config{MTU: 1279}, "mtu=1279: not an MTU that IPv6 and VXLAN can use; use 1280 to 65485, or 0"},
		"mtu too large":       {vxlan.Config{MTU: 65486}, "mtu=65486"},
		"protocol static":     {vxlan.Config{RouteProtocol: 4}, "routeProtocol=4"},
		"protocol too large":  {vxlan.Config{RouteProtocol: 256}, "routeProtocol=256: "},
		"device too long":     {vxlan.Config{Device: "sixteen-bytes-ab"}, `device="sixteen-bytes-ab": longer than 15 bytes; use up to 15 letters`},
		"device with a slash": {vxlan.Config{Device: "a/b"}, `device="a/b": contains a slash`},
		"device with a blank": {vxlan.Config{Device: "a b"}, "white space"},
		"device pattern":      {vxlan.Config{Device: "vx%d"}, "percent"},
		"device all":          {vxlan.Config{Device: "all"}, "sysctls"},
		"device dots":         {vxlan.Config{Device: ".."}, "not a name"},
		"network too long":    {vxlan.Config{Network: strings.Repeat("n", 250)}, "alias of a link"},
		"network newline":     {vxlan.Config{Network: "a\nb"}, `network="a\nb"`},
		"several at once":     {vxlan.Config{VNI: -1, Port: -1}, "port=-1"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := vxlan.New(k.config)
			require.ErrorContains(t, err, k.want)
			assert.ErrorContains(t, err, "configure vxlan: ")
			var field *vxlan.FieldError
			require.ErrorAs(t, err, &field)
			assert.NotEmpty(t, field.Reason)
			assert.NotEmpty(t, field.Fix)
			require.Error(t, k.config.Validate())
		})
	}
}

func TestGoodConfiguration(t *testing.T) {
	for name, c := range map[string]vxlan.Config{
		"zero value":        {},
		"highest values":    {VNI: 1<<24 - 1, Port: 65535, MTU: 65485, RouteProtocol: 255},
		"lowest values":     {VNI: 1, Port: 1, MTU: 1280, RouteProtocol: 5},
		"a name with a dot": {Device: "vx.1"},
	} {
		t.Run(name, func(t *testing.T) {
			b, err := vxlan.New(c)
			require.NoError(t, err)
			assert.Equal(t, "vxlan", b.Name())
			assert.Equal(t, 50, b.Overhead())
			assert.Len(t, b.Targets(), 6)
			assert.Subset(t, b.Targets(), b.Essential())
			require.NoError(t, b.Close())
		})
	}
}
