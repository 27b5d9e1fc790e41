package cnitest

import (
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"

	"github.com/cnikit/cnikit/internal/nl"
)

// inventory is what a namespace holds, by the names of its links.
type inventory struct {
	links  map[string]*netlink.LinkAttrs
	addrs  map[string][]netip.Prefix // without link-local ones
	routes []netlink.Route
}

// inventory looks at a namespace.
func (p *probe) inventory(n *Namespace) inventory {
	inv := inventory{links: map[string]*netlink.LinkAttrs{}, addrs: map[string][]netip.Prefix{}}
	p.can(n.withConn(func(c *nl.Conn) error {
		links, err := c.Links()
		if err != nil {
			return err
		}
		names := map[int]string{}
		for _, link := range links {
			inv.links[link.Attrs().Name] = link.Attrs()
			names[link.Attrs().Index] = link.Attrs().Name
		}
		addrs, err := c.Addrs(nil, 0)
		if err != nil {
			return err
		}
		for _, a := range addrs {
			if prefix := toPrefix(a.IPNet); !prefix.Addr().IsLinkLocalUnicast() {
				inv.addrs[names[a.LinkIndex]] = append(inv.addrs[names[a.LinkIndex]], prefix)
			}
		}
		for _, family := range []int{inet, inet6} {
			routes, err := c.Routes(&netlink.Route{}, 0, family)
			if err != nil {
				return err
			}
			inv.routes = append(inv.routes, routes...)
		}
		return nil
	}))
	return inv
}

// newSince lists the links that were not there before, sorted.
func (v inventory) newSince(before inventory) []string {
	var names []string
	for name := range v.links {
		if before.links[name] == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// route finds a route to a destination, through the gateway if that is valid.
func (v inventory) route(dst netip.Prefix, gateway netip.Addr) bool {
	return slices.ContainsFunc(v.routes, func(r netlink.Route) bool {
		to := toPrefix(r.Dst)
		if r.Dst == nil {
			to = netip.PrefixFrom(unspecified(dst.Addr()), 0)
		}
		gw, _ := netip.AddrFromSlice(r.Gw)
		return to == dst.Masked() && (!gateway.IsValid() || gw.Unmap() == gateway)
	})
}

func unspecified(like netip.Addr) netip.Addr {
	if like.Is4() {
		return netip.IPv4Unspecified()
	}
	return netip.IPv6Unspecified()
}

func toPrefix(n *net.IPNet) netip.Prefix {
	if n == nil {
		return netip.Prefix{}
	}
	addr, _ := netip.AddrFromSlice(n.IP)
	ones, _ := n.Mask.Size()
	return netip.PrefixFrom(addr.Unmap(), ones)
}

// linkText names a link with its MAC address.
func linkText(name string, attrs *netlink.LinkAttrs) string {
	return fmt.Sprintf("%s (%s)", name, attrs.HardwareAddr)
}
