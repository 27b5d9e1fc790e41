package testenv

import (
	"fmt"
	"testing"

	"github.com/vishvananda/netlink"

	"github.com/cnikit/cnikit/internal/netns"
	"github.com/cnikit/cnikit/internal/nl"
)

// Kernel says that the test needs these features of the kernel. Each is tried in a
// throw-away network namespace, which takes rights: Kernel implies [NetAdmin].
func Kernel(t testing.TB, features ...Feature) {
	t.Helper()
	NetAdmin(t)
	for _, f := range features {
		if err := probe(f); err != nil {
			unmet(t, "the test needs the kernel's %s: %v", f, err)
			return
		}
	}
}

// probe creates a link of the kind, for real.
func probe(f Feature) error {
	ns, err := netns.New()
	if err != nil {
		return err
	}
	defer func() { _ = ns.Close() }()
	conn, err := nl.OpenIn(ns)
	if err != nil {
		return err
	}
	defer conn.Close()
	var parent int
	if f == IPVLAN || f == MACVLAN || f == VLAN {
		if parent, err = addParent(conn); err != nil {
			return fmt.Errorf("parent for the probe: %w", err)
		}
	}
	link, err := f.link(parent)
	if err != nil {
		return err
	}
	return conn.AddLink(link)
}

func addParent(conn *nl.Conn) (int, error) {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = "parent"
	if err := conn.AddLink(&netlink.Veth{LinkAttrs: attrs, PeerName: "other"}); err != nil {
		return 0, err
	}
	link, err := conn.Link(attrs.Name)
	if err != nil {
		return 0, err
	}
	return link.Attrs().Index, nil
}

// link is a link of the kind that can be created.
func (f Feature) link(parent int) (netlink.Link, error) {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = "probe"
	attrs.ParentIndex = parent
	switch f {
	case Bridge:
		return &netlink.Bridge{LinkAttrs: attrs}, nil
	case Dummy:
		return &netlink.Dummy{LinkAttrs: attrs}, nil
	case IPVLAN:
		return &netlink.IPVlan{LinkAttrs: attrs, Mode: netlink.IPVLAN_MODE_L2}, nil
	case MACVLAN:
		return &netlink.Macvlan{LinkAttrs: attrs, Mode: netlink.MACVLAN_MODE_BRIDGE}, nil
	case Veth:
		return &netlink.Veth{LinkAttrs: attrs, PeerName: "peer"}, nil
	case VLAN:
		return &netlink.Vlan{LinkAttrs: attrs, VlanId: 2}, nil
	case VRF:
		return &netlink.Vrf{LinkAttrs: attrs, Table: 100}, nil
	case VXLAN:
		return &netlink.Vxlan{LinkAttrs: attrs, VxlanId: 1, Port: 4789}, nil
	default:
		return nil, fmt.Errorf("no probe for feature %q", string(f))
	}
}
