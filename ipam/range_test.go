package ipam

import (
	"math"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseRangeDefaults(t *testing.T) {
	for name, c := range map[string]struct {
		subnet, start, end, gateway     string // given
		wantStart, wantEnd, wantGateway string
		size                            uint64
	}{
		"v4/leaves out network and broadcast": {subnet: "10.1.2.0/24", wantStart: "10.1.2.1", wantEnd: "10.1.2.254", wantGateway: "10.1.2.1", size: 253},
		"v4/30":                               {subnet: "10.1.2.4/30", wantStart: "10.1.2.5", wantEnd: "10.1.2.6", wantGateway: "10.1.2.5", size: 1},
		"v4/31 uses both":                     {subnet: "10.1.2.4/31", wantStart: "10.1.2.4", wantEnd: "10.1.2.5", wantGateway: "10.1.2.4", size: 1},
		"v4/32 has no gateway":                {subnet: "10.1.2.4/32", wantStart: "10.1.2.4", wantEnd: "10.1.2.4", size: 1},
		"v4/0":                                {subnet: "0.0.0.0/0", wantStart: "0.0.0.1", wantEnd: "255.255.255.254", wantGateway: "0.0.0.1", size: 1<<32 - 3},
		"v4/top of the family":                {subnet: "255.255.255.252/30", wantStart: "255.255.255.253", wantEnd: "255.255.255.254", wantGateway: "255.255.255.253", size: 1},
		"v6/has no broadcast":                 {subnet: "fd00:1::/120", wantStart: "fd00:1::1", wantEnd: "fd00:1::ff", wantGateway: "fd00:1::1", size: 254},
		"v6/127 uses both":                    {subnet: "fd00:1::2/127", wantStart: "fd00:1::2", wantEnd: "fd00:1::3", wantGateway: "fd00:1::2", size: 1},
		"v6/128 has no gateway":               {subnet: "fd00:1::2/128", wantStart: "fd00:1::2", wantEnd: "fd00:1::2", size: 1},
		"v6/64 is huge":                       {subnet: "fd00:1::/64", wantStart: "fd00:1::1", wantEnd: "fd00:1::ffff:ffff:ffff:ffff", wantGateway: "fd00:1::1", size: math.MaxUint64 - 1},
		"v6/0":                                {subnet: "::/0", wantStart: "::1", wantEnd: "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", wantGateway: "::1", size: math.MaxUint64},
		"given/all": {subnet: "10.1.2.0/24", start: "10.1.2.10", end: "10.1.2.20", gateway: "10.1.2.15",
			wantStart: "10.1.2.10", wantEnd: "10.1.2.20", wantGateway: "10.1.2.15", size: 10},
		"given/gateway outside the run": {subnet: "10.1.2.0/24", start: "10.1.2.10", end: "10.1.2.20", gateway: "10.1.2.254",
			wantStart: "10.1.2.10", wantEnd: "10.1.2.20", wantGateway: "10.1.2.254", size: 11},
		"given/one address": {subnet: "10.1.2.0/24", start: "10.1.2.10", end: "10.1.2.10",
			wantStart: "10.1.2.10", wantEnd: "10.1.2.10", wantGateway: "10.1.2.1", size: 1},
		"given/network and broadcast stay out of circulation": {subnet: "10.1.2.0/24", start: "10.1.2.0", end: "10.1.2.255",
			wantStart: "10.1.2.0", wantEnd: "10.1.2.255", wantGateway: "10.1.2.1", size: 253},
		"given/mapped addresses are IPv4": {subnet: "10.1.2.0/24", start: "::ffff:10.1.2.10", end: "::ffff:10.1.2.20", gateway: "::ffff:10.1.2.2",
			wantStart: "10.1.2.10", wantEnd: "10.1.2.20", wantGateway: "10.1.2.2", size: 11},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := ParseRange(c.subnet, c.start, c.end, c.gateway)
			require.NoError(t, err)
			assert.Equal(t, addr(c.wantStart), r.Start, "start")
			assert.Equal(t, addr(c.wantEnd), r.End, "end")
			assert.Equal(t, addr(c.wantGateway), r.Gateway, "gateway")
			assert.Equal(t, c.size, sizeOf(spaces([]RangeSet{{r}})[0].all()), "size")
		})
	}
}

func TestParseRangeRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		subnet, start, end, gateway string
		key, want                   string
	}{
		"subnet/missing":        {key: "subnet", want: "is missing"},
		"subnet/garbage":        {subnet: "10.1.2.0", key: "subnet", want: `subnet="10.1.2.0": is not a subnet in CIDR form; write an address with a prefix length`},
		"subnet/host bits":      {subnet: "10.1.2.3/24", key: "subnet", want: `subnet="10.1.2.3/24": has host bits set; write 10.1.2.0/24`},
		"subnet/mapped":         {subnet: "::ffff:10.1.2.0/120", key: "subnet", want: "is an IPv4 subnet in IPv6 notation; write it as IPv4"},
		"subnet/gateway only":   {subnet: "10.1.2.4/32", gateway: "10.1.2.4", key: "subnet", want: "leaves no address"},
		"subnet/broadcast only": {subnet: "10.1.2.0/24", start: "10.1.2.255", end: "10.1.2.255", key: "subnet", want: "leaves no address"},
		"gateway/outside":       {subnet: "10.1.2.0/24", gateway: "10.1.3.1", key: "gateway", want: `gateway="10.1.3.1": is outside the subnet 10.1.2.0/24; name an address of the subnet or leave it out`},
		"gateway/other family":  {subnet: "10.1.2.0/24", gateway: "fd00::1", key: "gateway", want: "is outside the subnet"},
		"gateway/garbage":       {subnet: "10.1.2.0/24", gateway: "10.1.2", key: "gateway", want: `gateway="10.1.2": is not an IP address`},
		"gateway/zone":          {subnet: "fe80::/64", gateway: "fe80::1%eth0", key: "gateway", want: `has a zone; write it without %eth0`},
		"start/outside":         {subnet: "10.1.2.0/24", start: "10.1.3.0", key: "rangeStart", want: "is outside the subnet"},
		"end/outside":           {subnet: "10.1.2.0/24", end: "10.1.3.0", key: "rangeEnd", want: "is outside the subnet"},
		"start/after end":       {subnet: "10.1.2.0/24", start: "10.1.2.20", end: "10.1.2.10", key: "rangeStart", want: `rangeStart="10.1.2.20": lies after rangeEnd 10.1.2.10`},
		"start/after default end": {subnet: "255.255.255.252/30", start: "255.255.255.255", gateway: "255.255.255.255",
			key: "rangeStart", want: "lies after rangeEnd 255.255.255.254"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseRange(c.subnet, c.start, c.end, c.gateway)
			var re *RangeError
			require.ErrorAs(t, err, &re)
			assert.Equal(t, c.key, re.Key)
			assert.NotEmpty(t, re.Fix)
			assert.ErrorContains(t, err, c.want)
		})
	}
}

func TestNormalizeSetsRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		sets       [][]string // subnet or subnet start end
		set, index int
		want       string
	}{
		"empty set":                {sets: [][]string{{"10.1.0.0/24"}, {}}, set: 1, want: "range set is empty"},
		"mixed families":           {sets: [][]string{{"10.1.0.0/24", "fd00::/64"}}, index: 1, want: "is of another address family than 10.1.0.0/24"},
		"overlap/inside a set":     {sets: [][]string{{"10.1.0.0/22", "10.1.2.0/24"}}, index: 1, want: "10.1.2.1-10.1.2.254 overlaps 10.1.0.1-10.1.3.254"},
		"overlap/contained":        {sets: [][]string{{"10.1.2.0/24", "10.1.0.0/22"}}, index: 1, want: "overlaps"},
		"overlap/between sets":     {sets: [][]string{{"10.1.0.0/24"}, {"fd00::/64"}, {"10.9.0.0/24", "10.1.0.0/16"}}, set: 2, index: 1, want: "overlaps"},
		"bad range, with position": {sets: [][]string{{"10.1.0.0/24"}, {"10.2.0.0/24", "10.3.0.1/24"}}, set: 1, index: 1, want: "host bits"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NormalizeSets(rangeSets(c.sets))
			var re *RangeError
			require.ErrorAs(t, err, &re)
			assert.Equal(t, []int{c.set, c.index}, []int{re.Set, re.Range})
			assert.ErrorContains(t, err, c.want)
		})
	}
}

func TestNormalizeSetsAccepts(t *testing.T) {
	halves := []RangeSet{
		{{Subnet: pfx("10.1.0.0/24"), End: addr("10.1.0.127")}},
		{{Subnet: pfx("10.1.0.0/24"), Start: addr("10.1.0.128")}},
	}
	got, err := NormalizeSets(halves)
	require.NoError(t, err)
	assert.Equal(t, "10.1.0.1-10.1.0.127", got[0].String())
	assert.False(t, halves[0][0].Start.IsValid(), "the argument is left unchanged")
}

func TestRangeSetOrder(t *testing.T) {
	sets, err := NormalizeSets([]RangeSet{{
		{Subnet: pfx("10.1.0.0/29"), Start: addr("10.1.0.3"), End: addr("10.1.0.5"), Gateway: addr("10.1.0.4")},
		{Subnet: pfx("10.2.0.0/30")},
		{Subnet: pfx("10.3.0.0/30"), End: addr("10.3.0.3")},
	}})
	require.NoError(t, err)
	for last, want := range map[string][]string{
		"":         {"10.1.0.3", "10.1.0.5", "10.2.0.2", "10.3.0.2"},
		"10.1.0.3": {"10.1.0.5", "10.2.0.2", "10.3.0.2", "10.1.0.3"},
		"10.2.0.2": {"10.3.0.2", "10.1.0.3", "10.1.0.5", "10.2.0.2"},
		"10.3.0.3": {"10.1.0.3", "10.1.0.5", "10.2.0.2", "10.3.0.2"},
		"10.9.9.9": {"10.1.0.3", "10.1.0.5", "10.2.0.2", "10.3.0.2"},
	} {
		t.Run("after "+last, func(t *testing.T) {
			var got []string
			segments := spaces(sets)[0].after(addr(last))
			for _, g := range segments {
				for a := g.first; g.contains(a); a = a.Next() {
					got = append(got, a.String())
				}
			}
			assert.Equal(t, want, got)
			assert.EqualValues(t, len(want), sizeOf(segments))
		})
	}
}

func FuzzParseRange(f *testing.F) {
	for _, s := range []string{"10.1.2.0/24", "10.1.2.0/31", "1.2.3.4/32", "fd00::/64", "::/0", "0.0.0.0/0", "::ffff:1.2.3.0/120", "10.1.2.3/8", ""} {
		f.Add(s, "", "", "", "")
		f.Add(s, "10.1.2.3", "10.1.2.250", "10.1.2.254", "10.1.2.128/25")
		f.Add(s, "fd00::", "fd00::ffff", "fe80::1%lo", "fd00::7")
	}
	f.Fuzz(func(t *testing.T, subnet, start, end, gateway, exclude string) {
		r, err := ParseRange(subnet, start, end, gateway)
		if err == nil && exclude != "" {
			var x netip.Prefix
			if x, err = ParseExclude(exclude); err == nil {
				r.Exclude = append(r.Exclude, x)
				r, err = r.Normalize()
			}
		}
		if err != nil {
			var re *RangeError
			require.ErrorAs(t, err, &re, "every error has a key and a way out")
			require.NotEmpty(t, re.Key)
			require.NotEmpty(t, re.Fix)
			return
		}
		require.True(t, r.Subnet.Contains(r.Start) && r.Subnet.Contains(r.End))
		require.False(t, r.End.Less(r.Start))
		again, err := r.Normalize()
		require.NoError(t, err)
		require.Equal(t, r, again, "normalizing twice changes nothing")
		requireSegments(t, r)
	})
}

// requireSegments checks what a valid range hands out.
func requireSegments(t *testing.T, r Range) {
	t.Helper()
	segments := r.segments([]netip.Addr{r.Gateway})
	require.NotZero(t, sizeOf(segments))
	require.NotEmpty(t, segments, "a valid range has an address")
	for _, g := range segments {
		require.False(t, g.last.Less(g.first))
		require.True(t, r.Contains(g.first) && r.Contains(g.last) && r.Subnet.Contains(g.first) && !g.contains(r.Gateway))
		for _, x := range r.Exclude {
			require.False(t, x.Contains(g.first) || x.Contains(g.last) || g.contains(x.Addr()))
		}
	}
}

func addr(s string) netip.Addr {
	if s == "" {
		return netip.Addr{}
	}
	return netip.MustParseAddr(s)
}

func pfx(s string) netip.Prefix { return netip.MustParsePrefix(s) }

func rangeSets(sets [][]string) []RangeSet {
	var out []RangeSet
	for _, subnets := range sets {
		s := RangeSet{}
		for _, subnet := range subnets {
			s = append(s, Range{Subnet: pfx(subnet)})
		}
		out = append(out, s)
	}
	return out
}
