package cni

import (
	"fmt"
	"net/netip"
)

// ParseResult reads a result document of any version, numbers and unknown keys
// exactly. The document's own cniVersion decides its form; without one it is read
// as the version given, and without that as 0.1.0. A version that is not known is
// read in the form of 1.x, which the specification keeps compatible.
//
// Errors name the place in the document: "ips[0].address". Null entries, indices
// out of range, negative numbers and malformed addresses are errors.
func ParseResult(data []byte, version string) (*Result, error) {
	r, err := parseResult(data, version)
	if err != nil {
		return nil, fmt.Errorf("parse result: %w", err)
	}
	return r, nil
}

func parseResult(data []byte, version string) (*Result, error) {
	f, err := readFields("", data)
	if err != nil {
		return nil, err
	}
	r := &Result{CNIVersion: f.text("cniVersion")}
	if r.CNIVersion == "" {
		r.CNIVersion = orOldest(version)
	}
	r.DNS = f.dns("dns")
	if perFamily(r.CNIVersion) {
		f.family(r, "ip4")
		f.family(r, "ip6")
	} else {
		r.Interfaces = readList(f, "interfaces", (*fields).resultInterface)
		r.IPs = readList(f, "ips", (*fields).ip)
		r.Routes = readList(f, "routes", (*fields).route)
	}
	r.Extra = f.rest()
	if f.err != nil {
		return nil, f.err
	}
	return r, r.validate()
}

// family reads the ip4 or ip6 object of versions before 0.3.0.
func (f *fields) family(r *Result, key string) {
	inner := f.object(key)
	if inner == nil {
		return
	}
	ip := IP{Address: inner.prefix("ip"), Gateway: inner.addr("gateway")}
	routes := readList(inner, "routes", (*fields).route)
	if ip.Address.Addr().Is4() != (key == "ip4") {
		inner.fail("ip", "%v is of the other family", ip.Address)
	}
	ip.Extra = inner.rest()
	f.adopt(inner)
	r.IPs = append(r.IPs, ip)
	r.Routes = append(r.Routes, routes...)
}

func (f *fields) resultInterface() Interface {
	return Interface{
		Name:       f.text("name"),
		MAC:        f.text("mac"),
		MTU:        f.number("mtu"),
		Sandbox:    f.text("sandbox"),
		SocketPath: f.text("socketPath"),
		PCIID:      f.text("pciID"),
		Extra:      f.rest(),
	}
}

func (f *fields) ip() IP {
	delete(f.members, "version") // follows from Address
	return IP{
		Address:   f.prefix("address"),
		Gateway:   f.addr("gateway"),
		Interface: f.numberPointer("interface"),
		Extra:     f.rest(),
	}
}

func (f *fields) route() Route {
	return Route{
		Dst:      f.prefix("dst"),
		GW:       f.addr("gw"),
		MTU:      f.number("mtu"),
		AdvMSS:   f.number("advmss"),
		Priority: f.number("priority"),
		Table:    f.numberPointer("table"),
		Scope:    f.numberPointer("scope"),
		Extra:    f.rest(),
	}
}

func (f *fields) dns(key string) DNS {
	inner := f.object(key)
	if inner == nil {
		return DNS{}
	}
	var d DNS
	inner.take("nameservers", &d.Nameservers, "a list of strings")
	inner.take("domain", &d.Domain, "a string")
	inner.take("search", &d.Search, "a list of strings")
	inner.take("options", &d.Options, "a list of strings")
	d.Extra = inner.rest()
	f.adopt(inner)
	return d
}

// validate checks what a type cannot express. It names the first fault by its
// place in the document.
func (r *Result) validate() error {
	for i, iface := range r.Interfaces {
		if iface.MTU < 0 {
			return fmt.Errorf("interfaces[%d].mtu: %d is negative", i, iface.MTU)
		}
	}
	for i, ip := range r.IPs {
		if err := ip.validate(len(r.Interfaces)); err != nil {
			return fmt.Errorf("ips[%d].%w", i, err)
		}
	}
	for i, route := range r.Routes {
		if err := route.validate(); err != nil {
			return fmt.Errorf("routes[%d].%w", i, err)
		}
	}
	return nil
}

func (ip IP) validate(interfaces int) error {
	if !ip.Address.IsValid() {
		return fmt.Errorf("address: is missing or invalid, want an address with a prefix length")
	}
	if ip.Interface != nil && (*ip.Interface < 0 || *ip.Interface >= interfaces) {
		return fmt.Errorf("interface: %d is out of range, the result has %d interfaces", *ip.Interface, interfaces)
	}
	return validateGateway("gateway", ip.Gateway)
}

// validateGateway refuses a zone: it is the name of an interface in the namespace that
// the address was seen in.
func validateGateway(key string, gateway netip.Addr) error {
	if gateway.Zone() != "" {
		return fmt.Errorf("%s: %v has a zone, use %v", key, gateway, gateway.WithZone(""))
	}
	return nil
}

func (r Route) validate() error {
	if !r.Dst.IsValid() {
		return fmt.Errorf("dst: is missing or invalid, want a network with a prefix length")
	}
	numbers := []struct {
		key   string
		value *int
	}{{"mtu", &r.MTU}, {"advmss", &r.AdvMSS}, {"priority", &r.Priority}, {"table", r.Table}, {"scope", r.Scope}}
	for _, n := range numbers {
		if n.value != nil && *n.value < 0 {
			return fmt.Errorf("%s: %d is negative", n.key, *n.value)
		}
	}
	return validateGateway("gw", r.GW)
}
