package bridge

import (
	"fmt"
	"net/netip"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/cni/netif"
)

// layout is what the container's interface and the bridge should have: what the IPAM
// plugin said, completed by the configuration.
type layout struct {
	ips    []cni.IP
	routes []cni.Route // of the result
	dns    cni.DNS
}

// arrange makes the layout of one attachment. allocated is nil without an IPAM plugin.
func arrange(c Config, allocated *cni.Result) (layout, error) {
	if allocated == nil {
		return layout{dns: c.DNS}, nil
	}
	if len(allocated.IPs) == 0 {
		return layout{}, &cni.FieldError{Key: "ipam.type", Value: c.IPAM.Type, Reason: "the plugin gave no address",
			Fix: "give it a range with free addresses"}
	}
	own := allocated.Clone()
	l := layout{ips: own.IPs, routes: own.Routes, dns: own.DNS}
	if !emptyDNS(c.DNS) {
		l.dns = c.DNS
	}
	for i := range l.ips {
		if err := completeIP(c, &l.ips[i]); err != nil {
			return layout{}, err
		}
	}
	if c.IsDefaultGateway {
		l.addDefaultRoutes()
	}
	return l, nil
}

// completeIP finds the gateway when the bridge is to be it, and refuses what the kernel
// or the bridge could not serve.
func completeIP(c Config, ip *cni.IP) error {
	if c.MTU != 0 && c.MTU < minIPv6MTU && ip.Address.Addr().Is6() {
		return &cni.FieldError{Key: "mtu", Value: c.MTU,
			Reason: fmt.Sprintf("the container gets the IPv6 address %s, and IPv6 needs %d bytes", ip.Address, minIPv6MTU),
			Fix:    fmt.Sprintf("use at least %d, or a range without IPv6", minIPv6MTU)}
	}
	if !c.gateway() {
		return nil
	}
	if !ip.Gateway.IsValid() {
		ip.Gateway = ip.Address.Masked().Addr().Next()
	}
	switch {
	case !ip.Address.Contains(ip.Gateway):
		return gatewayError(c, ip, "is outside the subnet, so that the bridge cannot be it")
	case ip.Gateway == ip.Address.Addr():
		return gatewayError(c, ip, "is the container's own address")
	}
	return nil
}

func gatewayError(c Config, ip *cni.IP, reason string) error {
	return &cni.FieldError{Key: "ipam.type", Value: c.IPAM.Type,
		Reason: fmt.Sprintf("the plugin gave the address %s, whose gateway %s %s", ip.Address, ip.Gateway, reason),
		Fix:    "correct the range's gateway, or set isGateway and isDefaultGateway to false"}
}

// addDefaultRoutes adds one per family that has none.
func (l *layout) addDefaultRoutes() {
	for _, ip := range l.ips {
		dst := netip.PrefixFrom(netip.IPv4Unspecified(), 0)
		if ip.Address.Addr().Is6() {
			dst = netip.PrefixFrom(netip.IPv6Unspecified(), 0)
		}
		if !l.routeTo(dst) {
			l.routes = append(l.routes, cni.Route{Dst: dst, GW: ip.Gateway})
		}
	}
}

func (l *layout) routeTo(dst netip.Prefix) bool {
	for _, route := range l.routes {
		if route.Dst.Masked() == dst {
			return true
		}
	}
	return false
}

func (l *layout) addresses() []netip.Prefix {
	addrs := make([]netip.Prefix, len(l.ips))
	for i, ip := range l.ips {
		addrs[i] = ip.Address
	}
	return addrs
}

// gateways are the addresses of the bridge.
func (l *layout) gateways() []netip.Prefix { return gatewaysOf(l.ips) }

func gatewaysOf(ips []cni.IP) []netip.Prefix {
	var gateways []netip.Prefix
	for _, ip := range ips {
		if ip.Gateway.IsValid() {
			gateways = append(gateways, netip.PrefixFrom(ip.Gateway, ip.Address.Bits()))
		}
	}
	return gateways
}

// scopeLink is RT_SCOPE_LINK; routes of that scope and of narrower ones, which are
// greater numbers, have no gateway.
const scopeLink = 253

// kernelRoutes are the routes to set. One without a gateway goes through the first
// gateway of its family, unless its destination is the subnet of an address or its scope
// says that it is on the link.
func (l *layout) kernelRoutes() []netif.Route {
	routes := make([]netif.Route, len(l.routes))
	for i, r := range l.routes {
		routes[i] = netif.Route{Dst: r.Dst, Via: r.GW, MTU: r.MTU, AdvMSS: r.AdvMSS, Priority: r.Priority, Table: r.Table, Scope: r.Scope}
		onLink := l.connected(r.Dst) || r.Scope != nil && *r.Scope >= scopeLink
		if !r.GW.IsValid() && !onLink {
			routes[i].Via = l.gatewayFor(r.Dst)
		}
	}
	return routes
}

func (l *layout) connected(dst netip.Prefix) bool {
	for _, ip := range l.ips {
		if ip.Address.Masked() == dst {
			return true
		}
	}
	return false
}

// gatewayFor is the zero Addr when there is none.
func (l *layout) gatewayFor(dst netip.Prefix) netip.Addr {
	for _, ip := range l.ips {
		if ip.Gateway.IsValid() && ip.Gateway.Is4() == dst.Addr().Is4() {
			return ip.Gateway
		}
	}
	return netip.Addr{}
}

func emptyDNS(d cni.DNS) bool {
	return len(d.Nameservers)+len(d.Search)+len(d.Options) == 0 && d.Domain == ""
}
