package cni

import (
	"net/netip"
	"slices"
)

// AddInterface appends an interface and returns its index in the form that
// [IP.Interface] has.
func (r *Result) AddInterface(i Interface) *int {
	r.Interfaces = append(r.Interfaces, i)
	index := len(r.Interfaces) - 1
	return &index
}

// Interface finds an interface by its name and its sandbox, which is CNI_NETNS in the
// container and empty on the host, and returns its index. It is -1 if there is none;
// a nil result has none.
func (r *Result) Interface(name, sandbox string) (Interface, int) {
	if r == nil {
		return Interface{}, -1
	}
	i := slices.IndexFunc(r.Interfaces, func(i Interface) bool { return i.Name == name && i.Sandbox == sandbox })
	if i < 0 {
		return Interface{}, -1
	}
	return r.Interfaces[i], i
}

// Addresses returns the addresses of the interface at the index. Addresses that name
// no interface, as IPAM plugins return them, have the index -1.
func (r *Result) Addresses(index int) (addrs []netip.Prefix) {
	if r == nil {
		return nil
	}
	for _, ip := range r.IPs {
		if ip.index() == index {
			addrs = append(addrs, ip.Address)
		}
	}
	return addrs
}

// index is that of the interface, -1 for none.
func (ip IP) index() int {
	if ip.Interface == nil {
		return -1
	}
	return *ip.Interface
}
