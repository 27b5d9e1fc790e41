package cnitest

import (
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"

	"github.com/cnikit/cnikit/internal/nl"
)

// uplink is the interface through which a node would reach other machines.
const uplink = "eth0"

// uplinkAddress is the address of the node on it; the gateway has the first one.
var uplinkAddress = netip.MustParsePrefix("192.0.2.2/24")

// addUplink gives a node that interface, with an address and a default route:
// plugins make interfaces on top of it, and ask which one it is. Nobody is behind it.
func addUplink(node *Namespace) error {
	gateway := uplinkAddress.Masked().Addr().Next()
	err := node.withConn(func(c *nl.Conn) error {
		attrs := netlink.NewLinkAttrs()
		attrs.Name = uplink
		if err := c.AddLink(&netlink.Veth{LinkAttrs: attrs, PeerName: "cable"}); err != nil {
			return err
		}
		if err := startQuiet(c, "cable"); err != nil {
			return err
		}
		if err := address(c, uplink, uplinkAddress); err != nil {
			return err
		}
		link, err := c.Link(uplink)
		if err != nil {
			return err
		}
		return c.AddRoute(&netlink.Route{
			LinkIndex: link.Attrs().Index, Gw: net.IP(gateway.AsSlice()), Dst: ipNet(netip.MustParsePrefix("0.0.0.0/0")),
		})
	})
	if err != nil {
		return fmt.Errorf("give the node an uplink: %w", err)
	}
	return nil
}
