package vxlan

import (
	"context"
	"errors"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnikit/cnikit/internal/nl"
	"github.com/cnikit/cnikit/reconcile"
)

// addresses is the store of the addresses of our device, all of which are ours but
// for IPv6 link-local ones.
type addresses struct{ k *kernel }

func addressStore(k *kernel) reconcile.Store[netip.Prefix, address] { return addresses{k} }

func (s addresses) link(index int) netlink.Link {
	return &netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: index, Name: s.k.config.Device}}
}

// Observe implements [reconcile.Store].
func (s addresses) Observe(context.Context) (map[netip.Prefix]address, error) {
	conn, err := s.k.connect()
	if err != nil {
		return nil, err
	}
	index, err := s.k.device(conn)
	if err != nil || index == 0 {
		return nil, err
	}
	addrs, err := conn.Addrs(s.link(index), netlink.FAMILY_ALL)
	if err != nil && !errors.Is(err, nl.ErrPartial) {
		return nil, err
	}
	seen := map[netip.Prefix]address{}
	for _, a := range addrs {
		if addr := addrOf(a.IP); !addr.Is6() || !addr.IsLinkLocalUnicast() {
			bits, _ := a.Mask.Size()
			seen[netip.PrefixFrom(addr, bits)] = address{Unusable: a.Flags&(unix.IFA_F_TENTATIVE|unix.IFA_F_DADFAILED) != 0}
		}
	}
	return seen, partial(err)
}

// Apply implements [reconcile.Store].
func (s addresses) Apply(_ context.Context, prefix netip.Prefix, _ address, have *address) error {
	conn, index, err := s.k.onDevice()
	if err != nil {
		return err
	}
	a := kernelAddr(prefix)
	if have != nil { // the flags of an address that is there cannot be cleared
		if err := conn.DelAddr(s.link(index), a); err != nil {
			return err
		}
	}
	return conn.ReplaceAddr(s.link(index), a)
}

// Delete implements [reconcile.Store].
func (s addresses) Delete(_ context.Context, prefix netip.Prefix, _ address) error {
	conn, index, err := s.k.onDevice()
	if errors.Is(err, nl.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return conn.DelAddr(s.link(index), kernelAddr(prefix))
}

// kernelAddr is the address as the kernel gets it. Duplicate address detection would
// make an IPv6 address unusable for a second, on a link where nobody could answer.
func kernelAddr(prefix netip.Prefix) *netlink.Addr {
	a := &netlink.Addr{IPNet: ipNet(prefix)}
	if prefix.Addr().Is6() {
		a.Flags = unix.IFA_F_NODAD
	}
	return a
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
