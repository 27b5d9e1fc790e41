package netif

import (
	"errors"
	"net"
	"net/netip"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnikit/cnikit/internal/nl"
)

// AddAddresses gives the interface the addresses, each with the length of its subnet.
// Those that it has stay.
//
// IPv6 is switched on for the interface, and for lo where it is off, when an address
// needs it. Duplicate address detection, which takes a second or more, is off for the
// addresses and for the interface's link-local one: use AddAddresses where somebody has
// made sure that an address is given out only once. IPv6 addresses stay when the
// interface is switched off. See [Namespace.WaitAnswering]. To take addresses away, call
// [Namespace.RevertAddresses] with them as Added.
func (n *Namespace) AddAddresses(name string, addrs ...netip.Prefix) error {
	link, err := n.find(name)
	if err != nil {
		return err
	}
	has, err := n.addresses(link)
	if err != nil {
		return err
	}
	var change AddressChange
	for _, addr := range addrs {
		if !slices.Contains(has, addr) {
			change.Added = append(change.Added, addr)
		}
	}
	if err := n.prepareIPv6(name, change.Added); err != nil {
		return err
	}
	return n.apply(link, change)
}

// SetGateways gives the interface, usually a bridge, the gateway addresses, and reports
// what changed. An address that cannot stay beside them is an error of type
// [*AddressConflict], or is removed with force: for IPv4 every other address, for IPv6
// one whose subnet overlaps. Addresses of link scope are not looked at. Nothing changes
// when SetGateways fails.
func (n *Namespace) SetGateways(name string, gateways []netip.Prefix, force bool) (AddressChange, error) {
	link, err := n.find(name)
	if err != nil {
		return AddressChange{}, err
	}
	has, err := n.addresses(link)
	if err != nil {
		return AddressChange{}, err
	}
	change, err := planGateways(name, has, gateways, force)
	if err != nil || change.Empty() {
		return AddressChange{}, err
	}
	if err := n.enableIPv6(name, change.Added); err != nil {
		return AddressChange{}, err
	}
	return change, n.apply(link, change)
}

// RevertAddresses takes a change back. It succeeds when the interface is gone. Removed
// addresses come back without their label, lifetime and peer, and without the routes that
// the kernel removed with them: those through their subnet's gateways, and those with
// them as source.
func (n *Namespace) RevertAddresses(name string, change AddressChange) error {
	link, err := n.find(name)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return n.revert(link, change)
}

// Addresses returns the addresses of global scope that the interface has.
func (n *Namespace) Addresses(name string) ([]netip.Prefix, error) {
	link, err := n.find(name)
	if err != nil {
		return nil, err
	}
	return n.addresses(link)
}

// apply makes a change, or nothing of it. Removing comes first: the kernel would make a
// new address in the subnet of an old one secondary and remove both.
func (n *Namespace) apply(link netlink.Link, change AddressChange) error {
	var done AddressChange
	for _, addr := range change.Removed {
		if err := n.conn.DelAddr(link, kernelAddr(addr)); err != nil {
			return errors.Join(err, n.revert(link, done))
		}
		done.Removed = append(done.Removed, addr)
	}
	for _, addr := range change.Added {
		if err := n.conn.ReplaceAddr(link, kernelAddr(addr)); err != nil {
			return errors.Join(err, n.revert(link, done))
		}
		done.Added = append(done.Added, addr)
	}
	return nil
}

func (n *Namespace) revert(link netlink.Link, change AddressChange) error {
	var errs []error
	for _, addr := range change.Added {
		if err := n.conn.DelAddr(link, kernelAddr(addr)); err != nil && !errors.Is(err, nl.ErrNotFound) {
			errs = append(errs, err)
		}
	}
	for _, addr := range change.Removed {
		errs = append(errs, n.conn.ReplaceAddr(link, kernelAddr(addr)))
	}
	return errors.Join(errs...)
}

func (n *Namespace) addresses(link netlink.Link) ([]netip.Prefix, error) {
	addrs, err := n.conn.Addrs(link, unix.AF_UNSPEC)
	if err != nil {
		return nil, err
	}
	var global []netip.Prefix
	for _, addr := range addrs {
		if addr.Scope != unix.RT_SCOPE_UNIVERSE {
			continue
		}
		if p, ok := prefixOf(addr.IPNet); ok {
			global = append(global, p)
		}
	}
	return global, nil
}

func kernelAddr(p netip.Prefix) *netlink.Addr {
	addr := &netlink.Addr{IPNet: ipNet(p)}
	if p.Addr().Is6() {
		addr.Flags = unix.IFA_F_NODAD
	}
	return addr
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}

// prefixOf is false for nil and for a mask that is no prefix.
func prefixOf(n *net.IPNet) (netip.Prefix, bool) {
	if n == nil {
		return netip.Prefix{}, false
	}
	addr, ok := netip.AddrFromSlice(n.IP)
	ones, bits := n.Mask.Size()
	if !ok || bits == 0 {
		return netip.Prefix{}, false
	}
	if bits == 32 {
		addr = addr.Unmap()
	}
	return netip.PrefixFrom(addr, ones), true
}
