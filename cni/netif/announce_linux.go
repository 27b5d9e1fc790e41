package netif

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
)

// Announce tells the interface's link that the addresses are here now: a gratuitous
// ARP (RFC 5227) for IPv4, an unsolicited neighbour advertisement (RFC 4861) for IPv6.
// Whoever knows another MAC address for a reused address updates it at once. The
// interface must be running.
func (n *Namespace) Announce(name string, addrs ...netip.Addr) error {
	link, err := n.find(name)
	if err != nil {
		return err
	}
	mac := link.Attrs().HardwareAddr
	if len(mac) != 6 {
		return fmt.Errorf("announce addresses of %q: it has no Ethernet address", name)
	}
	err = n.ns.Do(func() error { return sendFrames(link.Attrs().Index, mac, addrs) })
	if err != nil {
		return fmt.Errorf("announce addresses of %q: %w", name, err)
	}
	return nil
}

// sendFrames writes through a packet socket, which belongs to the namespace it was made
// in. Protocol 0: the socket receives nothing.
func sendFrames(index int, mac net.HardwareAddr, addrs []netip.Addr) error {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return fmt.Errorf("open packet socket: %w", err)
	}
	defer func() { _ = unix.Close(fd) }()
	var errs []error
	for _, addr := range addrs {
		if err := unix.Sendto(fd, announcement(mac, addr), 0, &unix.SockaddrLinklayer{Ifindex: index}); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", addr, err))
		}
	}
	return errors.Join(errs...)
}
