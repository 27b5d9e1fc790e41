package vxlan

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestMetric(t *testing.T) {
	for prefix, want := range map[string]int{
		// Fixed for ever: nodes of different versions need not agree, but a restart with
		// another function would move every route.
		"10.244.2.0/24":      28299876,
		"10.244.3.0/24":      29964464,
		"fd00:10:244:2::/64": 1024,
		"::/0":               1024,
	} {
		assert.Equal(t, want, Metric(netip.MustParsePrefix(prefix)), prefix)
	}
	assert.Equal(t, Metric(netip.MustParsePrefix("10.1.2.3/24")), Metric(netip.MustParsePrefix("10.1.2.0/24")), "host bits do not count")
	assert.NotEqual(t, Metric(netip.MustParsePrefix("10.1.2.0/24")), Metric(netip.MustParsePrefix("10.1.2.0/25")))
}

// Pod CIDRs are consecutive; their metrics must not be.
func TestMetricsAreSpread(t *testing.T) {
	seen := map[int]int{}
	for i := range 65536 {
		m := Metric(netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 0}), 24))
		assert.GreaterOrEqual(t, m, 16777216)
		assert.LessOrEqual(t, m, 33554431)
		seen[m]++
	}
	worst := 0
	for _, n := range seen {
		worst = max(worst, n)
	}
	assert.LessOrEqual(t, worst, 4)
	assert.Greater(t, len(seen), 65000)
}
