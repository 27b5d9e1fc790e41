package netif

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Verify compares an interface of the namespace at path netns with what it should have:
// it is switched on, its other end is, too, it has the addresses, none of them refused
// as duplicate, and the namespace has routes to the destinations. All that is wrong is
// in the error.
//
// What a later plugin may have changed is tolerated: the MAC address, the MTU, further
// addresses and routes, and the gateway, interface, table and priority of a route. An
// IPv6 address that is still being checked for duplicates is taken to be good.
//
// Verify fits cni.CheckWith.
func Verify(ctx context.Context, netns, ifName string, addrs, routes []netip.Prefix) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	n, err := Open(netns)
	if err != nil {
		return err
	}
	defer n.Close()
	link, err := n.find(ifName)
	if err != nil {
		return err
	}
	return errors.Join(verifyLink(facts(link)), n.verifyAddresses(link, addrs), n.verifyRoutes(ifName, routes))
}

func verifyLink(link Link) error {
	switch {
	case !link.Up:
		return fmt.Errorf("interface %q is switched off", link.Name)
	case !link.Carrier:
		return fmt.Errorf("interface %q has no carrier: its other end is switched off", link.Name)
	}
	return nil
}

func (n *Namespace) verifyAddresses(link netlink.Link, wanted []netip.Prefix) error {
	has, err := n.conn.Addrs(link, unix.AF_UNSPEC)
	if err != nil {
		return err
	}
	failed := map[netip.Prefix]bool{}
	for _, addr := range has {
		if p, ok := prefixOf(addr.IPNet); ok {
			failed[p] = addr.Flags&unix.IFA_F_DADFAILED != 0
		}
	}
	var errs []error
	for _, addr := range wanted {
		duplicate, present := failed[addr]
		switch {
		case !present:
			errs = append(errs, fmt.Errorf("interface %q has lost its address %s", link.Attrs().Name, addr))
		case duplicate:
			errs = append(errs, fmt.Errorf("interface %q: another host on the link has its address %s", link.Attrs().Name, addr))
		}
	}
	return errors.Join(errs...)
}

func (n *Namespace) verifyRoutes(ifName string, wanted []netip.Prefix) error {
	if len(wanted) == 0 {
		return nil
	}
	has, err := n.routes(unix.AF_UNSPEC)
	if err != nil {
		return err
	}
	present := map[netip.Prefix]bool{}
	for _, r := range has {
		if r.Type == unix.RTN_UNICAST {
			present[routeDst(r)] = true
		}
	}
	var errs []error
	for _, dst := range wanted {
		if !present[dst.Masked()] {
			errs = append(errs, fmt.Errorf("the route to %s, set up with interface %q, is gone", dst, ifName))
		}
	}
	return errors.Join(errs...)
}
