package install

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/containernetworking/cni/pkg/types"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni"
)

// reference is the network with the reference plugins, as an operator would write it.
const reference = `{"cniVersion": "1.0.0", "name": {{json .Name}}, "plugins": [
	{
		"type": "bridge", "bridge": {{json .Bridge}}, "isGateway": true, "hairpinMode": {{not .NoHairpin}}, "mtu": {{.MTU}},
		"ipam": {
			"type": "host-local", "dataDir": {{json .DataDir}},
			"ranges": [{{range $i, $s := .Subnets}}{{if $i}}, {{end}}[{"subnet": {{json .Prefix}}, "gateway": {{json .FirstGateway}}}]{{end}}],
			"routes": [{{range $i, $s := .Subnets}}{{if $i}}, {{end}}{"dst": "{{if eq .Family 4}}0.0.0.0/0{{else}}::/0{{end}}"}{{end}}]
		}
	}{{range .Chained}}, {{json .}}{{end}}
]}`

const referenceRendered = `{
  "cniVersion": "1.0.0",
  "name": "pods",
  "plugins": [
    {
      "type": "bridge",
      "bridge": "cni0",
      "isGateway": true,
      "hairpinMode": true,
      "mtu": 1450,
      "ipam": {
        "type": "host-local",
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
              "subnet": "fd00:1:2::/64",
              "gateway": "fd00:1:2::1"
            }
          ]
        ],
        "routes": [
          {
            "dst": "0.0.0.0/0"
          },
          {
            "dst": "::/0"
          }
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

func render(t *testing.T, text string, n Network) ([]byte, error) {
	t.Helper()
	tmpl, err := ParseTemplate(text)
	require.NoError(t, err)
	return tmpl.Render(n)
}

func TestTemplate(t *testing.T) {
	t.Run("the reference plugins, always alike", func(t *testing.T) {
		for range 10 {
			got, err := render(t, reference, sample())
			require.NoError(t, err)
			require.Equal(t, referenceRendered, string(got))
		}
		var list types.NetConfList
		require.NoError(t, json.Unmarshal([]byte(referenceRendered), &list))
		require.Equal(t, "host-local", list.Plugins[0].IPAM.Type)
	})
	t.Run("every field and method", func(t *testing.T) {
		n := sample()
		n.ReadyFile, n.TunnelDevice = "/run/ready", "tun0"
		got, err := render(t, `{"cniVersion": "1.1.0", "cniVersions": ["1.0.0"], "name": "pods", "plugins": [{"type": "script.sh",
			"all": [{{json .Bridge}}, {{json .ReadyFile}}, {{json .TunnelDevice}}, {{json .BridgeType}}, {{json .IPAMType}}, {{.ForceAddress}},
				{{(index .Subnets 0).Family}}, {{(index .Subnets 1).Family}}, {{json (index .Subnets 0).FirstGateway}}, {{json "<&>"}}]}]}`, n)
		require.NoError(t, err)
		var doc struct{ Plugins []struct{ All []any } }
		require.NoError(t, json.Unmarshal(got, &doc))
		require.Equal(t, []any{"cni0", "/run/ready", "tun0", "cnikit-bridge", "cnikit-ipam", false, 4., 6., "10.1.2.1", "<&>"}, doc.Plugins[0].All)
		require.Contains(t, string(got), `"<&>"`)
	})
	t.Run("the default one is that of Conflist", func(t *testing.T) {
		got, err := render(t, DefaultTemplate, sample())
		require.NoError(t, err)
		require.Equal(t, rendered, string(got))
	})
	t.Run("the network is checked, whatever the template", func(t *testing.T) {
		n := sample()
		n.Bridge = "a/b"
		_, err := render(t, `{}`, n)
		require.ErrorContains(t, err, `bridge="a/b": is no interface name`)
	})
	t.Run("used by many at once", func(t *testing.T) {
		tmpl, err := ParseTemplate(DefaultTemplate)
		require.NoError(t, err)
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				got, err := tmpl.Render(sample())
				if err != nil || string(got) != rendered {
					t.Errorf("%v: %s", err, got)
				}
			})
		}
		all.Wait()
	})
}

func TestTemplateRefuses(t *testing.T) {
	valid := `{"cniVersion": "1.0.0", "name": "pods", "plugins": [{"type": "bridge"}]}`
	for _, tc := range []struct{ rule, old, new, want string }{
		{"template/unknown field", `"bridge"`, `{{json .Bridgee}}`, `execute template: line 1:`},
		{"template/unknown field, by name", `"bridge"`, "\n\n{{json .Bridgee}}", `line 3:`},
		{"template/unknown field, way out", `"bridge"`, `{{.X}}`, `can't evaluate field X in type install.Network; the fields are those of Network`},
		{"json/comma", `}]`, "},\n]", `result of template: line 2, "]}": invalid character ']' looking for beginning of value; let it become one JSON object`},
		{"json/no quotes", `"pods"`, "\n{{.Name}}", `line 2, "pods, `},
		{"json/two documents", `}]}`, "}]}\n{}", `line 2, "{}": invalid character '{' after top-level value`},
		{"json/cut", `}]}`, `}]`, `unexpected end of JSON input`},
		{"json/empty", valid, ``, `unexpected end of JSON input`},
		{"json/a list", valid, `[]`, `is no object; write one JSON object`},
		{"json/null", valid, `null`, `is no object; write one JSON object`},
		{"name/another", `"pods"`, `"other"`, `name="other": is not the name of the network, "pods"; write {{json .Name}}`},
		{"name/missing", `"name"`, `"Name"`, `name=null: is not the name`},
		{"version/missing", `"cniVersion"`, `"version"`, `cniVersion=null: is no version of the CNI specification; use one of 0.1.0, `},
		{"version/a number", `"1.0.0"`, `1.0`, `cniVersion=1.0: `},
		{"version/unknown", `"1.0.0"`, `"1.0"`, `cniVersion="1.0": `},
		{"versions/unknown", `"name"`, `"cniVersions": ["1.0.0", "9"], "name"`, `cniVersions[1]="9": is no version`},
		{"versions/no list", `"name"`, `"cniVersions": "1.0.0", "name"`, `cniVersions="1.0.0": is no list of versions; write one`},
		{"versions/empty", `"name"`, `"cniVersions": [], "name"`, `cniVersions=[]: is no list`},
		{"plugins/missing", `"plugins"`, `"plugin"`, `plugins=null: is no list of plugins; write one`},
		{"plugins/none", `[{"type": "bridge"}]`, `[]`, `plugins=[]: is no list of plugins`},
		{"plugins/no object", `{"type": "bridge"}`, `"bridge"`, `plugins[0]="bridge": is no configuration of a plugin`},
		{"plugins/null", `{"type": "bridge"}`, `{"type": "bridge"}, null`, `plugins[1]=null: is no configuration`},
		{"plugins/no type", `"type"`, `"typ"`, `plugins[0].type=null: is no name of an executable; give its name`},
		{"plugins/a path", `"bridge"`, `"/opt/cni/bin/bridge"`, `plugins[0].type="/opt/cni/bin/bridge"`},
		{"plugins/type of a type", `"bridge"`, `7`, `plugins[0].type=7`},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			require.Contains(t, valid, tc.old)
			_, err := render(t, strings.Replace(valid, tc.old, tc.new, 1), sample())
			require.ErrorContains(t, err, tc.want)
			if rule, _, _ := strings.Cut(tc.rule, "/"); rule != "template" && rule != "json" {
				var field *cni.FieldError
				require.ErrorAs(t, err, &field)
			}
		})
	}
	_, err := render(t, valid, sample())
	require.NoError(t, err)
}

func TestParseTemplateNamesTheLine(t *testing.T) {
	for text, want := range map[string]string{
		"\n{{jason .Name}}": `parse template: line 2: function "jason" not defined`,
		"{{if .Name}}\n":    `parse template: line `,
		"{{.Name":           `parse template: line 1: unclosed action`,
	} {
		_, err := ParseTemplate(text)
		require.ErrorContains(t, err, want)
	}
}
