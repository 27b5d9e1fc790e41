package bridge

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni"
)

func TestValidate(t *testing.T) {
	for _, test := range []struct {
		rule, config string
		key          string // of the error; empty: valid
		unsupported  bool
	}{
		{rule: "empty", config: `{}`},
		{rule: "full", config: `{"bridge":"br.1-2_3","isDefaultGateway":true,"mtu":9000,"hairpinMode":true,"forceAddress":true,"ipMasq":false,"ipam":{"type":"x"}}`},
		{rule: "unknown keys", config: `{"future":{"a":1},"capabilities":{"x":true},"runtimeConfig":{}}`},
		{rule: "keys of the reference plugin at rest", config: `{"vlan":0,"vlanTrunk":[],"macspoofchk":false,"preserveDefaultVlan":true,"promiscMode":false}`},
		{rule: "mtu least", config: `{"mtu":68}`},
		{rule: "mtu most", config: `{"mtu":65535}`},
		{rule: "mtu too small", config: `{"mtu":67}`, key: "mtu"},
		{rule: "mtu too large", config: `{"mtu":65536}`, key: "mtu"},
		{rule: "mtu negative", config: `{"mtu":-1}`, key: "mtu"},
		{rule: "bridge too long", config: `{"bridge":"abcdefghijklmnop"}`, key: "bridge"},
		{rule: "bridge with a blank", config: `{"bridge":"a b"}`, key: "bridge"},
		{rule: "bridge reserved", config: `{"bridge":"all"}`, key: "bridge"},
		{rule: "ready file", config: `{"readyFile":"/run/cnikit/status.json","tunnelDevice":"cnikit.5000"}`},
		{rule: "ready file empty", config: `{"readyFile":"","tunnelDevice":""}`},
		{rule: "ready file elsewhere", config: `{"readyFile":"/var/lib/cnikit/status.json"}`, key: "readyFile"},
		{rule: "ready file beside /run", config: `{"readyFile":"/runner/status.json"}`, key: "readyFile"},
		{rule: "ready file relative", config: `{"readyFile":"run/cnikit/status.json"}`, key: "readyFile"},
		{rule: "ready file leaves /run", config: `{"readyFile":"/run/../etc/status.json"}`, key: "readyFile"},
		{rule: "ready file is /run", config: `{"readyFile":"/run"}`, key: "readyFile"},
		{rule: "ready file is a directory", config: `{"readyFile":"/run/cnikit/"}`, key: "readyFile"},
		{rule: "tunnel device too long", config: `{"tunnelDevice":"abcdefghijklmnop"}`, key: "tunnelDevice"},
		{rule: "tunnel device with a slash", config: `{"tunnelDevice":"a/b"}`, key: "tunnelDevice"},
		{rule: "tunnel device is the bridge", config: `{"bridge":"br0","tunnelDevice":"br0"}`, key: "tunnelDevice"},
		{rule: "tunnel device is the default bridge", config: `{"tunnelDevice":"cni0"}`, key: "tunnelDevice"},
		{rule: "gateway without IPAM", config: `{"isGateway":true}`, key: "isGateway"},
		{rule: "default gateway without IPAM", config: `{"isDefaultGateway":true,"ipam":{}}`, key: "isDefaultGateway"},
		{rule: "ipam empty", config: `{"ipam":{}}`},
		{rule: "ipam null", config: `{"ipam":null}`},
		{rule: "ipam without type", config: `{"ipam":{"subnet":"10.1.0.0/24"}}`, key: "ipam.type"},
		{rule: "ipam with an empty type", config: `{"ipam":{"type":""}}`, key: "ipam.type"},
		{rule: "default gateway, ipam without type", config: `{"isDefaultGateway":true,"ipam":{"subnet":"10.1.0.0/24"}}`, key: "ipam.type"},
		{rule: "ipMasq", config: `{"ipMasq":true}`, key: "ipMasq", unsupported: true},
		{rule: "vlan", config: `{"vlan":5}`, key: "vlan", unsupported: true},
		{rule: "vlanTrunk", config: `{"vlanTrunk":[{"id":5}]}`, key: "vlanTrunk", unsupported: true},
		{rule: "macspoofchk", config: `{"macspoofchk":true}`, key: "macspoofchk", unsupported: true},
		{rule: "portIsolation", config: `{"portIsolation":true}`, key: "portIsolation", unsupported: true},
		{rule: "promiscMode", config: `{"promiscMode":true}`, key: "promiscMode", unsupported: true},
		{rule: "enabledad", config: `{"enabledad":true}`, key: "enabledad", unsupported: true},
		{rule: "disableContainerInterface", config: `{"disableContainerInterface":true}`, key: "disableContainerInterface", unsupported: true},
	} {
		t.Run(test.rule, func(t *testing.T) {
			var c Config
			require.NoError(t, json.Unmarshal([]byte(test.config), &c))
			err := c.Validate()
			if test.key == "" {
				require.NoError(t, err)
				return
			}
			var field *cni.FieldError
			require.ErrorAs(t, err, &field)
			require.Equal(t, test.key, field.Key)
			require.Equal(t, test.unsupported, field.Unsupported)
			require.NotEmpty(t, field.Reason)
			require.NotEmpty(t, field.Fix)
		})
	}
}

// A wrong type inside an object is named by its whole path, as without a type of its own.
func TestIPAMType(t *testing.T) {
	for config, words := range map[string]string{
		`{"ipam":{"subnet":"10.1.0.0/24"}}`: `ipam.type="": is missing; name the IPAM plugin, such as cnikit-ipam, or leave "ipam" out`,
		`{"ipam":{"type":5}}`:               `ipam.type=5: has the wrong type: want a string`,
		`{"ipam":"x"}`:                      `ipam="x": has the wrong type: want an object`,
	} {
		document := `{"cniVersion":"1.1.0","name":"pods","type":"cnikit-bridge",` + config[1:]
		_, err := Plugin().Handler().Handle(t.Context(), cni.Invocation{Command: cni.CommandStatus, Config: []byte(document)})
		require.ErrorContains(t, err, words)
		require.Equal(t, cni.CodeInvalidConfig, cni.AsError(err).Code)
	}
}

func TestOwner(t *testing.T) {
	o := owner{"pods", cni.Attachment{ContainerID: "4f1d2a", IfName: "eth0"}}
	require.Equal(t, "cnikit:pods:4f1d2a:eth0", o.alias())
	parsed, ok := parseOwner(o.alias())
	require.True(t, ok)
	require.Equal(t, o, parsed)
	for _, other := range []string{"", "cnikit:bridge", "other:pods:4f1d2a:eth0", "cnikit:a:b", "cnikit:a:b:c:d"} {
		_, ok := parseOwner(other)
		require.False(t, ok, other)
	}
}
