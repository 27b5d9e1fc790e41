package bridge

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWarnTypos(t *testing.T) {
	for config, warning := range map[string]string{
		`{"brigde":"br0"}`:           `key=brigde similar=bridge`,
		`{"bridg":"br0"}`:            `key=bridg similar=bridge`,
		`{"isGateways":true}`:        `key=isGateways similar=isGateway`,
		`{"isDefaultgatewax":true}`:  ``,
		`{"hairpinmode":true}`:       ``, // known: case does not matter
		`{"mtx":1400}`:               `key=mtx similar=mtu`,
		`{"vlam":5}`:                 `key=vlam similar=vlan`,
		`{"ip":1}`:                   ``,
		`{"":1,"x":1,"future":true}`: ``,
		`{"cniVersion":"1.1.0","name":"a","type":"b","args":{},"capabilities":{},"runtimeConfig":{},"prevResult":{},"mtu":1,"ipam":{},"dns":{}}`: ``,
	} {
		t.Run(config, func(t *testing.T) {
			var out bytes.Buffer
			warnTypos(slog.New(slog.NewTextHandler(&out, nil)), []byte(config))
			require.Contains(t, out.String(), warning)
			require.Equal(t, warning == "", out.Len() == 0, out.String())
		})
	}
}
