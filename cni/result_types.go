package cni

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"
)

// FromTypes converts a result of containernetworking/cni. It fails for a nil
// entry, an address that is none, and an index out of range.
func FromTypes(t *types100.Result) (*Result, error) {
	if t == nil {
		return nil, fmt.Errorf("convert result: it is nil")
	}
	r := &Result{CNIVersion: t.CNIVersion, DNS: DNS{
		Nameservers: t.DNS.Nameservers, Domain: t.DNS.Domain, Search: t.DNS.Search, Options: t.DNS.Options,
	}.clone()}
	for i, from := range t.Interfaces {
		if from == nil {
			return nil, fmt.Errorf("convert result: interfaces[%d] is nil", i)
		}
		r.Interfaces = append(r.Interfaces, Interface{
			Name: from.Name, MAC: from.Mac, MTU: from.Mtu,
			Sandbox: from.Sandbox, SocketPath: from.SocketPath, PCIID: from.PciID,
		})
	}
	for i, from := range t.IPs {
		ip, err := ipFromTypes(from)
		if err != nil {
			return nil, fmt.Errorf("convert result: ips[%d]%w", i, err)
		}
		r.IPs = append(r.IPs, ip)
	}
	for i, from := range t.Routes {
		route, err := routeFromTypes(from)
		if err != nil {
			return nil, fmt.Errorf("convert result: routes[%d]%w", i, err)
		}
		r.Routes = append(r.Routes, route)
	}
	if err := r.validate(); err != nil {
		return nil, fmt.Errorf("convert result: %w", err)
	}
	return r, nil
}

func ipFromTypes(from *types100.IPConfig) (IP, error) {
	if from == nil {
		return IP{}, fmt.Errorf(" is nil")
	}
	address, err := prefixFromNet(from.Address)
	if err != nil {
		return IP{}, fmt.Errorf(".address: %w", err)
	}
	gateway, err := addrFromNet(from.Gateway)
	if err != nil {
		return IP{}, fmt.Errorf(".gateway: %w", err)
	}
	return IP{Address: address, Gateway: gateway, Interface: cloneInt(from.Interface)}, nil
}

func routeFromTypes(from *types.Route) (Route, error) {
	if from == nil {
		return Route{}, fmt.Errorf(" is nil")
	}
	dst, err := prefixFromNet(from.Dst)
	if err != nil {
		return Route{}, fmt.Errorf(".dst: %w", err)
	}
	gw, err := addrFromNet(from.GW)
	if err != nil {
		return Route{}, fmt.Errorf(".gw: %w", err)
	}
	return Route{
		Dst: dst, GW: gw, MTU: from.MTU, AdvMSS: from.AdvMSS, Priority: from.Priority,
		Table: cloneInt(from.Table), Scope: cloneInt(from.Scope),
	}, nil
}

// ToTypes converts to a result of containernetworking/cni, which has no place for
// unknown keys. The conversion shares no memory with r; nil converts to nil.
func (r *Result) ToTypes() *types100.Result {
	if r == nil {
		return nil
	}
	dns := r.DNS.clone()
	t := &types100.Result{CNIVersion: r.CNIVersion, DNS: types.DNS{
		Nameservers: dns.Nameservers, Domain: dns.Domain, Search: dns.Search, Options: dns.Options,
	}}
	for _, from := range r.Interfaces {
		t.Interfaces = append(t.Interfaces, &types100.Interface{
			Name: from.Name, Mac: from.MAC, Mtu: from.MTU,
			Sandbox: from.Sandbox, SocketPath: from.SocketPath, PciID: from.PCIID,
		})
	}
	for _, from := range r.IPs {
		t.IPs = append(t.IPs, &types100.IPConfig{
			Address: netFromPrefix(from.Address), Gateway: from.Gateway.AsSlice(), Interface: cloneInt(from.Interface),
		})
	}
	for _, from := range r.Routes {
		t.Routes = append(t.Routes, &types.Route{
			Dst: netFromPrefix(from.Dst), GW: from.GW.AsSlice(), MTU: from.MTU, AdvMSS: from.AdvMSS,
			Priority: from.Priority, Table: cloneInt(from.Table), Scope: cloneInt(from.Scope),
		})
	}
	return t
}

func prefixFromNet(n net.IPNet) (netip.Prefix, error) {
	addr, ok := netip.AddrFromSlice(n.IP)
	ones, bits := n.Mask.Size()
	if !ok || bits == 0 {
		return netip.Prefix{}, fmt.Errorf("%v is not an address with a prefix length", n)
	}
	addr = addr.Unmap()
	if addr.Is4() && bits == 128 {
		ones -= 96
	}
	prefix := netip.PrefixFrom(addr, ones)
	if !prefix.IsValid() {
		return netip.Prefix{}, fmt.Errorf("%v: the prefix length does not fit the address", n)
	}
	return prefix, nil
}

func addrFromNet(ip net.IP) (netip.Addr, error) {
	if len(ip) == 0 {
		return netip.Addr{}, nil
	}
	addr, ok := netip.AddrFromSlice(ip)
	if !ok {
		return netip.Addr{}, fmt.Errorf("%d bytes are not an address", len(ip))
	}
	return addr.Unmap(), nil
}

func netFromPrefix(p netip.Prefix) net.IPNet {
	return net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
