package cni_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni"
)

func TestResultJSON(t *testing.T) {
	for name, c := range map[string]struct{ document, want string }{
		"in the version it has": {
			`{"cniVersion":"0.4.0","ips":[{"address":"10.1.0.5/24","version":"4","lease":9007199254740993}],"x":{"big":1.00}}`,
			`{"cniVersion":"0.4.0","ips":[{"version":"4","address":"10.1.0.5/24","lease":9007199254740993}],"x":{"big":1.00}}`,
		},
		"per family": {
			`{"cniVersion":"0.2.0","ip4":{"ip":"10.1.0.5/24"},"x":1}`, `{"cniVersion":"0.2.0","ip4":{"ip":"10.1.0.5/24"},"x":1}`,
		},
		"without a version: the newest": {
			`{"ips":[{"address":"10.1.0.5/24"}]}`, `{"cniVersion":"1.1.0","ips":[{"address":"10.1.0.5/24"}]}`,
		},
		"of an unknown version: the newest": {
			`{"cniVersion":"1.9.0","new":true}`, `{"cniVersion":"1.1.0","new":true}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var r cni.Result
			require.NoError(t, json.Unmarshal([]byte(c.document), &r))
			for _, v := range []any{r, &r} {
				out, err := json.Marshal(v)
				require.NoError(t, err)
				assert.Equal(t, c.want, string(out))
				assert.Equal(t, c.want, fmt.Sprint(v))
			}
		})
	}
	t.Run("as a member", func(t *testing.T) {
		type state struct {
			Result *cni.Result `json:"result"`
			None   *cni.Result `json:"none"`
		}
		out, err := json.Marshal(state{Result: &cni.Result{IPs: []cni.IP{{Address: netip.MustParsePrefix("10.1.0.5/24")}}}})
		require.NoError(t, err)
		assert.Equal(t, `{"result":{"cniVersion":"1.1.0","ips":[{"address":"10.1.0.5/24"}]},"none":null}`, string(out))
		var back state
		require.NoError(t, json.Unmarshal(out, &back))
		assert.Equal(t, "10.1.0.5/24", back.Result.IPs[0].Address.String())
		assert.Nil(t, back.None)
	})
	t.Run("replaces what was there", func(t *testing.T) {
		r := cni.Result{Interfaces: []cni.Interface{{Name: "old"}}}
		require.NoError(t, json.Unmarshal([]byte(`null`), &r))
		assert.Len(t, r.Interfaces, 1, "but null changes nothing")
		require.NoError(t, json.Unmarshal([]byte(`{"cniVersion":"1.0.0"}`), &r))
		assert.Equal(t, cni.Result{CNIVersion: "1.0.0"}, r)
	})
	t.Run("refuses what ParseResult and Encode refuse", func(t *testing.T) {
		r := cni.Result{CNIVersion: "1.0.0"}
		require.ErrorContains(t, json.Unmarshal([]byte(`{"ips":[{"address":"x"}]}`), &r), "ips[0].address")
		assert.Equal(t, cni.Result{CNIVersion: "1.0.0"}, r)
		r.IPs = []cni.IP{{}}
		_, err := json.Marshal(r)
		require.ErrorContains(t, err, "ips[0].address")
		assert.Contains(t, r.String(), "ips[0].address")
	})
}
