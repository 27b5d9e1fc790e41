package netif

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/cnikit/cnikit/internal/nl"
)

// ipv6Key is the sysctl of one interface. Names may contain dots, so the key has
// slashes.
func ipv6Key(name, setting string) string {
	return "net/ipv6/conf/" + name + "/" + setting
}

// prepareIPv6 readies an interface of a container for the IPv6 addresses among addrs.
func (n *Namespace) prepareIPv6(name string, addrs []netip.Prefix) error {
	if !hasIPv6(addrs) {
		return nil
	}
	// Packets to the container's own addresses pass through lo.
	for _, link := range []string{"lo", name} {
		if err := n.enableIPv6(link, addrs); err != nil {
			return err
		}
	}
	if _, err := n.conn.SetSysctl(ipv6Key(name, "accept_dad"), "0"); err != nil {
		return err
	}
	return n.setIfPresent(ipv6Key(name, "keep_addr_on_down"), "1")
}

// enableIPv6 undoes a disable_ipv6 that is set for all or for new interfaces.
func (n *Namespace) enableIPv6(name string, addrs []netip.Prefix) error {
	if !hasIPv6(addrs) {
		return nil
	}
	_, err := n.conn.SetSysctl(ipv6Key(name, "disable_ipv6"), "0")
	if errors.Is(err, nl.ErrNotFound) {
		return fmt.Errorf("add IPv6 address to %q: the kernel has IPv6 switched off: %w", name, errors.ErrUnsupported)
	}
	return err
}

// setIfPresent sets a sysctl that a kernel may lack.
func (n *Namespace) setIfPresent(key, value string) error {
	if _, err := n.conn.SetSysctl(key, value); err != nil && !errors.Is(err, nl.ErrNotFound) {
		return err
	}
	return nil
}

func hasIPv6(addrs []netip.Prefix) bool {
	for _, addr := range addrs {
		if addr.Addr().Is6() {
			return true
		}
	}
	return false
}
