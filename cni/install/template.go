package install

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"text/template"
)

// DefaultTemplate is the template of [Conflist]: package bridge with an address of each subnet, then the chained plugins.
const DefaultTemplate = `{
  "cniVersion": "1.0.0",
  "cniVersions": ["1.0.0", "1.1.0"],
  "name": {{json .Name}},
  "plugins": [
    {
      "type": {{json .BridgeType}},
      "bridge": {{json .Bridge}},
      "isGateway": true,
      "isDefaultGateway": {{not .NoDefaultGateway}},
      "forceAddress": {{.ForceAddress}},
      "hairpinMode": {{not .NoHairpin}},
      {{- with .MTU}}
      "mtu": {{.}},
      {{- end}}
      {{- with .ReadyFile}}
      "readyFile": {{json .}},
      {{- end}}
      {{- with .TunnelDevice}}
      "tunnelDevice": {{json .}},
      {{- end}}
      "ipam": {
        "type": {{json .IPAMType}},
        {{- with .DataDir}}
        "dataDir": {{json .}},
        {{- end}}
        "ranges": [
          {{- range $i, $subnet := .Subnets}}{{if $i}},{{end}}
          [{"subnet": {{json .Prefix}}{{if .Gateway.IsValid}}, "gateway": {{json .Gateway}}{{end}}}]
          {{- end}}
        ]
      }
    }
    {{- range .Chained}},
    {{json .}}
    {{- end}}
  ]
}
`

// A Template makes conflists for networks. It is safe for concurrent use.
type Template struct {
	parsed *template.Template
}

// ParseTemplate reads a template in the language of [text/template]. Its data is the [Network], with BridgeType and IPAMType
// filled in; {{json X}} writes any value of it as JSON, strings quoted. So the conflist of other plugins can follow the
// network, for instance
//
//	"ranges": [{{range $i, $s := .Subnets}}{{if $i}},{{end}}
//	  [{"subnet": {{json .Prefix}}, "gateway": {{json .FirstGateway}}}]{{end}}]
//
// See [DefaultTemplate] for a whole one, [Subnet.FirstGateway] and [Subnet.Family] for what a subnet can tell. The error names
// the line.
func ParseTemplate(text string) (*Template, error) {
	parsed, err := template.New("conflist").
		Funcs(template.FuncMap{"json": toJSON}).
		Parse(text)
	if err != nil {
		return nil, fmt.Errorf("parse template: %w", withoutPrefix(err))
	}
	return &Template{parsed: parsed}, nil
}

// Render returns the conflist of a network, indented. The same template and network always give the same bytes.
//
// The network is checked first, whatever the template makes of it: what no plugin could work with is a [*cni.FieldError] that
// names the key as [DefaultTemplate] writes it. Then the result is checked, because a runtime that finds a bad conflist says so
// in its log only: it is one JSON object, its name is that of the network, its versions are among [cni.SupportedVersions], and
// every plugin is an object with the type of an executable. These errors name the line of the template, the line of its result
// or the key.
func (t *Template) Render(n Network) ([]byte, error) {
	n.BridgeType, n.IPAMType = orDefault(n.BridgeType, "cnikit-bridge"), orDefault(n.IPAMType, "cnikit-ipam")
	if err := n.validate(); err != nil {
		return nil, err
	}
	var text bytes.Buffer
	if err := t.parsed.Execute(&text, n); err != nil {
		return nil, fmt.Errorf("execute template: %w; the fields are those of Network and Subnet in package install", withoutPrefix(err))
	}
	if err := checkConflist(text.Bytes(), n.Name); err != nil {
		return nil, fmt.Errorf("result of template: %w", err)
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, bytes.TrimSpace(text.Bytes()), "", "  "); err != nil {
		return nil, fmt.Errorf("result of template: %w", err)
	}
	return append(indented.Bytes(), '\n'), nil
}

// toJSON leaves '<', '>' and '&' as they are: nothing here is HTML.
func toJSON(value any) (string, error) {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return "", err
	}
	return strings.TrimSuffix(text.String(), "\n"), nil
}

// templateError is an error of package template, which says "template: conflist:3:7: …", with its place in other words.
type templateError struct{ err error }

func withoutPrefix(err error) error { return &templateError{err} }

func (e *templateError) Unwrap() error { return e.err }

func (e *templateError) Error() string {
	text, ok := strings.CutPrefix(e.err.Error(), "template: conflist:")
	if !ok {
		return e.err.Error()
	}
	return "line " + text
}
