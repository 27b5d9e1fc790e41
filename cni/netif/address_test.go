package netif

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

func prefixes(list ...string) []netip.Prefix {
	var parsed []netip.Prefix
	for _, s := range list {
		parsed = append(parsed, netip.MustParsePrefix(s))
	}
	return parsed
}

func TestPlanGateways(t *testing.T) {
	for _, test := range []struct {
		rule           string
		has, wanted    []string
		force          bool
		added, removed []string
		conflict       string // the address in the way
	}{
		{rule: "nothing there", wanted: []string{"10.1.0.1/24", "fd00::1/64"}, added: []string{"10.1.0.1/24", "fd00::1/64"}},
		{rule: "all there", has: []string{"10.1.0.1/24"}, wanted: []string{"10.1.0.1/24"}},
		{rule: "named twice", wanted: []string{"10.1.0.1/24", "10.1.0.1/24"}, added: []string{"10.1.0.1/24"}},
		{rule: "two ranges of one family", has: []string{"10.1.0.1/24"}, wanted: []string{"10.1.0.1/24", "10.2.0.1/24"}, added: []string{"10.2.0.1/24"}},
		{rule: "other IPv4 subnet conflicts", has: []string{"10.9.0.1/24"}, wanted: []string{"10.1.0.1/24"}, conflict: "10.9.0.1/24"},
		{rule: "other length conflicts", has: []string{"10.1.0.1/16"}, wanted: []string{"10.1.0.1/24"}, conflict: "10.1.0.1/16"},
		{rule: "other IPv6 subnet may stay", has: []string{"fd09::1/64"}, wanted: []string{"fd00::1/64"}, added: []string{"fd00::1/64"}},
		{rule: "overlapping IPv6 subnet conflicts", has: []string{"fd00::2/48"}, wanted: []string{"fd00::1/64"}, conflict: "fd00::2/48"},
		{rule: "families do not conflict", has: []string{"10.9.0.1/24"}, wanted: []string{"fd00::1/64"}, added: []string{"fd00::1/64"}},
		{rule: "force removes what conflicts", has: []string{"10.9.0.1/24", "10.1.0.7/24", "fd09::1/64"}, wanted: []string{"10.1.0.1/24", "fd00::1/64"}, force: true,
			added: []string{"10.1.0.1/24", "fd00::1/64"}, removed: []string{"10.9.0.1/24", "10.1.0.7/24"}},
		{rule: "force removes an address once", has: []string{"10.9.0.1/24"}, wanted: []string{"10.1.0.1/24", "10.2.0.1/24"}, force: true,
			added: []string{"10.1.0.1/24", "10.2.0.1/24"}, removed: []string{"10.9.0.1/24"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			change, err := planGateways("cni0", prefixes(test.has...), prefixes(test.wanted...), test.force)
			if test.conflict != "" {
				var conflict *AddressConflict
				require.ErrorAs(t, err, &conflict)
				require.Equal(t, test.conflict, conflict.Has.String())
				require.Contains(t, err.Error(), "cni0")
				return
			}
			require.NoError(t, err)
			require.Equal(t, AddressChange{Added: prefixes(test.added...), Removed: prefixes(test.removed...)}, change)
		})
	}
}
