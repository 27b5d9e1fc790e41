package nl

import (
	"errors"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Addrs returns the addresses of a link, or of all links when link is nil, in one
// family (netlink.FAMILY_V4, FAMILY_V6) or both (FAMILY_ALL); see [ErrPartial].
func (c *Conn) Addrs(link netlink.Link, family int) ([]netlink.Addr, error) {
	object := "addresses"
	if link != nil {
		object += " of " + describe(link)
		found, err := c.resolve(link)
		if err != nil {
			return nil, &Error{Op: "list", Object: object, Err: err}
		}
		link = found
	}
	return dump("list", object, func() ([]netlink.Addr, error) { return c.plain.AddrList(link, family) })
}

// ReplaceAddr adds an address, or changes its flags and lifetimes when it is there.
func (c *Conn) ReplaceAddr(l netlink.Link, addr *netlink.Addr) error {
	return c.onLink("set address "+addr.IPNet.String()+" on link", l, func(l netlink.Link) error {
		return c.plain.AddrReplace(l, addr)
	})
}

// DelAddr removes an address. An absent address or link is no error.
func (c *Conn) DelAddr(l netlink.Link, addr *netlink.Addr) error {
	err := c.onLink("delete address "+addr.IPNet.String()+" from link", l, func(l netlink.Link) error {
		return c.plain.AddrDel(l, addr)
	})
	if absent(err) || errors.Is(err, unix.EADDRNOTAVAIL) {
		return nil
	}
	return err
}
