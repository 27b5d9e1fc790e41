package bridge

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni"
)

func ip(address, gateway string) cni.IP {
	i := cni.IP{Address: netip.MustParsePrefix(address)}
	if gateway != "" {
		i.Gateway = netip.MustParseAddr(gateway)
	}
	return i
}

func route(dst, gateway string) cni.Route {
	r := cni.Route{Dst: netip.MustParsePrefix(dst)}
	if gateway != "" {
		r.GW = netip.MustParseAddr(gateway)
	}
	return r
}

func TestArrange(t *testing.T) {
	gateway := Config{IsGateway: true, IPAM: IPAM{IPAM: cni.IPAM{Type: "x"}}}
	defaults := Config{IsDefaultGateway: true, IPAM: IPAM{IPAM: cni.IPAM{Type: "x"}}}
	for _, test := range []struct {
		rule     string
		config   Config
		given    cni.Result
		gateways []string    // wanted
		routes   []cni.Route // wanted
	}{
		{rule: "gateway given", config: gateway, given: cni.Result{IPs: []cni.IP{ip("10.1.0.5/24", "10.1.0.254")}}, gateways: []string{"10.1.0.254/24"}},
		{rule: "gateway computed", config: gateway, given: cni.Result{IPs: []cni.IP{ip("10.1.0.5/24", ""), ip("fd00::5/64", "")}},
			gateways: []string{"10.1.0.1/24", "fd00::1/64"}},
		{rule: "gateway not computed unless it is the bridge", config: Config{IPAM: IPAM{IPAM: cni.IPAM{Type: "x"}}}, given: cni.Result{IPs: []cni.IP{ip("10.1.0.5/24", "")}}},
		{rule: "default routes", config: defaults, given: cni.Result{IPs: []cni.IP{ip("10.1.0.5/24", ""), ip("fd00::5/64", "")}},
			gateways: []string{"10.1.0.1/24", "fd00::1/64"}, routes: []cni.Route{route("0.0.0.0/0", "10.1.0.1"), route("::/0", "fd00::1")}},
		{rule: "one default route per family", config: defaults, given: cni.Result{IPs: []cni.IP{ip("10.1.0.5/24", ""), ip("10.2.0.5/24", "")}},
			gateways: []string{"10.1.0.1/24", "10.2.0.1/24"}, routes: []cni.Route{route("0.0.0.0/0", "10.1.0.1")}},
		{rule: "default route of the IPAM plugin stays alone", config: defaults,
			given:    cni.Result{IPs: []cni.IP{ip("10.1.0.5/24", ""), ip("fd00::5/64", "")}, Routes: []cni.Route{route("0.0.0.0/0", "10.1.0.7")}},
			gateways: []string{"10.1.0.1/24", "fd00::1/64"}, routes: []cni.Route{route("0.0.0.0/0", "10.1.0.7"), route("::/0", "fd00::1")}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			l, err := arrange(test.config, &test.given)
			require.NoError(t, err)
			var gateways []string
			for _, g := range l.gateways() {
				gateways = append(gateways, g.String())
			}
			require.Equal(t, test.gateways, gateways)
			require.Equal(t, test.routes, l.routes)
		})
	}
	t.Run("what the IPAM plugin gave is not changed", func(t *testing.T) {
		given := cni.Result{IPs: []cni.IP{ip("10.1.0.5/24", "")}}
		_, err := arrange(defaults, &given)
		require.NoError(t, err)
		require.Equal(t, cni.Result{IPs: []cni.IP{ip("10.1.0.5/24", "")}}, given)
	})
	for rule, bad := range map[string]cni.IP{
		"gateway outside":        ip("10.1.0.5/24", "10.2.0.1"),
		"gateway of a lone host": ip("10.1.0.5/32", ""),
		"gateway is its own":     ip("10.1.0.1/24", ""),
	} {
		t.Run(rule, func(t *testing.T) {
			_, err := arrange(gateway, &cni.Result{IPs: []cni.IP{bad}})
			var field *cni.FieldError
			require.ErrorAs(t, err, &field)
		})
	}
}

func TestKernelRoutes(t *testing.T) {
	l := layout{
		ips:    []cni.IP{ip("10.1.0.5/24", "10.1.0.1"), ip("fd00::5/64", "fd00::1"), ip("10.2.0.5/24", "10.2.0.1")},
		routes: []cni.Route{route("192.0.2.0/24", ""), route("2001:db8::/32", ""), route("198.51.100.0/24", "10.2.0.9")},
	}
	var gateways []string
	for _, r := range l.kernelRoutes() {
		gateways = append(gateways, r.Via.String())
	}
	require.Equal(t, []string{"10.1.0.1", "fd00::1", "10.2.0.9"}, gateways)

	l.routes = []cni.Route{route("10.1.0.0/24", ""), route("fd00::/64", ""), route("10.1.0.0/16", "")}
	for i, linked := range []bool{true, true, false} {
		require.Equal(t, linked, !l.kernelRoutes()[i].Via.IsValid(), "the subnet of an address is on the link")
	}

	l.ips, l.routes = l.ips[:1], []cni.Route{route("192.0.2.0/24", ""), route("2001:db8::/32", "")}
	require.False(t, l.kernelRoutes()[1].Via.IsValid(), "no gateway of the family: the destination is on the link")
}
