package plugin

import (
	"context"
	"net/netip"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/ipam"
)

// add does everything that can fail on its own before it takes an address.
func (s server) add(ctx context.Context, r *cni.Request[Config]) (*cni.Result, error) {
	a, sets, err := s.openWithRanges(r)
	if err != nil {
		return nil, err
	}
	if len(sets) == 0 {
		return nil, &cni.FieldError{Key: "ipam.ranges", Reason: "there is no range to take an address from",
			Fix: `add "subnet" or "ranges" to ipam, or pass the capability ipRanges`}
	}
	if err := checkFamilies(r, sets); err != nil {
		return nil, err
	}
	opts, err := options(r)
	if err != nil {
		return nil, err
	}
	result, err := frame(r.Config)
	if err != nil {
		return nil, err
	}
	leases, err := a.Allocate(ctx, owner(r), opts)
	if err != nil {
		return nil, report(err)
	}
	r.Undo("address allocation", func(ctx context.Context) error { return a.Undo(ctx, leases) })
	for _, l := range leases {
		result.IPs = append(result.IPs, cni.IP{Address: l.Address, Gateway: l.Gateway})
	}
	return result, nil
}

// options collects the requested addresses. As with host-local they add up: those
// of CNI_ARGS, of args.cni.ips and of the capability ips must all be satisfied.
func options(r *cni.Request[Config]) (ipam.Options, error) {
	var opts ipam.Options
	if text := requestedByArgs(r.Args); text != "" {
		addr, err := parseAddr(text)
		if err != nil {
			return opts, cni.Errorf(cni.CodeInvalidEnvironment, "CNI_ARGS: IP=%q is not an IP address; request one such as 10.1.0.5", text)
		}
		opts.Requested = []netip.Addr{addr}
	}
	more, err := r.Config.requested()
	opts.Requested = append(opts.Requested, more...)
	return opts, err
}

// requestedByArgs returns the value of IP, of several the last, as host-local does.
func requestedByArgs(args cni.Args) string {
	text := ""
	for _, arg := range args {
		if arg.Key == "IP" {
			text = arg.Value
		}
	}
	return text
}

// frame is the result without addresses.
func frame(c Config) (*cni.Result, error) {
	routes, err := c.routes()
	if err != nil {
		return nil, err
	}
	result := &cni.Result{Routes: routes}
	if path := c.IPAM.ResolvConf; path != "" {
		if result.DNS, err = readResolvConf(path); err != nil {
			return nil, &cni.FieldError{Key: "ipam.resolvConf", Value: path, Reason: err.Error(),
				Fix: "name a readable file in the form of resolv.conf, or leave the key out"}
		}
	}
	return result, nil
}
