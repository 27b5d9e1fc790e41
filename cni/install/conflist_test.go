package install

import (
	"encoding/json"
	"net/netip"
	"strings"
	"testing"

	"github.com/containernetworking/cni/pkg/types"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni"
)

func sample() Network {
	return Network{
		Name: "pods", Bridge: "cni0", MTU: 1450, DataDir: "/var/lib/cni/networks",
		Subnets: []Subnet{
			{Prefix: netip.MustParsePrefix("10.1.2.0/24"), Gateway: netip.MustParseAddr("10.1.2.1")},
			{Prefix: netip.MustParsePrefix("fd00:1:2::/64")},
		},
		Chained: []json.RawMessage{[]byte(`{"type":"portmap","capabilities":{"portMappings":true},"big":12345678901234567890}`)},
	}
}

const rendered = `{
  "cniVersion": "1.0.0",
  "cniVersions": [
    "1.0.0",
    "1.1.0"
  ],
  "name": "pods",
  "plugins": [
    {
      "type": "cnikit-bridge",
      "bridge": "cni0",
      "isGateway": true,
      "isDefaultGateway": true,
      "forceAddress": false,
      "hairpinMode": true,
      "mtu": 1450,
      "ipam": {
        "type": "cnikit-ipam",
        "dataDir": "/var/lib/cni/networks",
        "ranges": [
          [
            {
              "subnet": "10.1.2.0/24",
              "gateway": "10.1.2.1"
            }
          ],
          [
            {
              "subnet": "fd00:1:2::/64"
            }
          ]
        ]
      }
    },
    {
      "type": "portmap",
      "capabilities": {
        "portMappings": true
      },
      "big": 12345678901234567890
    }
  ]
}
`

func TestConflist(t *testing.T) {
	t.Run("is rendered for people, always alike", func(t *testing.T) {
		for range 10 {
			got, err := Conflist(sample())
			require.NoError(t, err)
			require.Equal(t, rendered, string(got))
		}
	})
	t.Run("has the fields of the reference types", func(t *testing.T) {
		var list types.NetConfList
		require.NoError(t, json.Unmarshal([]byte(rendered), &list))
		require.Equal(t, "1.0.0", list.CNIVersion, "what a runtime takes that does not know cniVersions")
		require.Equal(t, "pods", list.Name)
		require.Len(t, list.Plugins, 2)
		require.Equal(t, "cnikit-bridge", list.Plugins[0].Type)
		require.Equal(t, "cnikit-ipam", list.Plugins[0].IPAM.Type)
		require.True(t, list.Plugins[1].Capabilities["portMappings"])
	})
	t.Run("what STATUS looks at", func(t *testing.T) {
		n := sample()
		n.ReadyFile, n.TunnelDevice = "/run/cnikit/status.json", "cnikit.5000"
		got, err := Conflist(n)
		require.NoError(t, err)
		want := strings.Replace(rendered, `"mtu": 1450,`, `"mtu": 1450,
      "readyFile": "/run/cnikit/status.json",
      "tunnelDevice": "cnikit.5000",`, 1)
		require.Equal(t, want, string(got))
	})
	t.Run("options", func(t *testing.T) {
		n := sample()
		n.NoDefaultGateway, n.NoHairpin, n.ForceAddress, n.BridgeType, n.IPAMType = true, true, true, "my-bridge", "my-ipam"
		n.MTU, n.DataDir, n.Chained = 0, "", nil
		got, err := Conflist(n)
		require.NoError(t, err)
		var doc struct{ Plugins []map[string]any }
		require.NoError(t, json.Unmarshal(got, &doc))
		require.Equal(t, map[string]any{
			"type": "my-bridge", "bridge": "cni0", "isGateway": true, "isDefaultGateway": false, "forceAddress": true, "hairpinMode": false,
			"ipam": map[string]any{"type": "my-ipam", "ranges": []any{
				[]any{map[string]any{"subnet": "10.1.2.0/24", "gateway": "10.1.2.1"}}, []any{map[string]any{"subnet": "fd00:1:2::/64"}},
			}},
		}, doc.Plugins[0])
	})
}

func TestConflistRefuses(t *testing.T) {
	subnet := func(prefix, gateway string) func(n *Network) {
		return func(n *Network) {
			n.Subnets[0] = Subnet{Prefix: netip.MustParsePrefix(prefix)}
			if gateway != "" {
				n.Subnets[0].Gateway = netip.MustParseAddr(gateway)
			}
		}
	}
	for _, tc := range []struct {
		rule   string
		change func(n *Network)
		want   string
	}{
		{"name/empty", func(n *Network) { n.Name = "" }, `name="": is no network name; begin`},
		{"name/slash", func(n *Network) { n.Name = "a/b" }, `name="a/b": is no network name`},
		{"name/dot first", func(n *Network) { n.Name = ".a" }, `name=".a"`},
		{"name/not ascii", func(n *Network) { n.Name = "nötz" }, `name="nötz"`},
		{"bridge/empty", func(n *Network) { n.Bridge = "" }, `bridge="": is no interface name; use up to 15 letters`},
		{"bridge/slash", func(n *Network) { n.Bridge = "a/b" }, `bridge="a/b"`},
		{"bridge/too long", func(n *Network) { n.Bridge = "sixteen-letters-" }, `bridge="sixteen-letters-"`},
		{"bridge/a template", func(n *Network) { n.Bridge = "br%d" }, `bridge="br%d"`},
		{"bridge/a name with another meaning", func(n *Network) { n.Bridge = "all" }, `bridge="all"`},
		{"bridge/likewise", func(n *Network) { n.Bridge = "default" }, `bridge="default"`},
		{"bridge/a control character", func(n *Network) { n.Bridge = "a\x01" }, `is no interface name`},
		{"bridge/not ascii", func(n *Network) { n.Bridge = "brücke" }, `is no interface name`},
		{"mtu/too small for ipv6", func(n *Network) { n.MTU = 1279 }, `mtu=1279: is not between 1280 and 65535`},
		{"mtu/too small", func(n *Network) { n.MTU = 67; n.Subnets = n.Subnets[:1] }, `mtu=67: is not between 68 and 65535`},
		{"mtu/negative", func(n *Network) { n.MTU = -1 }, `mtu=-1`},
		{"mtu/too large", func(n *Network) { n.MTU = 65536 }, `mtu=65536`},
		{"subnets/none", func(n *Network) { n.Subnets = nil }, `ipam.ranges=[]: is empty; give`},
		{"subnets/zero", func(n *Network) { n.Subnets[1] = Subnet{} }, `ipam.ranges[1].subnet="": is no prefix`},
		{"subnets/host bits", subnet("10.1.2.3/24", ""), `ipam.ranges[0].subnet="10.1.2.3/24": has host bits set; use 10.1.2.0/24`},
		{"subnets/no room", subnet("10.1.2.0/31", ""), `has no room`},
		{"subnets/ipv4 in ipv6", subnet("::ffff:10.0.0.0/104", ""), `as IPv4`},
		{"subnets/overlap", func(n *Network) { n.Subnets[1].Prefix = netip.MustParsePrefix("10.1.0.0/16") },
			`ipam.ranges[1].subnet="10.1.0.0/16": overlaps 10.1.2.0/24`},
		{"gateway/outside", subnet("10.1.2.0/24", "10.1.3.1"),
			`ipam.ranges[0].gateway="10.1.3.1": is not in the subnet 10.1.2.0/24; use an address of it that pods could have, such as 10.1.2.1`},
		{"gateway/other family", subnet("10.1.2.0/24", "fd00::1"), `is not in the subnet`},
		{"gateway/network address", subnet("10.1.2.0/24", "10.1.2.0"), `is the network address`},
		{"gateway/broadcast address", subnet("10.1.2.0/24", "10.1.2.255"), `is the broadcast address`},
		{"data dir/relative", func(n *Network) { n.DataDir = "var" }, `ipam.dataDir="var": is not an absolute path`},
		{"ready file/relative", func(n *Network) { n.ReadyFile = "ready" }, `readyFile="ready": is no path below /run; use a file there`},
		{"ready file/survives a reboot", func(n *Network) { n.ReadyFile = "/var/lib/ready" }, `readyFile="/var/lib/ready"`},
		{"ready file/leads out", func(n *Network) { n.ReadyFile = "/run/../etc/ready" }, `readyFile="/run/../etc/ready"`},
		{"ready file/the directory itself", func(n *Network) { n.ReadyFile = "/run/" }, `readyFile="/run/"`},
		{"tunnel device/slash", func(n *Network) { n.TunnelDevice = "a/b" }, `tunnelDevice="a/b": is no interface name`},
		{"types/a path", func(n *Network) { n.BridgeType = "/opt/x" }, `type="/opt/x": is no name of an executable`},
		{"types/a path for ipam", func(n *Network) { n.IPAMType = "../x" }, `ipam.type="../x"`},
		{"chained/no object", func(n *Network) { n.Chained[0] = []byte(`[]`) }, `plugins[1]="[]": is not the configuration of a plugin`},
		{"chained/no json", func(n *Network) { n.Chained[0] = []byte(`{`) }, `plugins[1]="{"`},
		{"chained/no type", func(n *Network) { n.Chained[0] = []byte(`{"type":7}`) }, `plugins[1]=`},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			n := sample()
			tc.change(&n)
			got, err := Conflist(n)
			require.Nil(t, got)
			var field *cni.FieldError
			require.ErrorAs(t, err, &field)
			require.ErrorContains(t, err, tc.want)
			require.NotEmpty(t, field.Fix)
		})
	}
}
