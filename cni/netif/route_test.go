package netif_test

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni/netif"
)

func TestRouteValidate(t *testing.T) {
	v4, v6 := netip.MustParsePrefix("10.5.0.0/16"), netip.MustParsePrefix("fd05::/32")
	addr := netip.MustParseAddr
	negative, large := -1, 256
	for _, test := range []struct {
		rule  string
		route netif.Route
		err   string // empty: valid
	}{
		{"least", netif.Route{Dst: v4}, ""},
		{"default", netif.Route{Dst: netip.MustParsePrefix("0.0.0.0/0"), Via: addr("10.1.0.1")}, ""},
		{"IPv6", netif.Route{Dst: v6, Via: addr("fe80::1"), MTU: 65520, AdvMSS: 65495}, ""},
		{"zero", netif.Route{}, "Dst=invalid Prefix: is no address with a prefix length; write one such as 10.5.0.0/16, or 0.0.0.0/0 for a default route"},
		{"length too large", netif.Route{Dst: netip.PrefixFrom(addr("10.5.0.0"), 33)}, "is no address with a prefix length"},
		{"host bits", netif.Route{Dst: netip.MustParsePrefix("10.5.0.1/16")}, "Dst=10.5.0.1/16: has host bits set; write 10.5.0.0/16"},
		{"IPv6 host bits", netif.Route{Dst: netip.MustParsePrefix("fd05::1/32")}, "Dst=fd05::1/32: has host bits set; write fd05::/32"},
		{"IPv4 in IPv6", netif.Route{Dst: netip.PrefixFrom(addr("::ffff:10.5.0.0"), 112)}, "is an IPv4 address written as IPv6"},
		{"gateway of the other family", netif.Route{Dst: v4, Via: addr("fd00::1")}, "Via=fd00::1: is not of the address family of 10.5.0.0/16; use a gateway"},
		{"gateway of the other family, IPv6", netif.Route{Dst: v6, Via: addr("10.1.0.1")}, "Via=10.1.0.1: is not of the address family of fd05::/32"},
		{"gateway IPv4 in IPv6", netif.Route{Dst: v4, Via: addr("::ffff:10.1.0.1")}, "is not of the address family"},
		{"gateway with a zone", netif.Route{Dst: v6, Via: addr("fe80::1%eth0")}, "Via=fe80::1%eth0: names an interface; write fe80::1:"},
		{"gateway unspecified", netif.Route{Dst: v4, Via: addr("0.0.0.0")}, "Via=0.0.0.0: is not the address of a gateway"},
		{"gateway multicast", netif.Route{Dst: v6, Via: addr("ff02::1")}, "Via=ff02::1: is not the address of a gateway"},
		{"MTU", netif.Route{Dst: v4, MTU: 65521}, "MTU=65521: is not within 0 to 65520; leave it out"},
		{"AdvMSS", netif.Route{Dst: v4, AdvMSS: 65496}, "AdvMSS=65496: is not within 0 to 65495"},
		{"priority", netif.Route{Dst: v4, Priority: -1}, "Priority=-1: is not within 0 to 4294967295"},
		{"table", netif.Route{Dst: v4, Table: &negative}, "Table=-1: is not within 0 to 4294967295"},
		{"scope", netif.Route{Dst: v4, Scope: &large}, "Scope=256: is not within 0 to 255"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			err := test.route.Validate()
			if test.err == "" {
				require.NoError(t, err)
				return
			}
			var invalid *netif.InvalidRoute
			require.ErrorAs(t, err, &invalid)
			require.Equal(t, test.route, invalid.Route)
			require.ErrorContains(t, err, test.err)
		})
	}
}

func TestRouteEqual(t *testing.T) {
	zero, main, link, metric := 0, 254, 253, 1024
	v4 := netif.Route{Dst: netip.MustParsePrefix("10.5.0.0/16")}
	v6 := netif.Route{Dst: netip.MustParsePrefix("fd05::/32")}
	for _, test := range []struct {
		rule  string
		a, b  netif.Route
		equal bool
		text  string // of b
	}{
		{"same", v4, v4, true, "10.5.0.0/16"},
		{"main table written down", v4, netif.Route{Dst: v4.Dst, Table: &main}, true, "10.5.0.0/16"},
		{"table 0", v4, netif.Route{Dst: v4.Dst, Table: &zero}, true, "10.5.0.0/16"},
		{"scope written down", v4, netif.Route{Dst: v4.Dst, Scope: &link}, true, "10.5.0.0/16"},
		{"scope", v4, netif.Route{Dst: v4.Dst, Scope: &zero}, false, "10.5.0.0/16 scope 0"},
		{"IPv6 has no scope", v6, netif.Route{Dst: v6.Dst, Scope: &link}, true, "fd05::/32"},
		{"IPv6 priority written down", v6, netif.Route{Dst: v6.Dst, Priority: metric}, true, "fd05::/32"},
		{"IPv4 priority", v4, netif.Route{Dst: v4.Dst, Priority: metric}, false, "10.5.0.0/16 metric 1024"},
		{"gateway", v4, netif.Route{Dst: v4.Dst, Via: netip.MustParseAddr("10.1.0.1")}, false, "10.5.0.0/16 via 10.1.0.1"},
		{"table", v4, netif.Route{Dst: v4.Dst, Table: &metric}, false, "10.5.0.0/16 table 1024"},
		{"metrics", v4, netif.Route{Dst: v4.Dst, MTU: 1400, AdvMSS: 1360}, false, "10.5.0.0/16 mtu 1400 advmss 1360"},
		{"destination", v4, v6, false, "fd05::/32"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			require.Equal(t, test.equal, test.a.Equal(test.b))
			require.Equal(t, test.equal, test.b.Equal(test.a))
			require.Equal(t, test.text, test.b.String())
		})
	}
}
