package netif

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnikit/cnikit/internal/nl"
)

// Link returns the interface of that name. The error matches [ErrNotFound] when there
// is none.
func (n *Namespace) Link(name string) (Link, error) {
	link, err := n.find(name)
	if err != nil {
		return Link{}, err
	}
	return facts(link), nil
}

// LinkByIndex returns the interface with that index. The error matches [ErrNotFound]
// when there is none.
func (n *Namespace) LinkByIndex(index int) (Link, error) {
	link, err := n.conn.LinkByIndex(index)
	if errors.Is(err, nl.ErrNotFound) {
		return Link{}, fmt.Errorf("interface %d: %w", index, ErrNotFound)
	}
	if err != nil {
		return Link{}, err
	}
	return facts(link), nil
}

// Links returns all interfaces of the namespace.
func (n *Namespace) Links() ([]Link, error) {
	links, err := n.conn.Links()
	if err != nil {
		return nil, err
	}
	all := make([]Link, len(links))
	for i, link := range links {
		all[i] = facts(link)
	}
	return all, nil
}

// DeleteLink deletes the interface of that name, and with one end of a veth pair the
// other. It succeeds when there is none.
func (n *Namespace) DeleteLink(name string) error {
	link, err := n.find(name)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return n.conn.DelLink(link)
}

// SetUp switches the interface on.
func (n *Namespace) SetUp(name string) error {
	link, err := n.find(name)
	if err != nil {
		return err
	}
	return n.conn.SetUp(link)
}

// SetAlias sets the owner mark of the interface, at most 255 bytes.
func (n *Namespace) SetAlias(name, alias string) error {
	link, err := n.find(name)
	if err != nil {
		return err
	}
	return n.conn.SetAlias(link, alias)
}

func (n *Namespace) find(name string) (netlink.Link, error) {
	link, err := n.conn.Link(name)
	if errors.Is(err, nl.ErrNotFound) {
		return nil, fmt.Errorf("interface %q: %w", name, ErrNotFound)
	}
	return link, err
}

func facts(link netlink.Link) Link {
	attrs := link.Attrs()
	f := Link{
		Name:    attrs.Name,
		Index:   attrs.Index,
		Kind:    link.Type(),
		MAC:     attrs.HardwareAddr,
		MTU:     attrs.MTU,
		Alias:   attrs.Alias,
		Up:      attrs.RawFlags&unix.IFF_UP != 0,
		Carrier: attrs.RawFlags&unix.IFF_LOWER_UP != 0,
		Running: attrs.RawFlags&unix.IFF_RUNNING != 0,
		Master:  attrs.MasterIndex,
	}
	if f.Kind == "veth" {
		f.Peer = attrs.ParentIndex
	}
	return f
}
