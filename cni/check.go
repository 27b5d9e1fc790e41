package cni

import (
	"context"
	"fmt"
	"net/netip"
)

// VerifyFunc compares one interface in a network namespace with the addresses and
// the destinations of routes that it should have. An error says what is missing.
type VerifyFunc = func(ctx context.Context, netns, ifName string, addrs, routes []netip.Prefix) error

// CheckWith makes a Check function from one that verifies an interface: CNI_IFNAME,
// which must be in PrevResult with the request's namespace as its sandbox, with its
// addresses, the addresses that name no interface, and the routes. Other interfaces
// of PrevResult are left to the plugins that made them, which may come later in the
// chain.
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
	_, index := prev.Interface(ifName, netns)
	if index < 0 {
		return Errorf(CodeInvalidConfig, "prevResult has no interface CNI_IFNAME=%q with sandbox CNI_NETNS=%q", ifName, netns)
	}
	var routes []netip.Prefix
	for _, route := range prev.Routes {
		routes = append(routes, route.Dst)
	}
	addrs := append(prev.Addresses(index), prev.Addresses(-1)...)
	if err := verify(ctx, netns, ifName, addrs, routes); err != nil {
		return fmt.Errorf("check interface %s: %w", ifName, err)
	}
	return nil
}
