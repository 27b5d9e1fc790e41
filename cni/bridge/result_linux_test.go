package bridge_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni"
)

func TestResultVersions(t *testing.T) {
	n := newNode(t)
	for i, version := range []string{"0.1.0", "0.2.0", "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"} {
		t.Run(version, func(t *testing.T) {
			pod := newSpace(t, fmt.Sprint("v", i))
			out, err := n.call(t.Context(), invocation(cni.CommandAdd, pod, "eth0"), config("cniVersion", version))
			require.NoError(t, err)
			var doc struct {
				CNIVersion string           `json:"cniVersion"`
				IP4, IP6   map[string]any   `json:",omitempty"`
				Interfaces []map[string]any `json:"interfaces"`
				IPs        []map[string]any `json:"ips"`
			}
			require.NoError(t, json.Unmarshal(out, &doc))
			require.Equal(t, version, doc.CNIVersion)
			if version < "0.3.0" {
				require.NotEmpty(t, doc.IP4["ip"])
				require.NotEmpty(t, doc.IP6["gateway"])
				return
			}
			require.Len(t, doc.Interfaces, 3)
			require.Len(t, doc.IPs, 2)
			_, hasMTU := doc.Interfaces[2]["mtu"]
			require.Equal(t, version >= "1.1.0", hasMTU)
			_, hasFamily := doc.IPs[0]["version"]
			require.Equal(t, version < "1.0.0", hasFamily)
			require.EqualValues(t, 2, doc.IPs[1]["interface"])
		})
	}
}
