package netif

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnikit/cnikit/internal/nl"
)

// routeAttempts is how often AddRoutes looks again when an equal route comes or goes
// between two of its steps.
const routeAttempts = 3

// AddRoutes adds routes through the interface, which must be switched on and have its
// addresses. A gateway outside the subnets of those addresses is taken to be on the
// link.
//
// A route that the interface has stays, if it is equal ([Route.Equal]) to the one
// wanted. One that differs in the gateway or anything else is an error of type
// [*RouteConflict], and so is one of another interface. An IPv6 route that would never be
// used, because the kernel has its own one to the same subnet, is a conflict as it is for
// IPv4; ask for a Priority to have it all the same. A route that cannot be is an
// [*InvalidRoute]. When AddRoutes fails, the routes that it added are gone again.
func (n *Namespace) AddRoutes(name string, routes ...Route) error {
	for _, route := range routes {
		if err := route.Validate(); err != nil {
			return fmt.Errorf("add route to %q: %w", name, err)
		}
	}
	link, err := n.find(name)
	if err != nil {
		return err
	}
	subnets, err := n.addresses(link)
	if err != nil {
		return err
	}
	var added []Route
	for _, route := range routes {
		r := kernelRoute(route, link.Attrs().Index, subnets)
		isNew, err := n.addRoute(route, r)
		if err != nil {
			return errors.Join(nameLink(err, route, name), n.DeleteRoutes(name, added...))
		}
		if isNew {
			added = append(added, route)
		}
	}
	return nil
}

// DeleteRoutes deletes those routes through the interface that equal ([Route.Equal]) the
// ones given, whoever added them. It succeeds when there are none, or no such interface.
// What differs in anything stays, and so does what the kernel made for an address.
func (n *Namespace) DeleteRoutes(name string, routes ...Route) error {
	if len(routes) == 0 {
		return nil
	}
	link, err := n.find(name)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	has, err := n.routes(unix.AF_UNSPEC)
	if err != nil {
		return err
	}
	var errs []error
	for _, route := range routes {
		for i := range has {
			if h := &has[i]; h.Protocol != unix.RTPROT_KERNEL && isRoute(h, link.Attrs().Index, route) {
				r := kernelRoute(route, h.LinkIndex, nil)
				r.Protocol = h.Protocol
				errs = append(errs, nameLink(n.conn.DelRoute(r), route, name))
			}
		}
	}
	return errors.Join(errs...)
}

// Routes returns the routes through the interface, of all tables and both families, in
// the form that AddRoutes takes: fields that have their default are zero. Those that the
// kernel made for the addresses are among them; routes of several next hops, and those
// to the namespace's own and to multicast addresses, are not.
func (n *Namespace) Routes(name string) ([]Route, error) {
	link, err := n.find(name)
	if err != nil {
		return nil, err
	}
	has, err := n.routes(unix.AF_UNSPEC)
	if err != nil {
		return nil, err
	}
	var routes []Route
	for i := range has {
		if h := &has[i]; h.LinkIndex == link.Attrs().Index && plain(h) && h.Table != unix.RT_TABLE_LOCAL {
			routes = append(routes, routeOf(h))
		}
	}
	return routes, nil
}

// addRoute reports whether it added the route; it does not when an equal one is there.
func (n *Namespace) addRoute(route Route, r *netlink.Route) (added bool, err error) {
	for range routeAttempts {
		there, lookErr := n.lookRoute(route, r)
		if lookErr != nil || there {
			return false, lookErr
		}
		if err = n.conn.AddRoute(r); !errors.Is(err, nl.ErrExists) {
			return err == nil, err
		}
	}
	return false, err
}

// lookRoute reports whether an equal route is there; one in its way is an error of type
// [*RouteConflict].
func (n *Namespace) lookRoute(route Route, r *netlink.Route) (there bool, err error) {
	has, err := n.conn.Routes(&netlink.Route{Table: r.Table}, netlink.RT_FILTER_TABLE, familyOf(route.Dst))
	if err != nil {
		return false, err
	}
	var conflict error
	for i := range has {
		h := &has[i]
		if isRoute(h, r.LinkIndex, route) {
			return true, nil
		}
		if conflict == nil && inTheWay(h, r, route) {
			conflict = n.conflict(route, h)
		}
	}
	return false, conflict
}

func (n *Namespace) conflict(route Route, h *netlink.Route) error {
	c := &RouteConflict{Route: route, Has: routeOf(h), Kind: kind(h)}
	if link, err := n.LinkByIndex(h.LinkIndex); err == nil && h.LinkIndex != 0 {
		c.Link = link.Name
	}
	return c
}

// routes returns the routes of all tables.
func (n *Namespace) routes(family int) ([]netlink.Route, error) {
	return n.conn.Routes(&netlink.Route{Table: unix.RT_TABLE_UNSPEC}, netlink.RT_FILTER_TABLE, family)
}

// nameLink puts the interface's name in the place of its index.
func nameLink(err error, route Route, name string) error {
	var failed *nl.Error
	if errors.As(err, &failed) {
		return &nl.Error{Op: failed.Op, Object: fmt.Sprintf("%s dev %s", route, name), Err: failed.Err}
	}
	return err
}
