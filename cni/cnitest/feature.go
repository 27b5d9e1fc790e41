package cnitest

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"

	"github.com/cnikit/cnikit/internal/nl"
)

// Supports returns nil when this process can make network namespaces and, in one, links
// of the kinds: "bridge", "veth" or "vxlan". Otherwise the error says what is
// missing. It tries, in a namespace that is gone afterwards.
func Supports(kinds ...string) error {
	n, err := NewNamespace()
	if err != nil {
		return fmt.Errorf("network namespaces: %w", err)
	}
	defer func() { _ = n.Close() }()
	for _, kind := range kinds {
		if err := n.withConn(func(c *nl.Conn) error { return addExample(c, kind) }); err != nil {
			return fmt.Errorf("links of kind %s: %w", kind, err)
		}
	}
	return nil
}

// addExample makes a link of the kind, and one to be its parent if it takes one.
func addExample(c *nl.Conn, kind string) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = kind + "0"
	if kind == "ipvlan" || kind == "macvlan" || kind == "vlan" {
		parent := netlink.NewLinkAttrs()
		parent.Name = "of-" + kind
		if err := c.AddLink(&netlink.Veth{LinkAttrs: parent, PeerName: "peer-of-" + kind}); err != nil {
			return err
		}
		link, err := c.Link(parent.Name)
		if err != nil {
			return err
		}
		attrs.ParentIndex = link.Attrs().Index
	}
	link, err := exampleLink(kind, attrs)
	if err != nil {
		return err
	}
	return c.AddLink(link)
}

func exampleLink(kind string, attrs netlink.LinkAttrs) (netlink.Link, error) {
	switch kind {
	case "bridge":
		return &netlink.Bridge{LinkAttrs: attrs}, nil
	case "dummy":
		return &netlink.Dummy{LinkAttrs: attrs}, nil
	case "ifb":
		return &netlink.Ifb{LinkAttrs: attrs}, nil
	case "ipvlan":
		return &netlink.IPVlan{LinkAttrs: attrs, Mode: netlink.IPVLAN_MODE_L2}, nil
	case "macvlan":
		return &netlink.Macvlan{LinkAttrs: attrs, Mode: netlink.MACVLAN_MODE_BRIDGE}, nil
	case "veth":
		return &netlink.Veth{LinkAttrs: attrs, PeerName: "peer"}, nil
	case "vlan":
		return &netlink.Vlan{LinkAttrs: attrs, VlanId: 2}, nil
	case "vrf":
		return &netlink.Vrf{LinkAttrs: attrs, Table: 100}, nil
	case "vxlan":
		return &netlink.Vxlan{LinkAttrs: attrs, VxlanId: 1, Port: 4789}, nil
	}
	return nil, errors.New("this package cannot make one")
}
