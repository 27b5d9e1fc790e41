package cni

import (
	"fmt"
	"net/netip"
	"slices"
)

// Encode renders the result as a document of the given version and leaves out
// what that version cannot carry: before 1.1.0 the newer members of Interface and
// Route, before 0.3.0 interfaces and all but the first address of each family.
// Such a document needs an address. Unknown keys are kept as they are, except
// that Extra never replaces a key that the version defines. An IPv4 address in IPv6
// form (::ffff:10.0.0.1) is written as the IPv4 address that it is.
//
// It fails with [CodeIncompatibleVersion] for a version outside
// SupportedVersions, and for a result that ParseResult would refuse.
func (r *Result) Encode(version string) ([]byte, error) {
	if !slices.Contains(SupportedVersions(), version) {
		return nil, Errorf(CodeIncompatibleVersion, "encode result: cniVersion %q is not supported, use one of %v", version, SupportedVersions())
	}
	r = r.unmapped()
	if err := r.validate(); err != nil {
		return nil, fmt.Errorf("encode result: %w", err)
	}
	var o object
	o.value("cniVersion", version)
	known := []string{"cniVersion", "interfaces", "ips", "routes", "dns"}
	if perFamily(version) {
		known = []string{"cniVersion", "ip4", "ip6", "dns"}
		if len(r.IPs) == 0 {
			return nil, fmt.Errorf("encode result: version %s needs an IP address and the result has none", version)
		}
		o.family("ip4", r, netip.Addr.Is4)
		o.family("ip6", r, netip.Addr.Is6)
	} else {
		addList(&o, "interfaces", r.Interfaces, version, Interface.encode)
		addList(&o, "ips", r.IPs, version, IP.encode)
		addList(&o, "routes", r.Routes, version, Route.encode)
	}
	o.dns("dns", r.DNS)
	o.extra(r.Extra, known...)
	if o.err != nil {
		return nil, fmt.Errorf("encode result: %w", o.err)
	}
	return o.bytes(), nil
}

// unmapped is the result with IPv4 addresses in their own form.
func (r *Result) unmapped() *Result {
	c := *r
	c.IPs, c.Routes = slices.Clone(r.IPs), slices.Clone(r.Routes)
	for i, ip := range c.IPs {
		c.IPs[i].Address, c.IPs[i].Gateway = unmap(ip.Address), ip.Gateway.Unmap()
	}
	for i, route := range c.Routes {
		c.Routes[i].Dst, c.Routes[i].GW = unmap(route.Dst), route.GW.Unmap()
	}
	return &c
}

// family renders the ip4 or ip6 object of versions before 0.3.0.
func (o *object) family(key string, r *Result, of func(netip.Addr) bool) {
	i := slices.IndexFunc(r.IPs, func(ip IP) bool { return of(ip.Address.Addr()) })
	if i < 0 {
		return
	}
	var routes []Route
	for _, route := range r.Routes {
		if of(route.Dst.Addr()) {
			routes = append(routes, route)
		}
	}
	var inner object
	inner.value("ip", r.IPs[i].Address)
	inner.addr("gateway", r.IPs[i].Gateway)
	addList(&inner, "routes", routes, "0.2.0", Route.encode)
	inner.extra(r.IPs[i].Extra, "ip", "gateway", "routes")
	o.object(key, &inner)
}

func (i Interface) encode(o *object, version string) {
	o.value("name", i.Name)
	o.text("mac", i.MAC)
	if atLeast(version, "1.1.0") {
		o.number("mtu", i.MTU)
	}
	o.text("sandbox", i.Sandbox)
	if atLeast(version, "1.1.0") {
		o.text("socketPath", i.SocketPath)
		o.text("pciID", i.PCIID)
	}
	o.extra(i.Extra, "name", "mac", "mtu", "sandbox", "socketPath", "pciID")
}

func (ip IP) encode(o *object, version string) {
	if !atLeast(version, "1.0.0") {
		family := "6"
		if ip.Address.Addr().Is4() {
			family = "4"
		}
		o.value("version", family)
	}
	if ip.Interface != nil {
		o.value("interface", *ip.Interface)
	}
	o.value("address", ip.Address)
	o.addr("gateway", ip.Gateway)
	o.extra(ip.Extra, "version", "interface", "address", "gateway")
}

func (r Route) encode(o *object, version string) {
	o.value("dst", r.Dst)
	o.addr("gw", r.GW)
	if atLeast(version, "1.1.0") {
		o.number("mtu", r.MTU)
		o.number("advmss", r.AdvMSS)
		o.number("priority", r.Priority)
		if r.Table != nil {
			o.value("table", *r.Table)
		}
		if r.Scope != nil {
			o.value("scope", *r.Scope)
		}
	}
	o.extra(r.Extra, "dst", "gw", "mtu", "advmss", "priority", "table", "scope")
}

func (o *object) dns(key string, d DNS) {
	var inner object
	inner.texts("nameservers", d.Nameservers)
	inner.text("domain", d.Domain)
	inner.texts("search", d.Search)
	inner.texts("options", d.Options)
	inner.extra(d.Extra, "nameservers", "domain", "search", "options")
	if inner.members > 0 {
		o.object(key, &inner)
	}
}
