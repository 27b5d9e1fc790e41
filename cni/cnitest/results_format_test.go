package cnitest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestResultFaults(t *testing.T) {
	for name, c := range map[string]struct{ version, doc, want string }{
		"0.2.0":             {"0.2.0", `{"cniVersion":"0.2.0","ip4":{"ip":"10.1.0.2/24","gateway":"10.1.0.1","routes":[{"dst":"0.0.0.0/0"}]}}`, ""},
		"0.2.0 lists":       {"0.2.0", `{"cniVersion":"0.2.0","ip4":{"ip":"10.1.0.2/24"},"ips":[]}`, "ips is not there"},
		"0.2.0 family":      {"0.2.0", `{"cniVersion":"0.2.0","ip4":{"ip":"fd00::2/64"}}`, "other family"},
		"0.2.0 nothing":     {"0.2.0", `{"cniVersion":"0.2.0"}`, "neither"},
		"0.4.0":             {"0.4.0", `{"cniVersion":"0.4.0","interfaces":[{"name":"eth0"}],"ips":[{"version":"4","address":"10.1.0.2/24","interface":0}]}`, ""},
		"0.4.0 no version":  {"0.4.0", `{"cniVersion":"0.4.0","ips":[{"address":"10.1.0.2/24"}]}`, `ips[0].version is missing, want "4"`},
		"0.4.0 old form":    {"0.4.0", `{"cniVersion":"0.4.0","ip4":{"ip":"10.1.0.2/24"}}`, "ip4 is not there"},
		"1.0.0":             {"1.0.0", `{"cniVersion":"1.0.0","ips":[{"address":"fd00::2/64","gateway":"fd00::1"}],"dns":{"nameservers":["fd00::53"]}}`, ""},
		"1.0.0 version":     {"1.0.0", `{"cniVersion":"1.0.0","ips":[{"version":"4","address":"10.1.0.2/24"}]}`, "version is not there"},
		"other version":     {"1.0.0", `{"cniVersion":"0.4.0"}`, `cniVersion is "0.4.0"`},
		"no version":        {"1.0.0", `{}`, `cniVersion is ""`},
		"index":             {"1.0.0", `{"cniVersion":"1.0.0","interfaces":[{"name":"eth0"}],"ips":[{"address":"10.1.0.2/24","interface":1}]}`, "there are 1 interfaces"},
		"index as text":     {"1.0.0", `{"cniVersion":"1.0.0","ips":[{"address":"10.1.0.2/24","interface":"0"}]}`, "unsigned number"},
		"negative index":    {"1.0.0", `{"cniVersion":"1.0.0","ips":[{"address":"10.1.0.2/24","interface":-1}]}`, "unsigned number"},
		"address":           {"1.0.0", `{"cniVersion":"1.0.0","ips":[{"address":"10.1.0.2"}]}`, "ips[0].address"},
		"gateway's family":  {"1.0.0", `{"cniVersion":"1.0.0","ips":[{"address":"10.1.0.2/24","gateway":"fd00::1"}]}`, "another family"},
		"null entry":        {"1.0.0", `{"cniVersion":"1.0.0","ips":[null]}`, "ips[0] is no object"},
		"no list":           {"1.0.0", `{"cniVersion":"1.0.0","routes":{}}`, "routes is no list"},
		"route":             {"1.0.0", `{"cniVersion":"1.0.0","routes":[{"dst":"default"}]}`, "routes[0].dst"},
		"no name":           {"1.0.0", `{"cniVersion":"1.0.0","interfaces":[{"mac":"02:00:00:00:00:01"}]}`, "interfaces[0].name"},
		"dns":               {"1.0.0", `{"cniVersion":"1.0.0","dns":{"search":"example.org"}}`, "dns.search"},
		"dns entry":         {"1.0.0", `{"cniVersion":"1.0.0","dns":{"options":[1]}}`, "dns.options"},
		"1.1.0":             {"1.1.0", `{"cniVersion":"1.1.0","interfaces":[{"name":"eth0","mtu":1500}],"routes":[{"dst":"0.0.0.0/0","priority":10,"table":0}]}`, ""},
		"1.1.0 mtu":         {"1.1.0", `{"cniVersion":"1.1.0","interfaces":[{"name":"eth0","mtu":"1500"}]}`, "interfaces[0].mtu"},
		"1.1.0 socket path": {"1.1.0", `{"cniVersion":"1.1.0","interfaces":[{"name":"eth0","socketPath":"run/s"}]}`, "absolute"},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := parseDocument([]byte(c.doc))
			require.NoError(t, err)
			faults := resultFaults(d, c.version)
			if c.want == "" {
				require.Empty(t, faults)
				return
			}
			require.Len(t, faults, 1)
			require.Contains(t, strings.Join(faults, "; "), c.want)
		})
	}
}

func TestNewerKeys(t *testing.T) {
	d, err := parseDocument([]byte(`{"interfaces":[{"name":"eth0","mtu":1500}],"routes":[{"dst":"0.0.0.0/0","table":1}]}`))
	require.NoError(t, err)
	require.Equal(t, []string{"interfaces[0].mtu=1500", "routes[0].table=1"}, newerKeys(d, "1.0.0"))
	require.Empty(t, newerKeys(d, "1.1.0"))
}
