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
		prev, err := r.RequirePrevResult()
		if err != nil {
			return err
		}
		return checkResult(ctx, prev, r.NetNS.Path, r.IfName, verify)
	}
}

func checkResult(ctx context.Context, prev *Result, netns, ifName string, verify VerifyFunc) error {
	found := false
	var faults []error
	for i, iface := range prev.Interfaces {
		if iface.Sandbox != netns {
			continue
		}
		main := iface.Name == ifName
		found = found || main
		addrs := prev.Addresses(i)
		var routes []netip.Prefix
		if main {
			addrs = append(addrs, prev.Addresses(-1)...)
			routes = prev.destinations()
		}
		if err := verify(ctx, netns, iface.Name, addrs, routes); err != nil {
			faults = append(faults, fmt.Errorf("check interface %s: %w", iface.Name, err))
		}
	}
	if !found {
		faults = append(faults, Errorf(CodeInvalidConfig,
			"prevResult has no interface CNI_IFNAME=%q with sandbox CNI_NETNS=%q", ifName, netns))
	}
	return errors.Join(faults...)
}

func (r *Result) destinations() (dsts []netip.Prefix) {
	for _, route := range r.Routes {
		dsts = append(dsts, route.Dst)
	}
	return dsts
}
