package cni

import (
	"encoding/json"
	"net"
	"strings"
	"testing"

	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/types/create"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestResultTypes(t *testing.T) {
	r, err := ParseResult([]byte(fullResult), "")
	require.NoError(t, err)
	theirs := r.ToTypes()

	t.Run("there and back loses only unknown keys", func(t *testing.T) {
		back, err := FromTypes(theirs)
		require.NoError(t, err)
		want := r.Clone()
		want.Extra, want.DNS.Extra, want.Interfaces[0].Extra, want.IPs[0].Extra, want.Routes[0].Extra = nil, nil, nil, nil, nil
		assert.Equal(t, want, back)
	})
	t.Run("their encoder prints the same", func(t *testing.T) {
		out, err := json.Marshal(theirs)
		require.NoError(t, err)
		parsed, err := ParseResult(out, "")
		require.NoError(t, err)
		back, err := FromTypes(theirs)
		require.NoError(t, err)
		assert.Equal(t, back, parsed)
	})
	t.Run("no memory is shared", func(t *testing.T) {
		*theirs.IPs[0].Interface = 0
		theirs.DNS.Search[0] = "changed"
		assert.Equal(t, 1, *r.IPs[0].Interface)
		assert.Equal(t, "b.example", r.DNS.Search[0])
	})
	t.Run("nil", func(t *testing.T) {
		assert.Nil(t, (*Result)(nil).ToTypes())
		_, err := FromTypes(nil)
		assert.Error(t, err)
	})
}

func TestFromTypes(t *testing.T) {
	ipNet := func(ip net.IP, ones, bits int) net.IPNet { return net.IPNet{IP: ip, Mask: net.CIDRMask(ones, bits)} }
	v4 := net.IPv4(10, 0, 0, 1)
	for name, c := range map[string]struct {
		r    types100.Result
		want string // error, or Encode's addresses
	}{
		"16 byte IPv4":      {types100.Result{IPs: []*types100.IPConfig{{Address: ipNet(v4, 24, 32), Gateway: v4}}}, `"address":"10.0.0.1/24","gateway":"10.0.0.1"`},
		"16 byte mask":      {types100.Result{IPs: []*types100.IPConfig{{Address: ipNet(v4, 120, 128)}}}, `"address":"10.0.0.1/24"`},
		"nil interface":     {types100.Result{Interfaces: []*types100.Interface{nil}}, "interfaces[0] is nil"},
		"nil address":       {types100.Result{IPs: []*types100.IPConfig{nil}}, "ips[0] is nil"},
		"nil route":         {types100.Result{Routes: []*types.Route{nil}}, "routes[0] is nil"},
		"no address":        {types100.Result{IPs: []*types100.IPConfig{{}}}, "ips[0].address: "},
		"holes in the mask": {types100.Result{IPs: []*types100.IPConfig{{Address: net.IPNet{IP: v4, Mask: net.IPMask{255, 0, 255, 0}}}}}, "ips[0].address: "},
		"mask too long":     {types100.Result{IPs: []*types100.IPConfig{{Address: ipNet(v4.To4(), 64, 128)}}}, "ips[0].address: "},
		"gateway":           {types100.Result{IPs: []*types100.IPConfig{{Address: ipNet(v4, 24, 32), Gateway: net.IP{1}}}}, "ips[0].gateway: 1 bytes are not an address"},
		"route gateway":     {types100.Result{Routes: []*types.Route{{Dst: ipNet(v4, 24, 32), GW: net.IP{1}}}}, "routes[0].gw: 1 bytes"},
		"route destination": {types100.Result{Routes: []*types.Route{{}}}, "routes[0].dst: "},
		"index":             {types100.Result{IPs: []*types100.IPConfig{{Address: ipNet(v4, 24, 32), Interface: types100.Int(0)}}}, "ips[0].interface: 0 is out of range"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := FromTypes(&c.r)
			if err != nil {
				assert.ErrorContains(t, err, "convert result: "+c.want)
				return
			}
			out, err := r.Encode("1.0.0")
			require.NoError(t, err)
			assert.Contains(t, string(out), c.want)
		})
	}
}

// TestResultEncodeAgainstTypes converts documents with this package and with
// containernetworking/cni, in all pairs of versions. What differs is listed with
// the reason why it does.
func TestResultEncodeAgainstTypes(t *testing.T) {
	documents := map[string]string{
		"0.1.0 both families":                      `{"cniVersion":"0.1.0","ip4":{"ip":"10.0.0.5/24","gateway":"10.0.0.1","routes":[{"dst":"0.0.0.0/0"}]},"ip6":{"ip":"fd::5/64","routes":[{"dst":"::/0","gw":"fd::1"}]},"dns":{"domain":"d"}}`,
		"0.2.0 one family":                         `{"cniVersion":"0.2.0","ip6":{"ip":"fd::5/64"}}`,
		"0.2.0 no address":                         `{"cniVersion":"0.2.0","dns":{"search":["s"]}}`,
		"0.3.1 bridge":                             `{"cniVersion":"0.3.1","interfaces":[{"name":"b"},{"name":"e","mac":"02:00:00:00:00:01","sandbox":"/n"}],"ips":[{"version":"4","interface":1,"address":"10.0.0.5/24","gateway":"10.0.0.1"},{"version":"4","address":"10.0.1.5/24"}],"routes":[{"dst":"0.0.0.0/0","gw":"10.0.0.1"}]}`,
		"0.4.0 abbreviated":                        `{"cniVersion":"0.4.0","ips":[{"version":"6","address":"fd::5/64"}],"dns":{"nameservers":["fd::1"],"options":["o"]}}`,
		"1.0.0 no address":                         `{"cniVersion":"1.0.0","interfaces":[{"name":"e","sandbox":"/n"}]}`,
		"1.0.0 routes of a family without address": `{"cniVersion":"1.0.0","ips":[{"address":"10.0.0.5/24"}],"routes":[{"dst":"::/0"},{"dst":"10.9.0.0/16"}]}`,
		"1.1.0 empty":                              `{"cniVersion":"1.1.0"}`,
		"1.1.0 interface":                          `{"cniVersion":"1.1.0","interfaces":[{"name":"e","mtu":1500,"socketPath":"/s","pciID":"p"}],"ips":[{"interface":0,"address":"10.0.0.5/24"}]}`,
		"1.1.0 route":                              `{"cniVersion":"1.1.0","ips":[{"address":"10.0.0.5/24"}],"routes":[{"dst":"10.9.0.0/16","mtu":1400,"advmss":1360,"priority":7,"table":100,"scope":253}]}`,
		"1.1.0 unknown keys":                       `{"cniVersion":"1.1.0","vendor":1,"ips":[{"address":"10.0.0.5/24"}]}`,
	}
	// By document and target versions.
	differ := []struct{ document, to, why string }{
		{"1.1.0 interface", "1.0.0", "they leave mtu, socketPath and pciID in a document whose version does not define them"},
		{"1.1.0 route", "1.0.0 0.4.0 0.3.1 0.3.0", "they leave the new route members in documents whose version does not define them"},
		{"1.1.0 unknown keys", "1.1.0 1.0.0 0.4.0 0.3.1 0.3.0 0.2.0 0.1.0", "they lose unknown keys"},
		{"0.2.0 no address", "0.2.0 0.1.0", "they print a document without any address, which no runtime of the version can use"},
	}
	for name, document := range documents {
		for _, version := range SupportedVersions() {
			t.Run(name+"/to "+version, func(t *testing.T) {
				ours, ourErr := convertOurs(document, version)
				theirs, theirErr := convertTheirs(document, version)
				why := ""
				for _, d := range differ {
					if d.document == name && strings.Contains(d.to, version) {
						why = d.why
					}
				}
				same := (ourErr == nil) == (theirErr == nil) && (ourErr != nil || equalJSON(t, ours, theirs))
				if why == "" {
					assert.True(t, same, "unlisted difference\nours:   %s (%v)\ntheirs: %s (%v)", ours, ourErr, theirs, theirErr)
				} else {
					assert.False(t, same, "listed as different (%s), but it is not", why)
				}
			})
		}
	}
}

func convertOurs(document, version string) ([]byte, error) {
	r, err := ParseResult([]byte(document), "")
	if err != nil {
		return nil, err
	}
	return r.Encode(version)
}

func convertTheirs(document, version string) ([]byte, error) {
	r, err := create.CreateFromBytes([]byte(document))
	if err != nil {
		return nil, err
	}
	if r, err = r.GetAsVersion(version); err != nil {
		return nil, err
	}
	return json.Marshal(r)
}

// equalJSON compares documents, an empty dns and an absent one being the same.
func equalJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	decode := func(data []byte) map[string]any {
		var v map[string]any
		require.NoError(t, json.Unmarshal(data, &v), "%s", data)
		if dns, ok := v["dns"].(map[string]any); ok && len(dns) == 0 {
			delete(v, "dns")
		}
		return v
	}
	return assert.ObjectsAreEqual(decode(a), decode(b))
}
