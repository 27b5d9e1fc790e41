package cni

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
)

// VerifyFunc compares one interface in a network namespace with the addresses and
// the destinations of routes that it should have. An error says what is missing.
type VerifyFunc = func(ctx context.Context, netns, ifName string, addrs, routes []netip.Prefix) error

// CheckWith makes a Check function from one that verifies an interface. It is
// called for every interface of PrevResult whose sandbox is the request's
// namespace, with the addresses that belong to it. CNI_IFNAME, which must be among
// them, also gets the addresses that name no interface and the routes.
func CheckWith[C any](verify VerifyFunc) func(context.Context, *Request[C]) error {
	return func(ctx context.Context, r *Request[C]) error {
		return checkResult(ctx, r.PrevResult, r.NetNS.Path, r.IfName, verify)
	}
}

func checkResult(ctx context.Context, prev *Result, netns, ifName string, verify VerifyFunc) error {
	if prev == nil {
		return Errorf(CodeInvalidConfig, "prevResult is missing; CHECK needs the result of the ADD")
	}
	found := false
	var faults []error
	for i, iface := range prev.Interfaces {
		if iface.Sandbox != netns {
			continue
		}
		main := iface.Name == ifName
		found = found || main
		var routes []netip.Prefix
		if main {
			routes = prev.destinations()
		}
		if err := verify(ctx, netns, iface.Name, prev.addresses(i, main), routes); err != nil {
			faults = append(faults, fmt.Errorf("check interface %s: %w", iface.Name, err))
		}
	}
	if !found {
		faults = append(faults, Errorf(CodeInvalidConfig,
			"prevResult has no interface CNI_IFNAME=%q with sandbox CNI_NETNS=%q", ifName, netns))
	}
	return errors.Join(faults...)
}

// addresses are those of the interface at the index, and those of no interface if
// unassigned is set.
func (r *Result) addresses(index int, unassigned bool) (addrs []netip.Prefix) {
	for _, ip := range r.IPs {
		if ip.Interface == nil && unassigned || ip.Interface != nil && *ip.Interface == index {
			addrs = append(addrs, ip.Address)
		}
	}
	return addrs
}

func (r *Result) destinations() (dsts []netip.Prefix) {
	for _, route := range r.Routes {
		dsts = append(dsts, route.Dst)
	}
	return dsts
}
