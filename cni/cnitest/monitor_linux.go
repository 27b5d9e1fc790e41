package cnitest

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// monitorBuffer is the size of a socket's queue in bytes.
const monitorBuffer = 8 << 20

// Monitor starts recording. Everything that happens after it returns is in
// [Monitor.Changes]. Close it.
func (n *Namespace) Monitor() (*Monitor, error) {
	m := &Monitor{name: n.name}
	err := n.Do(func() error {
		if err := m.listen(unix.NETLINK_ROUTE, routeGroups()...); err != nil {
			return err
		}
		err := m.listen(unix.NETLINK_NETFILTER, unix.NFNLGRP_NFTABLES)
		if errors.Is(err, unix.EPROTONOSUPPORT) {
			return nil // no nftables in this kernel
		}
		return err
	})
	if err != nil {
		m.Close()
		return nil, fmt.Errorf("monitor %s: %w", n.name, err)
	}
	return m, nil
}

func routeGroups() []int {
	return []int{
		unix.RTNLGRP_LINK, unix.RTNLGRP_NEIGH, unix.RTNLGRP_TC, unix.RTNLGRP_NEXTHOP,
		unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV4_RULE, unix.RTNLGRP_IPV4_NETCONF,
		unix.RTNLGRP_IPV6_IFADDR, unix.RTNLGRP_IPV6_ROUTE, unix.RTNLGRP_IPV6_RULE, unix.RTNLGRP_IPV6_NETCONF,
	}
}

// listen opens a socket in the namespace of the calling thread and joins the groups.
func (m *Monitor) listen(protocol int, groups ...int) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, protocol)
	if err != nil {
		return err
	}
	m.sockets = append(m.sockets, fd)
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, monitorBuffer) != nil {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, monitorBuffer); err != nil {
			return err
		}
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	for _, group := range groups {
		if err := unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_ADD_MEMBERSHIP, group); err != nil {
			return err
		}
	}
	return nil
}

// Changes returns what was announced since the Monitor was started or Changes was last
// called, and does not wait. An error that matches [ErrMissed] comes with the changes
// that are known.
func (m *Monitor) Changes() ([]Change, error) {
	var all []Change
	var missed error
	buf := make([]byte, 1<<16)
	for _, fd := range m.sockets {
		for {
			size, from, err := unix.Recvfrom(fd, buf, 0)
			if errors.Is(err, unix.EAGAIN) {
				break
			}
			if errors.Is(err, unix.ENOBUFS) {
				missed = ErrMissed
				continue
			}
			if err != nil && !errors.Is(err, unix.EINTR) {
				return all, fmt.Errorf("read monitor of %s: %w", m.name, err)
			}
			all = append(all, changes(buf[:max(size, 0)], from)...)
		}
	}
	if missed != nil {
		return all, fmt.Errorf("read monitor of %s: %w", m.name, missed)
	}
	return all, nil
}

// changes decodes one datagram. Only the kernel is believed.
func changes(datagram []byte, from unix.Sockaddr) []Change {
	if sender, ok := from.(*unix.SockaddrNetlink); !ok || sender.Pid != 0 {
		return nil
	}
	messages, err := syscall.ParseNetlinkMessage(datagram)
	if err != nil {
		return []Change{{What: "unreadable announcement: " + err.Error()}}
	}
	var all []Change
	for _, m := range messages {
		if what, ok := describe(m); ok {
			all = append(all, Change{What: what, Port: m.Header.Pid})
		}
	}
	return all
}

// Close stops recording.
func (m *Monitor) Close() {
	for _, fd := range m.sockets {
		_ = unix.Close(fd)
	}
	m.sockets = nil
}
