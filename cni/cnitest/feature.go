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
		link, err := exampleLink(kind)
		if err == nil {
			err = n.withConn(func(c *nl.Conn) error { return c.AddLink(link) })
		}
		if err != nil {
			return fmt.Errorf("links of kind %s: %w", kind, err)
		}
	}
	return nil
}

func exampleLink(kind string) (netlink.Link, error) {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = kind + "0"
	switch kind {
	case "bridge":
		return &netlink.Bridge{LinkAttrs: attrs}, nil
	case "veth":
		return &netlink.Veth{LinkAttrs: attrs, PeerName: "peer"}, nil
	case "vxlan":
		return &netlink.Vxlan{LinkAttrs: attrs, VxlanId: 1, Port: 4789}, nil
	}
	return nil, errors.New("this package cannot make one")
}
