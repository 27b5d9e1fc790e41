package cni

import (
	"encoding/json"
	"net/netip"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const fullResult = `{"cniVersion":"1.1.0",
"interfaces":[{"name":"br0","mac":"02:00:00:00:00:01","mtu":1450,"x":9007199254740993},{"name":"eth0","mac":"02:00:00:00:00:02","mtu":1450,"sandbox":"/run/netns/a","socketPath":"/run/s","pciID":"0000:00:1f.6"}],
"ips":[{"interface":1,"address":"10.1.0.5/24","gateway":"10.1.0.1","lease":{"id":123456789012345678901234567890}},{"interface":1,"address":"fd00::5/64"}],
"routes":[{"dst":"0.0.0.0/0","gw":"10.1.0.1","mtu":1400,"advmss":1360,"priority":10,"table":0,"scope":0,"why":"<default>"},{"dst":"::/0"}],
"dns":{"nameservers":["10.1.0.1"],"domain":"a.example","search":["b.example"],"options":["ndots:2"],"port":53},
"vendor":{"big":1.00}}`

func TestResultEncode(t *testing.T) {
	r, err := ParseResult([]byte(fullResult), "")
	require.NoError(t, err)
	list := func(version, mtu, iface, family4, family6, route string) string {
		return `{"cniVersion":"` + version + `",
"interfaces":[{"name":"br0","mac":"02:00:00:00:00:01",` + mtu + `"x":9007199254740993},{"name":"eth0","mac":"02:00:00:00:00:02",` + mtu + `"sandbox":"/run/netns/a"` + iface + `}],
"ips":[{` + family4 + `"interface":1,"address":"10.1.0.5/24","gateway":"10.1.0.1","lease":{"id":123456789012345678901234567890}},{` + family6 + `"interface":1,"address":"fd00::5/64"}],
"routes":[{"dst":"0.0.0.0/0","gw":"10.1.0.1",` + route + `"why":"<default>"},{"dst":"::/0"}],
"dns":{"nameservers":["10.1.0.1"],"domain":"a.example","search":["b.example"],"options":["ndots:2"],"port":53},
"vendor":{"big":1.00}}`
	}
	perFamily := func(version string) string {
		return `{"cniVersion":"` + version + `",
"ip4":{"ip":"10.1.0.5/24","gateway":"10.1.0.1","routes":[{"dst":"0.0.0.0/0","gw":"10.1.0.1","why":"<default>"}],"lease":{"id":123456789012345678901234567890}},
"ip6":{"ip":"fd00::5/64","routes":[{"dst":"::/0"}]},
"dns":{"nameservers":["10.1.0.1"],"domain":"a.example","search":["b.example"],"options":["ndots:2"],"port":53},
"vendor":{"big":1.00}}`
	}
	want := map[string]string{
		"0.1.0": perFamily("0.1.0"),
		"0.2.0": perFamily("0.2.0"),
		"0.3.0": list("0.3.0", "", "", `"version":"4",`, `"version":"6",`, ""),
		"0.3.1": list("0.3.1", "", "", `"version":"4",`, `"version":"6",`, ""),
		"0.4.0": list("0.4.0", "", "", `"version":"4",`, `"version":"6",`, ""),
		"1.0.0": list("1.0.0", "", "", "", "", ""),
		"1.1.0": list("1.1.0", `"mtu":1450,`, `,"socketPath":"/run/s","pciID":"0000:00:1f.6"`, "", "", `"mtu":1400,"advmss":1360,"priority":10,"table":0,"scope":0,`),
	}
	for _, version := range SupportedVersions() {
		t.Run(version+"/drops what the version lacks and keeps the rest exactly", func(t *testing.T) {
			out, err := r.Encode(version)
			require.NoError(t, err)
			// Bytes are compared, not values: numbers must not change their form.
			assert.Equal(t, removeNewlines(want[version]), string(out))
			again, err := ParseResult(out, "")
			require.NoError(t, err)
			assert.Equal(t, version, again.CNIVersion)
			for _, other := range SupportedVersions() {
				_, err := again.Encode(other)
				assert.NoError(t, err, "to %s", other)
			}
			same, err := again.Encode(version)
			require.NoError(t, err)
			assert.Equal(t, string(out), string(same), "lossless within its version")
		})
	}
}

func removeNewlines(s string) string {
	return string(slices.DeleteFunc([]byte(s), func(b byte) bool { return b == '\n' }))
}

func TestResultEncodeRefuses(t *testing.T) {
	address, zoned := netip.MustParsePrefix("10.0.0.1/24"), netip.MustParseAddr("fe80::1%eth0")
	one := 1
	for name, c := range map[string]struct {
		r       Result
		version string
		want    string
	}{
		"unknown version":               {Result{}, "1.0.5", `cniVersion "1.0.5" is not supported`},
		"no address before 0.3.0":       {Result{Interfaces: []Interface{{Name: "eth0"}}}, "0.2.0", "version 0.2.0 needs an IP address"},
		"index out of range":            {Result{IPs: []IP{{Address: address, Interface: &one}}}, "1.0.0", "ips[0].interface: 1 is out of range, the result has 0 interfaces"},
		"no address":                    {Result{IPs: []IP{{}}}, "1.0.0", "ips[0].address: is missing or invalid"},
		"a gateway with a zone":         {Result{IPs: []IP{{Address: address, Gateway: zoned}}}, "1.1.0", "ips[0].gateway: fe80::1%eth0 has a zone, use fe80::1"},
		"a route with a zone":           {Result{Routes: []Route{{Dst: address, GW: zoned}}}, "1.1.0", "routes[0].gw: fe80::1%eth0 has a zone"},
		"mapped, too short":             {Result{IPs: []IP{{Address: netip.MustParsePrefix("::ffff:10.0.0.1/64")}}}, "1.0.0", "ips[0].address: is missing or invalid"},
		"no destination":                {Result{Routes: []Route{{}}}, "1.0.0", "routes[0].dst: is missing or invalid"},
		"negative number":               {Result{Interfaces: []Interface{{MTU: -1}}}, "1.1.0", "interfaces[0].mtu: -1 is negative"},
		"junk in Extra of the document": {Result{Extra: map[string]json.RawMessage{"x": []byte("{")}}, "1.1.0", `x: is not JSON ("{"), want JSON`},
		"junk in Extra of an entry":     {Result{Interfaces: []Interface{{Extra: map[string]json.RawMessage{"x": nil}}}}, "1.1.0", "interfaces[0].x: is empty, want JSON"},
		"junk in Extra of dns":          {Result{DNS: DNS{Extra: map[string]json.RawMessage{"x": nil}}}, "1.1.0", "dns.x: is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := c.r.Encode(c.version)
			assert.ErrorContains(t, err, c.want)
		})
	}
}

func TestResultEncodeExtraNeverReplaces(t *testing.T) {
	r := Result{
		Interfaces: []Interface{{Name: "a<b", Extra: map[string]json.RawMessage{"name": []byte(`"other"`)}}},
		Extra:      map[string]json.RawMessage{"cniVersion": []byte(`"9"`), "ip4": []byte("7")},
	}
	out, err := r.Encode("1.0.0")
	require.NoError(t, err)
	assert.Equal(t, `{"cniVersion":"1.0.0","interfaces":[{"name":"a<b"}],"ip4":7}`, string(out))

	r.IPs = []IP{{Address: netip.MustParsePrefix("10.0.0.1/8")}}
	r.Extra = map[string]json.RawMessage{"cniVersion": []byte("9"), "ip4": []byte("7"), "ip6": []byte("8"), "dns": []byte("9"), "ips": []byte("[]")}
	out, err = r.Encode("0.2.0")
	require.NoError(t, err)
	assert.Equal(t, `{"cniVersion":"0.2.0","ip4":{"ip":"10.0.0.1/8"},"ips":[]}`, string(out))
}

func TestParseResultRefuses(t *testing.T) {
	for name, c := range map[string]struct{ doc, want string }{
		"null":                  {`null`, "the document: is null, want an object"},
		"nothing":               {``, "the document: is empty, want an object"},
		"two documents":         {`{}{}`, `the document: is not JSON ("{}{}"), want an object`},
		"a list":                {`[]`, "the document: is [], want an object"},
		"version no string":     {`{"cniVersion":1}`, "cniVersion: is 1, want a string"},
		"null address":          {`{"ips":[null]}`, "ips[0]: is null, want an object"},
		"null interface":        {`{"interfaces":[{"name":"a"},null]}`, "interfaces[1]: is null, want an object"},
		"null route":            {`{"routes":[null]}`, "routes[0]: is null, want an object"},
		"ips no list":           {`{"ips":{}}`, "ips: is {}, want a list of objects"},
		"address missing":       {`{"ips":[{}]}`, `ips[0].address: "" is not an IP address with a prefix length`},
		"address without mask":  {`{"ips":[{"address":"10.0.0.1"}]}`, `ips[0].address: "10.0.0.1" is not an IP address with`},
		"address with zone":     {`{"ips":[{"address":"fe80::1%a/64"}]}`, `ips[0].address: "fe80::1%a/64" is not`},
		"mapped, too short":     {`{"ips":[{"address":"::ffff:10.0.0.1/64"}]}`, `ips[0].address: is missing or invalid`},
		"gateway":               {`{"ips":[{"address":"10.0.0.1/8","gateway":"x"}]}`, `ips[0].gateway: "x" is not an IP address`},
		"gateway with zone":     {`{"ips":[{"address":"fd::1/8","gateway":"fe80::1%a"}]}`, `ips[0].gateway: "fe80::1%a" is not an IP address`},
		"index out of range":    {`{"interfaces":[{"name":"a"}],"ips":[{"address":"10.0.0.1/8","interface":1}]}`, "ips[0].interface: 1 is out of range, the result has 1 interfaces"},
		"index negative":        {`{"interfaces":[{"name":"a"}],"ips":[{"address":"10.0.0.1/8","interface":-1}]}`, "ips[0].interface: -1 is out of range"},
		"index fraction":        {`{"ips":[{"address":"10.0.0.1/8","interface":0.5}]}`, "ips[0].interface: is 0.5, want a whole number"},
		"dst":                   {`{"routes":[{"dst":"default"}]}`, `routes[0].dst: "default" is not`},
		"priority negative":     {`{"routes":[{"dst":"::/0","priority":-1}]}`, "routes[0].priority: -1 is negative"},
		"table no number":       {`{"routes":[{"dst":"::/0","table":"main"}]}`, `routes[0].table: is "main", want a whole number`},
		"mtu too large":         {`{"interfaces":[{"mtu":123456789012345678901234567890}]}`, "interfaces[0].mtu: is 123456789012345678901234567890, want a whole number"},
		"dns":                   {`{"dns":[]}`, "dns: is [], want an object"},
		"nameservers":           {`{"dns":{"nameservers":"a"}}`, `dns.nameservers: is "a", want a list of strings`},
		"0.2.0: ip":             {`{"cniVersion":"0.2.0","ip4":{}}`, `ip4.ip: "" is not`},
		"0.2.0: other family":   {`{"cniVersion":"0.2.0","ip6":{"ip":"10.0.0.1/8"}}`, `ip6.ip: 10.0.0.1/8 is of the other family`},
		"0.2.0: null route":     {`{"cniVersion":"0.2.0","ip4":{"ip":"10.0.0.1/8","routes":[null]}}`, `ip4.routes[0]: is null`},
		"0.2.0: ip4 no object":  {`{"cniVersion":"0.2.0","ip4":"10.0.0.1/8"}`, `ip4: is "10.0.0.1/8", want an object`},
		"then a good object":    {`{"cniVersion":1,"dns":{}}`, "cniVersion: is 1"},
		"then a bad object":     {`{"cniVersion":1,"dns":[]}`, "cniVersion: is 1"},
		"the first of two":      {`{"interfaces":[{"name":1,"mac":2}],"ips":[null]}`, "interfaces[0].name: is 1"},
		"a long value is short": {`{"ips":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}`, "aaa…, want a list"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseResult([]byte(c.doc), "1.1.0")
			assert.ErrorContains(t, err, c.want)
		})
	}
}

func TestParseResultVersion(t *testing.T) {
	const old = `"ip4":{"ip":"10.0.0.1/8"}`
	for name, c := range map[string]struct {
		doc, version, wantVersion string
		ips                       int
	}{
		"the document's own wins":              {`{"cniVersion":"0.2.0",` + old + `}`, "1.1.0", "0.2.0", 1},
		"the given one without it":             {`{` + old + `}`, "0.2.0", "0.2.0", 1},
		"0.1.0 without both":                   {`{` + old + `}`, "", "0.1.0", 1},
		"an old key is unknown to a new one":   {`{` + old + `}`, "1.0.0", "1.0.0", 0},
		"a future version has the newest form": {`{"cniVersion":"1.7.0","ips":[{"address":"10.0.0.1/8"}]}`, "", "1.7.0", 1},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := ParseResult([]byte(c.doc), c.version)
			require.NoError(t, err)
			assert.Equal(t, c.wantVersion, r.CNIVersion)
			assert.Len(t, r.IPs, c.ips)
			assert.Len(t, r.Extra, 1-c.ips, "what was not understood is kept")
		})
	}
}

func TestParseResultMapped(t *testing.T) {
	r, err := ParseResult([]byte(`{"ips":[{"address":"::ffff:10.0.0.1/120","gateway":"::ffff:10.0.0.2"}]}`), "1.0.0")
	require.NoError(t, err)
	assert.Equal(t, netip.MustParsePrefix("10.0.0.1/24"), r.IPs[0].Address)
	assert.Equal(t, netip.MustParseAddr("10.0.0.2"), r.IPs[0].Gateway)
}

func TestResultEncodeMapped(t *testing.T) {
	r := Result{
		IPs:    []IP{{Address: netip.MustParsePrefix("::ffff:10.0.0.1/120"), Gateway: netip.MustParseAddr("::ffff:10.0.0.2")}},
		Routes: []Route{{Dst: netip.MustParsePrefix("::ffff:10.9.0.0/112"), GW: netip.MustParseAddr("::ffff:10.0.0.2")}},
	}
	for version, want := range map[string]string{
		"0.2.0": `{"cniVersion":"0.2.0","ip4":{"ip":"10.0.0.1/24","gateway":"10.0.0.2","routes":[{"dst":"10.9.0.0/16","gw":"10.0.0.2"}]}}`,
		"0.4.0": `{"cniVersion":"0.4.0","ips":[{"version":"4","address":"10.0.0.1/24","gateway":"10.0.0.2"}],"routes":[{"dst":"10.9.0.0/16","gw":"10.0.0.2"}]}`,
		"1.0.0": `{"cniVersion":"1.0.0","ips":[{"address":"10.0.0.1/24","gateway":"10.0.0.2"}],"routes":[{"dst":"10.9.0.0/16","gw":"10.0.0.2"}]}`,
	} {
		out, err := r.Encode(version)
		require.NoError(t, err)
		assert.Equal(t, want, string(out))
	}
	assert.True(t, r.IPs[0].Address.Addr().Is4In6() && r.Routes[0].Dst.Addr().Is4In6(), "the result itself is left alone")
}

func TestResultClone(t *testing.T) {
	r, err := ParseResult([]byte(fullResult), "")
	require.NoError(t, err)
	before, err := r.Encode("1.1.0")
	require.NoError(t, err)
	c := r.Clone()
	assert.Equal(t, r, c)
	c.Interfaces[0].Extra["x"][0] = '1'
	c.Interfaces[1].Name = "changed"
	*c.IPs[0].Interface = 0
	c.IPs[0].Extra["lease"] = nil
	*c.Routes[0].Table, *c.Routes[0].Scope = 5, 5
	c.Routes[0].Extra["why"] = nil
	c.DNS.Nameservers[0], c.DNS.Search[0], c.DNS.Options[0] = "", "", ""
	c.DNS.Extra["port"], c.Extra["vendor"] = nil, nil
	after, err := r.Encode("1.1.0")
	require.NoError(t, err)
	assert.Equal(t, string(before), string(after))
	assert.Nil(t, (*Result)(nil).Clone())
}

func FuzzParseResult(f *testing.F) {
	f.Add([]byte(fullResult), "1.1.0")
	f.Add([]byte(`{"ip4":{"ip":"10.0.0.1/8","routes":[{"dst":"0.0.0.0/0"}]}}`), "0.2.0")
	f.Add([]byte(`{"ips":[null],"interfaces":[{}]}`), "1.0.0")
	f.Add([]byte(`{"ips":[{"address":"::ffff:1.2.3.4/100","interface":3}]}`), "0.4.0")
	f.Fuzz(func(t *testing.T, doc []byte, version string) {
		r, err := ParseResult(doc, version)
		if err != nil {
			return
		}
		for _, v := range SupportedVersions() {
			out, err := r.Encode(v)
			if perFamily(v) && len(r.IPs) == 0 {
				require.Error(t, err)
				continue
			}
			require.NoError(t, err)
			again, err := ParseResult(out, "")
			require.NoError(t, err, "%s", out)
			same, err := again.Encode(v)
			require.NoError(t, err)
			require.Equal(t, string(out), string(same))
		}
	})
}
