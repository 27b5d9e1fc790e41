package cnitest

import (
	"errors"
	"fmt"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
)

// icmpSocket opens a raw socket connected to an address, in the network namespace of
// the calling thread. It is connected so that the kernel hands it the ICMP errors that
// its packets cause (raw(7)).
func icmpSocket(to netip.Addr, dontFragment bool) (*os.File, error) {
	family, protocol := unix.AF_INET6, unix.IPPROTO_ICMPV6
	var address unix.Sockaddr = &unix.SockaddrInet6{Addr: to.As16()}
	if to.Is4() {
		family, protocol = unix.AF_INET, unix.IPPROTO_ICMP
		address = &unix.SockaddrInet4{Addr: to.As4()}
	}
	fd, err := unix.Socket(family, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, protocol)
	if err != nil {
		return nil, fmt.Errorf("open raw socket: %w", err)
	}
	err = errors.Join(setFragment(fd, to.Is4(), dontFragment), unix.Connect(fd, address))
	if err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), "icmp"), nil
}

// setFragment decides who may fragment: with dont nobody, without it everybody. The
// path MTU that the kernel learned is obeyed, as for any other program.
func setFragment(fd int, ipv4, dont bool) error {
	if ipv4 {
		mode := unix.IP_PMTUDISC_DONT
		if dont {
			mode = unix.IP_PMTUDISC_DO
		}
		return unix.SetsockoptInt(fd, unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, mode)
	}
	if !dont {
		return unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_DONT)
	}
	return errors.Join(
		unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_DO),
		unix.SetsockoptInt(fd, unix.IPPROTO_IPV6, unix.IPV6_DONTFRAG, 1),
	)
}
