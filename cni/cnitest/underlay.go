package cnitest

import (
	"context"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"

	"github.com/cnikit/cnikit/internal/nl"
)

// underlayBridge is the name of the bridge inside the underlay's namespace.
const underlayBridge = "underlay"

// Underlay is a network that joins namespaces: a bridge in a namespace of its own and a
// veth pair to each member. Use one Underlay from one goroutine.
type Underlay struct {
	ns    *Namespace
	mtu   int
	ports int
}

// NewUnderlay makes the bridge in ns. mtu is that of every interface joined to it, in
// bytes; the bridge follows. The underlay goes away with ns.
func NewUnderlay(ns *Namespace, mtu int) (*Underlay, error) {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = underlayBridge
	err := ns.withConn(func(c *nl.Conn) error {
		if err := c.AddLink(&netlink.Bridge{LinkAttrs: attrs}); err != nil {
			return err
		}
		return startQuiet(c, underlayBridge)
	})
	if err != nil {
		return nil, fmt.Errorf("make underlay in %s: %w", ns.name, err)
	}
	return &Underlay{ns: ns, mtu: mtu}, nil
}

// Join gives the member an interface with an address on the underlay and waits until
// packets can pass. The interface goes away with the member's namespace.
func (u *Underlay) Join(ctx context.Context, member *Namespace, ifName string, addr netip.Prefix) error {
	u.ports++
	port := fmt.Sprintf("port%d", u.ports)
	for _, step := range []func() error{
		func() error { return u.ns.withConn(func(c *nl.Conn) error { return u.plug(c, port, member, ifName) }) },
		func() error { return member.withConn(func(c *nl.Conn) error { return address(c, ifName, addr) }) },
		func() error { return u.ns.operational(ctx, port) },
		func() error { return member.operational(ctx, ifName) },
	} {
		if err := step(); err != nil {
			return fmt.Errorf("join %s to the underlay: %w", member.name, err)
		}
	}
	return nil
}

// operational waits for a link's operational state to be up. The kernel may take a
// second for it after both ends of a veth pair are up, and a bridge does not forward
// through a port before.
func (n *Namespace) operational(ctx context.Context, ifName string) error {
	events, err := nl.Subscribe(n.ns, nl.LinkEvent)
	if err != nil {
		return err
	}
	defer func() { _ = events.Close() }()
	return n.withConn(func(c *nl.Conn) error {
		for {
			link, err := c.Link(ifName)
			if err != nil || link.Attrs().OperState == netlink.OperUp {
				return err
			}
			if _, err := events.Receive(ctx); err != nil {
				return err
			}
		}
	})
}

// plug makes the veth pair and its end on the bridge.
func (u *Underlay) plug(c *nl.Conn, port string, member *Namespace, ifName string) error {
	bridge, err := c.Link(underlayBridge)
	if err != nil {
		return err
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU, attrs.MasterIndex = port, u.mtu, bridge.Attrs().Index
	if err := c.AddLink(&netlink.Veth{
		LinkAttrs: attrs, PeerName: ifName, PeerMTU: uint32(u.mtu), PeerNamespace: netlink.NsFd(member.ns.Fd()),
	}); err != nil {
		return err
	}
	return startQuiet(c, port)
}

// address brings the member's interface up with its address.
func address(c *nl.Conn, ifName string, addr netip.Prefix) error {
	if err := startQuiet(c, ifName); err != nil {
		return err
	}
	link, err := c.Link(ifName)
	if err != nil {
		return err
	}
	return c.ReplaceAddr(link, &netlink.Addr{IPNet: &net.IPNet{
		IP: addr.Addr().AsSlice(), Mask: net.CIDRMask(addr.Bits(), addr.Addr().BitLen()),
	}})
}

// startQuiet brings a link up without an IPv6 link-local address: the underlay is an
// IPv4 network, and addresses that appear some time after the carrier would make two
// looks at an unchanged namespace differ.
func startQuiet(c *nl.Conn, name string) error {
	const none = "1" // IN6_ADDR_GEN_MODE_NONE
	if _, err := c.SetSysctl("net/ipv6/conf/"+name+"/addr_gen_mode", none); err != nil {
		return err
	}
	link, err := c.Link(name)
	if err != nil {
		return err
	}
	return c.SetUp(link)
}
