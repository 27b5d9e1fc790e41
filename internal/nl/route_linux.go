package nl

import (
	"errors"
	"fmt"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// kernelFilters are the filters that the kernel applies to a route dump itself, under
// strict checking. It refuses all others.
const kernelFilters = netlink.RT_FILTER_TABLE | netlink.RT_FILTER_PROTOCOL |
	netlink.RT_FILTER_TYPE | netlink.RT_FILTER_OIF

// Routes returns the routes of a family (netlink.FAMILY_V4, FAMILY_V6, or FAMILY_ALL
// for both) whose fields named in mask (netlink.RT_FILTER_…) equal those of filter.
// Without RT_FILTER_TABLE it looks in the main table only; with it, table 0 means
// all tables. See [ErrPartial].
func (c *Conn) Routes(filter *netlink.Route, mask uint64, family int) ([]netlink.Route, error) {
	if family == netlink.FAMILY_ALL {
		v4, err4 := c.Routes(filter, mask, netlink.FAMILY_V4)
		v6, err6 := c.Routes(filter, mask, netlink.FAMILY_V6)
		return append(v4, v6...), errors.Join(err4, err6)
	}
	if filter == nil {
		filter, mask = &netlink.Route{}, 0
	}
	handle, want := c.plain, *filter
	if mask&^kernelFilters == 0 {
		handle, want = c.strict, strictFilter(filter, mask)
		mask |= netlink.RT_FILTER_TABLE
	}
	return dump("list", "routes", func() ([]netlink.Route, error) {
		var routes []netlink.Route
		err := handle.RouteListFilteredIter(family, &want, mask, func(r netlink.Route) bool {
			routes = append(routes, r)
			return true
		})
		if errors.Is(err, unix.ENOENT) { // the table is not there (IPv4)
			return nil, nil
		}
		return routes, err
	})
}

// strictFilter keeps only what mask names: whatever else were set would go into the
// request, too, and be refused.
func strictFilter(filter *netlink.Route, mask uint64) netlink.Route {
	want := netlink.Route{Table: unix.RT_TABLE_MAIN}
	if mask&netlink.RT_FILTER_TABLE != 0 {
		want.Table = filter.Table
	}
	if mask&netlink.RT_FILTER_PROTOCOL != 0 {
		want.Protocol = filter.Protocol
	}
	if mask&netlink.RT_FILTER_TYPE != 0 {
		want.Type = filter.Type
	}
	if mask&netlink.RT_FILTER_OIF != 0 {
		want.LinkIndex = filter.LinkIndex
	}
	return want
}

// AddRoute adds a route. When the kernel has one with the same destination, table,
// type of service and metric: [ErrExists].
func (c *Conn) AddRoute(r *netlink.Route) error {
	return c.write("add route", describeRoute(r), func() error { return c.plain.RouteAdd(r) })
}

// ReplaceRoute adds a route in place of the one that has the same destination, table,
// type of service and metric, whoever owns that, or beside the others.
func (c *Conn) ReplaceRoute(r *netlink.Route) error {
	return c.write("set route", describeRoute(r), func() error { return c.plain.RouteReplace(r) })
}

// DelRoute deletes the first route that matches the non-zero fields of r; give the
// protocol and the metric to be sure of the owner. An absent route is no error.
func (c *Conn) DelRoute(r *netlink.Route) error {
	return c.del("delete route", describeRoute(r), func() error { return c.plain.RouteDel(r) })
}

func describeRoute(r *netlink.Route) string {
	var b strings.Builder
	switch {
	case r.Dst != nil:
		b.WriteString(r.Dst.String())
	default:
		b.WriteString("default")
	}
	if r.Gw != nil {
		fmt.Fprintf(&b, " via %s", r.Gw)
	}
	if r.LinkIndex != 0 {
		fmt.Fprintf(&b, " dev #%d", r.LinkIndex)
	}
	if r.Priority != 0 {
		fmt.Fprintf(&b, " metric %d", r.Priority)
	}
	if r.Table != 0 && r.Table != unix.RT_TABLE_MAIN {
		fmt.Fprintf(&b, " table %d", r.Table)
	}
	return b.String()
}

// Rules returns the routing rules of a family; see [ErrPartial].
func (c *Conn) Rules(family int) ([]netlink.Rule, error) {
	return dump("list", "rules", func() ([]netlink.Rule, error) { return c.plain.RuleList(family) })
}
