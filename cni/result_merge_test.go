package cni_test

import (
	"encoding/json"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni"
)

func parse(t *testing.T, doc string) *cni.Result {
	t.Helper()
	r, err := cni.ParseResult([]byte(doc), "1.1.0")
	require.NoError(t, err)
	return r
}

const (
	partEth0 = `{"cniVersion":"1.1.0",
		"interfaces":[{"name":"br0"},{"name":"veth1","x":1},{"name":"eth0","sandbox":"/n"},{"name":"eth0.7","sandbox":"/n"}],
		"ips":[{"interface":2,"address":"10.1.0.5/24","gateway":"10.1.0.1","lease":1.00},{"interface":3,"address":"10.7.0.5/24"}],
		"routes":[{"dst":"0.0.0.0/0"},{"dst":"10.99.0.0/16","gw":"10.7.0.9","why":"x"}],
		"dns":{"nameservers":["10.1.0.1"],"domain":"a","search":["s"],"port":53},"vendor":{"big":9007199254740993}}`
	partNet1 = `{"cniVersion":"1.0.0",
		"interfaces":[{"name":"net1","sandbox":"/n"}],
		"ips":[{"interface":0,"address":"10.2.0.5/24"},{"interface":0,"address":"fd00::5/64","gateway":"fd00::1"}],
		"routes":[{"dst":"fd99::/64"},{"dst":"10.98.0.0/16","scope":253}],
		"dns":{"nameservers":["10.1.0.1","10.2.0.1"],"domain":"b","options":["o"],"port":54},"vendor":2,"more":[3]}`
	partNet2 = `{"interfaces":[{"name":"veth2"},{"name":"net2","sandbox":"/n"}],"ips":[{"interface":1,"address":"10.3.0.5/24","gateway":"10.3.0.1"}]}`
)

func TestMergeResults(t *testing.T) {
	eth0, net1 := parse(t, partEth0), parse(t, partNet1)
	before := eth0.String() + net1.String()
	merged := cni.MergeResults(nil, eth0, net1, nil)
	assert.JSONEq(t, `{"cniVersion":"1.1.0",
		"interfaces":[{"name":"br0"},{"name":"veth1","x":1},{"name":"eth0","sandbox":"/n"},{"name":"eth0.7","sandbox":"/n"},{"name":"net1","sandbox":"/n"}],
		"ips":[{"interface":2,"address":"10.1.0.5/24","gateway":"10.1.0.1","lease":1.00},{"interface":3,"address":"10.7.0.5/24"},
			{"interface":4,"address":"10.2.0.5/24"},{"interface":4,"address":"fd00::5/64","gateway":"fd00::1"}],
		"routes":[{"dst":"0.0.0.0/0","gw":"10.1.0.1"},{"dst":"10.99.0.0/16","gw":"10.7.0.9","why":"x"},
			{"dst":"fd99::/64","gw":"fd00::1"},{"dst":"10.98.0.0/16","scope":253}],
		"dns":{"nameservers":["10.1.0.1","10.2.0.1"],"domain":"a","search":["s"],"options":["o"],"port":53},
		"vendor":{"big":9007199254740993},"more":[3]}`, merged.String())
	assert.Contains(t, merged.String(), `"lease":1.00`)

	*merged.IPs[0].Interface, merged.Extra["vendor"][0] = 0, '['
	merged.DNS.Nameservers[0] = "changed"
	assert.Equal(t, before, eth0.String()+net1.String(), "no memory is shared")
	assert.Equal(t, &cni.Result{}, cni.MergeResults())
	assert.Equal(t, "1.0.0", cni.MergeResults(nil, net1, eth0).CNIVersion, "that of the first")
}

func TestResultSplit(t *testing.T) {
	merged := cni.MergeResults(parse(t, partEth0), parse(t, partNet1), parse(t, partNet2))
	before := merged.String()
	// A runtime that stores results in types of its own drops the keys it does not know.
	dropped, err := cni.FromTypes(merged.ToTypes())
	require.NoError(t, err)
	for _, r := range []*cni.Result{merged, dropped} {
		parts := r.Split("eth0", "net1", "net2", "net3")
		require.Len(t, parts, 4)
		for i, doc := range []string{partEth0, partNet1, partNet2, `{}`} {
			want, got := parse(t, doc), parts[i]
			want.Routes = cni.MergeResults(want).Routes // with their gateways
			if r == dropped {
				want, _ = cni.FromTypes(want.ToTypes())
			}
			assert.Equal(t, want.Interfaces, got.Interfaces)
			assert.Equal(t, want.IPs, got.IPs)
			assert.Equal(t, want.Routes, got.Routes)
			assert.Equal(t, r.DNS, got.DNS)
			_, err := got.Encode("1.1.0")
			require.NoError(t, err)
			got.Extra = map[string]json.RawMessage{}
			got.DNS.Nameservers[0] = "changed"
		}
	}
	assert.Equal(t, before, merged.String(), "no memory is shared")
}

// TestMergeKeepsRoutesOnLink: some plugins tell that a gateway outside the subnet is
// reached without one.
func TestMergeKeepsRoutesOnLink(t *testing.T) {
	first := `{"cniVersion":"1.1.0","interfaces":[{"name":"a","sandbox":"/n"}],"ips":[{"interface":0,"address":"10.0.0.9/32","gateway":"10.0.0.1"}],
		"routes":[{"dst":"10.0.0.1/32"},{"dst":"0.0.0.0/0","gw":"10.0.0.1"}]}`
	second := `{"cniVersion":"1.1.0","interfaces":[{"name":"b","sandbox":"/n"}],"ips":[{"interface":0,"address":"11.0.0.9/32","gateway":"11.0.0.1"}],
		"routes":[{"dst":"11.0.0.1/32"},{"dst":"11.0.0.1/32","scope":253},{"dst":"11.0.0.0/8","gw":"11.0.0.1"},{"dst":"10.0.0.1/32","gw":"11.0.0.1"}]}`
	merged := cni.MergeResults(parse(t, first), parse(t, second), parse(t, `{"ips":[{"address":"12.0.0.9/8","gateway":"12.0.0.1"}],"routes":[{"dst":"169.254.0.0/16","scope":253}]}`))
	for _, i := range []int{0, 2, 3, 6} {
		assert.False(t, merged.Routes[i].GW.IsValid(), "%v", merged.Routes[i])
	}
	others := cni.MergeResults(parse(t, `{"ips":[{"address":"12.0.0.9/8","gateway":"12.0.0.1"}],"routes":[{"dst":"13.0.0.0/8","scope":0},{"dst":"12.0.0.1/16"}]}`))
	for _, route := range others.Routes {
		assert.True(t, route.GW.IsValid(), "%v", route)
	}
	parts := cni.MergeResults(parse(t, first), parse(t, second)).Split("a", "b")
	assert.Equal(t, parse(t, first).String(), parts[0].String())
	assert.Equal(t, parse(t, second).String(), parts[1].String())
}

func TestResultSplitOddities(t *testing.T) {
	for name, c := range map[string]struct {
		doc   string
		names []string
		want  []string
	}{
		"in another order": {`{"interfaces":[{"name":"a","sandbox":"/n"},{"name":"b","sandbox":"/n"}],"ips":[{"interface":0,"address":"10.0.0.1/8"}]}`,
			[]string{"b", "a"}, []string{`{"interfaces":[{"name":"b","sandbox":"/n"}]}`,
				`{"interfaces":[{"name":"a","sandbox":"/n"}],"ips":[{"interface":0,"address":"10.0.0.1/8"}]}`}},
		"without interfaces": {`{"ips":[{"address":"10.0.0.1/8"}],"routes":[{"dst":"::/0"}]}`, []string{"a", "b"},
			[]string{`{"ips":[{"address":"10.0.0.1/8"}],"routes":[{"dst":"::/0"}]}`, `{}`}},
		"of others, before": {`{"interfaces":[{"name":"h"},{"name":"x","sandbox":"/n"},{"name":"b","sandbox":"/n"}],
			"ips":[{"interface":1,"address":"10.0.0.1/8"},{"interface":2,"address":"11.0.0.1/8"}],"routes":[{"dst":"12.0.0.0/8","gw":"10.0.0.9"},{"dst":"13.0.0.0/8","gw":"11.0.0.9"}]}`, []string{"a", "b"},
			[]string{`{}`, `{"interfaces":[{"name":"b","sandbox":"/n"}],"ips":[{"interface":0,"address":"11.0.0.1/8"}],"routes":[{"dst":"13.0.0.0/8","gw":"11.0.0.9"}]}`}},
		"of others alone": {`{"interfaces":[{"name":"h"},{"name":"x","sandbox":"/n"}]}`, []string{"a", "b"}, []string{`{}`, `{}`}},
		"of the host, behind the last": {`{"interfaces":[{"name":"a","sandbox":"/n"},{"name":"b","sandbox":"/n"},{"name":"h"}]}`, []string{"a", "b"},
			[]string{`{"interfaces":[{"name":"a","sandbox":"/n"}]}`, `{"interfaces":[{"name":"b","sandbox":"/n"},{"name":"h"}]}`}},
		"the host has the name, too": {`{"interfaces":[{"name":"b"},{"name":"a","sandbox":"/n"},{"name":"b","sandbox":"/n"}]}`, []string{"a", "b"},
			[]string{`{"interfaces":[{"name":"b"},{"name":"a","sandbox":"/n"}]}`, `{"interfaces":[{"name":"b","sandbox":"/n"}]}`}},
		"a gateway in no subnet": {`{"interfaces":[{"name":"a","sandbox":"/n"},{"name":"b","sandbox":"/n"}],
			"ips":[{"interface":0,"address":"10.0.0.1/8"},{"interface":1,"address":"11.0.0.1/32","gateway":"169.254.1.1"}],"routes":[{"dst":"0.0.0.0/0","gw":"169.254.1.1"}]}`, []string{"a", "b"},
			[]string{`{"interfaces":[{"name":"a","sandbox":"/n"}],"ips":[{"interface":0,"address":"10.0.0.1/8"}]}`,
				`{"interfaces":[{"name":"b","sandbox":"/n"}],"ips":[{"interface":0,"address":"11.0.0.1/32","gateway":"169.254.1.1"}],"routes":[{"dst":"0.0.0.0/0","gw":"169.254.1.1"}]}`}},
		"of the host alone": {`{"interfaces":[{"name":"h"}]}`, []string{"a"}, []string{`{}`}},
		"a route of a family that the first has not": {`{"interfaces":[{"name":"a","sandbox":"/n"},{"name":"b","sandbox":"/n"}],
			"ips":[{"interface":0,"address":"10.0.0.1/8"},{"interface":1,"address":"fd00::1/64"}],"routes":[{"dst":"fd99::/64"}]}`, []string{"a", "b"},
			[]string{`{"interfaces":[{"name":"a","sandbox":"/n"}],"ips":[{"interface":0,"address":"10.0.0.1/8"}]}`,
				`{"interfaces":[{"name":"b","sandbox":"/n"}],"ips":[{"interface":0,"address":"fd00::1/64"}],"routes":[{"dst":"fd99::/64"}]}`}},
	} {
		t.Run(name, func(t *testing.T) {
			parts := parse(t, c.doc).Split(c.names...)
			for i, want := range c.want {
				assert.Equal(t, parse(t, want).String(), parts[i].String())
			}
		})
	}
	assert.Equal(t, []*cni.Result{nil, nil}, (*cni.Result)(nil).Split("a", "b"))
	assert.Empty(t, parse(t, partEth0).Split())
	seven := 7
	odd := cni.Result{IPs: []cni.IP{{Address: netip.MustParsePrefix("10.0.0.1/8"), Interface: &seven}}}
	assert.Empty(t, odd.Split("a")[0].IPs, "of an interface that is not there")
}

func TestDNSJoin(t *testing.T) {
	own := cni.DNS{Nameservers: []string{"a", "b"}[:1], Search: []string{"s"}, Extra: map[string]json.RawMessage{"x": []byte("1")}}
	other := cni.DNS{Nameservers: []string{"c", "a"}, Domain: "d", Options: []string{"o"}, Extra: map[string]json.RawMessage{"x": []byte("2"), "y": []byte("3")}}
	joined := own.Join(other)
	assert.Equal(t, cni.DNS{
		Nameservers: []string{"a", "c"}, Domain: "d", Search: []string{"s"}, Options: []string{"o"},
		Extra: map[string]json.RawMessage{"x": []byte("1"), "y": []byte("3")},
	}, joined)
	joined.Search[0], joined.Options[0], joined.Extra["y"][0] = "changed", "changed", '9'
	assert.Equal(t, "b", own.Nameservers[:2][1], "no memory is shared")
	assert.Equal(t, []string{"s"}, own.Search)
	assert.Equal(t, []string{"o"}, other.Options)
	assert.Equal(t, "3", string(other.Extra["y"]))
}
