package cnitest

import (
	"encoding/json"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"

	"github.com/cnikit/cnikit/internal/nl"
)

// firstIfName is the interface of a container that has one.
const firstIfName = "eth0"

// The networks of the kit are of those for benchmarks, RFC 2544: the prefixes of RFC 5737
// are what plugins have in their examples, and tests in their configurations.
var (
	// forerunNetwork is that of the interface that the kit makes for a chained plugin; its
	// gateway has the first address.
	forerunNetwork = netip.MustParsePrefix("198.18.1.0/24")
	// otherNetwork is one that no case gives to a container.
	otherNetwork = netip.MustParsePrefix("198.18.2.0/24")
)

// forerun does for a chained plugin what the plugins before it would: it makes the
// container's interface, one end of a veth pair, with an address and a default route.
func (p *probe) forerun(a *attachment) error {
	p.foreruns++
	port := fmt.Sprintf("forerun%d", p.foreruns)
	first := forerunNetwork.Addr().As4()
	first[3] = byte(10 + p.foreruns)
	addr := netip.PrefixFrom(netip.AddrFrom4(first), forerunNetwork.Bits())
	gateway := forerunNetwork.Addr().Next()
	if err := p.node.withConn(func(c *nl.Conn) error {
		attrs := netlink.NewLinkAttrs()
		attrs.Name = port
		if err := c.AddLink(&netlink.Veth{LinkAttrs: attrs, PeerName: a.ifname, PeerNamespace: netlink.NsFd(a.ns.ns.Fd())}); err != nil {
			return err
		}
		return startQuiet(c, port)
	}); err != nil {
		return fmt.Errorf("make an interface for the plugin to work on: %w", err)
	}
	if err := a.ns.withConn(func(c *nl.Conn) error {
		if err := address(c, a.ifname, addr); err != nil {
			return err
		}
		link, err := c.Link(a.ifname)
		if err != nil {
			return err
		}
		if a.ifname != firstIfName {
			return nil // one default route is enough
		}
		return c.AddRoute(&netlink.Route{LinkIndex: link.Attrs().Index, Gw: net.IP(gateway.AsSlice()), Dst: ipNet(netip.MustParsePrefix("0.0.0.0/0"))})
	}); err != nil {
		return fmt.Errorf("give the interface an address: %w", err)
	}
	var err error
	a.previous, err = p.forerunResult(a, port, addr, gateway)
	return err
}

// forerunResult is the result of the plugins before, in the version of the request.
func (p *probe) forerunResult(a *attachment, port string, addr netip.Prefix, gateway netip.Addr) (document, error) {
	mac := func(n *Namespace, name string) (mac string, err error) {
		err = n.withConn(func(c *nl.Conn) error {
			link, err := c.Link(name)
			if err == nil {
				mac = link.Attrs().HardwareAddr.String()
			}
			return err
		})
		return mac, err
	}
	outer, err := mac(p.node, port)
	if err != nil {
		return nil, err
	}
	inner, err := mac(a.ns, a.ifname)
	if err != nil {
		return nil, err
	}
	ip := map[string]any{"address": addr.String(), "gateway": gateway.String(), "interface": json.Number("1")}
	if a.version < "1.0.0" {
		ip["version"] = "4"
	}
	routes := []any{}
	if a.ifname == firstIfName {
		routes = append(routes, map[string]any{"dst": "0.0.0.0/0", "gw": gateway.String()})
	}
	return document{
		"cniVersion": a.version,
		"interfaces": []any{
			map[string]any{"name": port, "mac": outer},
			map[string]any{"name": a.ifname, "mac": inner, "sandbox": a.netns},
		},
		"ips":    []any{ip},
		"routes": routes,
		"dns":    map[string]any{"nameservers": []any{"198.51.100.53"}},
	}, nil
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
