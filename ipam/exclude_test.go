package ipam

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParseExclude(t *testing.T) {
	for text, want := range map[string]string{
		"10.1.0.7": "10.1.0.7/32", "::ffff:10.1.0.7": "10.1.0.7/32", "10.1.0.16/28": "10.1.0.16/28", "fd00::7": "fd00::7/128", "fd00::/80": "fd00::/80",
	} {
		p, err := ParseExclude(text)
		require.NoError(t, err, text)
		assert.Equal(t, pfx(want), p)
	}
	for text, want := range map[string]string{
		"":              `exclude="": is neither an address nor a subnet in CIDR form; write one such as 10.1.0.10 or 10.1.0.16/28`,
		"10.1.0":        "is neither",
		"fe80::1%eth0":  `has a zone; write it without %eth0`,
		"10.1.0.0-10.2": "is neither",
	} {
		_, err := ParseExclude(text)
		var re *RangeError
		require.ErrorAs(t, err, &re, text)
		assert.Equal(t, "exclude", re.Key)
		assert.ErrorContains(t, err, want)
	}
}

func TestExclude(t *testing.T) {
	for name, c := range map[string]struct {
		r    Range
		want string // segments
		size uint64
	}{
		"in the middle":          {Range{Subnet: pfx("10.1.0.0/27"), Exclude: pfxs("10.1.0.8/30")}, "[10.1.0.2-10.1.0.7 10.1.0.12-10.1.0.30]", 25},
		"beside the gateway":     {Range{Subnet: pfx("10.1.0.0/29"), Exclude: pfxs("10.1.0.2/32")}, "[10.1.0.3-10.1.0.6]", 4},
		"the end":                {Range{Subnet: pfx("10.1.0.0/29"), Exclude: pfxs("10.1.0.4/30")}, "[10.1.0.2-10.1.0.3]", 2},
		"outside the run":        {Range{Subnet: pfx("10.1.0.0/24"), End: addr("10.1.0.9"), Exclude: pfxs("10.1.0.64/26")}, "[10.1.0.2-10.1.0.9]", 8},
		"overlapping, unordered": {Range{Subnet: pfx("10.1.0.0/28"), Exclude: pfxs("10.1.0.10/32", "10.1.0.8/29", "10.1.0.4/32")}, "[10.1.0.2-10.1.0.3 10.1.0.5-10.1.0.7]", 5},
		"end of the family":      {Range{Subnet: pfx("255.255.255.248/29"), End: addr("255.255.255.255"), Exclude: pfxs("255.255.255.252/30")}, "[255.255.255.250-255.255.255.251]", 2},
		"half of a huge one": {Range{Subnet: pfx("fd00::/64"), Exclude: pfxs("fd00::/65")},
			"[fd00::8000:0:0:0-fd00::ffff:ffff:ffff:ffff]", 1 << 63},
		"IPv4 in IPv6 notation": {Range{Subnet: pfx("::/64"), Start: addr("::fffe:ffff:fffe"), End: addr("::1:0:0:1")},
			"[::fffe:ffff:fffe-::fffe:ffff:ffff ::1:0:0:0-::1:0:0:1]", 4},
		"one of a pair": {Range{Subnet: pfx("10.1.0.2/31"), Gateway: addr("10.1.0.2")}, "[10.1.0.3-10.1.0.3]", 1},
	} {
		t.Run(name, func(t *testing.T) {
			sets, err := NormalizeSets([]RangeSet{{c.r}})
			require.NoError(t, err)
			var got []string
			segments := spaces(sets)[0].all()
			for _, g := range segments {
				got = append(got, g.first.String()+"-"+g.last.String())
			}
			assert.Equal(t, c.want, fmt.Sprint(got))
			assert.Equal(t, c.size, sizeOf(segments))
		})
	}
}

func TestExcludeRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		sets  []RangeSet
		want  string
		index []int
	}{
		"outside": {[]RangeSet{{{Subnet: pfx("10.1.0.0/24"), Exclude: pfxs("10.2.0.0/28")}}},
			`exclude="10.2.0.0/28": is not inside the subnet 10.1.0.0/24; exclude a part`, []int{0, 0}},
		"more than the subnet": {[]RangeSet{{{Subnet: pfx("10.1.0.0/24"), Exclude: pfxs("10.0.0.0/8")}}}, "is not inside", []int{0, 0}},
		"other family":         {[]RangeSet{{{Subnet: pfx("10.1.0.0/24"), Exclude: pfxs("fd00::/80")}}}, "is not inside", []int{0, 0}},
		"host bits":            {[]RangeSet{{{Subnet: pfx("10.1.0.0/24"), Exclude: pfxs("10.1.0.7/28")}}}, "has host bits set; write 10.1.0.0/28", []int{0, 0}},
		"nothing":              {[]RangeSet{{{Subnet: pfx("10.1.0.0/24"), Exclude: make([]netip.Prefix, 1)}}}, "is not an address or subnet", []int{0, 0}},
		"everything": {[]RangeSet{{{Subnet: pfx("10.1.0.0/24"), Exclude: pfxs("10.1.0.0/25", "10.1.0.128/25")}}},
			"leaves no address to hand out between 10.1.0.1 and 10.1.0.254", []int{0, 0}},
		"all that other gateways leave": {[]RangeSet{
			{{Subnet: pfx("10.1.0.0/24"), End: addr("10.1.0.9"), Gateway: addr("10.1.0.20")}},
			{{Subnet: pfx("10.2.0.0/24")}, {Subnet: pfx("10.1.0.0/24"), Start: addr("10.1.0.20"), End: addr("10.1.0.20")}},
		}, "the gateways of other ranges are in it", []int{1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NormalizeSets(c.sets)
			var re *RangeError
			require.ErrorAs(t, err, &re)
			assert.ErrorContains(t, err, c.want)
			assert.Equal(t, c.index, []int{re.Set, re.Range})
			assert.NotEmpty(t, re.Fix)
		})
	}
}

// Cutting segments out gives the same as asking address by address.
func TestSegmentsAgainstAddresses(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 2000 {
		r := Range{Subnet: pfx("10.1.0.0/27"), Gateway: pick(rnd), Start: pick(rnd), End: pick(rnd)}
		for range rnd.IntN(4) {
			x, _ := pick(rnd).Prefix(28 + rnd.IntN(5))
			r.Exclude = append(r.Exclude, x)
		}
		other := pick(rnd)
		var want, got []netip.Addr
		for a := r.Start; !r.End.Less(a); a = a.Next() {
			closed := slices.ContainsFunc(r.Exclude, func(x netip.Prefix) bool { return x.Contains(a) })
			if !closed && a != r.Gateway && a != other && a != addr("10.1.0.0") && a != addr("10.1.0.31") {
				want = append(want, a)
			}
		}
		s := space{RangeSet{r}, [][]segment{r.segments([]netip.Addr{r.Gateway, other})}}
		last := pick(rnd)
		for _, g := range s.after(last) {
			for a := g.first; g.contains(a); a = a.Next() {
				got = append(got, a)
				require.True(t, s.holds(a))
			}
		}
		if r.Contains(last) { // behind it first
			i, _ := slices.BinarySearchFunc(want, last.Next(), netip.Addr.Compare)
			want = slices.Concat(want[i:], want[:i])
		}
		require.Equal(t, want, got, "%v %v behind %s", r, r.Exclude, last)
		require.EqualValues(t, len(want), sizeOf(s.all()))
		require.False(t, s.holds(r.Gateway) || s.holds(other))
	}
}

func pick(rnd *rand.Rand) netip.Addr { return netip.AddrFrom4([4]byte{10, 1, 0, byte(rnd.IntN(32))}) }

func pfxs(texts ...string) (out []netip.Prefix) {
	for _, s := range texts {
		out = append(out, pfx(s))
	}
	return out
}
