package nl

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnikit/cnikit/internal/netns"
)

const (
	// receiveBuffer holds some ten thousand events (bytes); the kernel doubles it.
	receiveBuffer = 8 << 20

	// batch bounds the datagrams that one Receive reads after the first.
	batch = 1024

	// netconfIfindex is NETCONFA_IFINDEX of linux/netconf.h.
	netconfIfindex = 1
)

// Subscription receives the events of one network namespace. Receive may be called
// by one goroutine at a time; a second one waits.
type Subscription struct {
	mu     sync.Mutex
	file   *os.File
	closed atomic.Bool
	buf    []byte
}

// Subscribe starts to queue events of these kinds, of the namespace, or of the
// calling thread's when ns is nil. Nothing that happens after it returns is missed
// without an [Overflow]. The queue is large when the process has CAP_NET_ADMIN, else
// as large as the system allows.
func Subscribe(ns *netns.NS, kinds ...EventKind) (*Subscription, error) {
	return subscribe(ns, receiveBuffer, kinds)
}

func subscribe(ns *netns.NS, buffer int, kinds []EventKind) (*Subscription, error) {
	s := &Subscription{buf: make([]byte, 64<<10)}
	open := func() error { return s.open(buffer, kinds) }
	var err error
	if ns == nil {
		err = open()
	} else {
		err = ns.Do(open)
	}
	if err != nil {
		return nil, fmt.Errorf("subscribe to network events: %w", err)
	}
	return s, nil
}

func (s *Subscription) open(buffer int, kinds []EventKind) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	if err := configure(fd, buffer, kinds); err != nil {
		_ = unix.Close(fd)
		return err
	}
	s.file = os.NewFile(uintptr(fd), "route netlink events")
	return nil
}

func configure(fd, buffer int, kinds []EventKind) error {
	if unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, buffer) != nil {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, buffer); err != nil {
			return err
		}
	}
	if err := unix.Bind(fd, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	for _, kind := range kinds {
		groups, err := kind.groups()
		if err != nil {
			return err
		}
		for _, group := range groups {
			if err := unix.SetsockoptInt(fd, unix.SOL_NETLINK, unix.NETLINK_ADD_MEMBERSHIP, group); err != nil {
				return err
			}
		}
	}
	return nil
}

// groups are the multicast groups of route netlink that carry a kind.
func (k EventKind) groups() ([]int, error) {
	switch k {
	case LinkEvent:
		return []int{unix.RTNLGRP_LINK}, nil
	case AddrEvent:
		return []int{unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV6_IFADDR}, nil
	case RouteEvent:
		return []int{unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV6_ROUTE}, nil
	case NeighEvent:
		return []int{unix.RTNLGRP_NEIGH}, nil
	case RuleEvent:
		return []int{unix.RTNLGRP_IPV4_RULE, unix.RTNLGRP_IPV6_RULE}, nil
	case NetconfEvent:
		return []int{unix.RTNLGRP_IPV4_NETCONF, unix.RTNLGRP_IPV6_NETCONF}, nil
	case Overflow:
		return nil, nil
	default:
		return nil, fmt.Errorf("unknown kind of event: %v", k)
	}
}

// Close ends the subscription; a Receive that is waiting returns an error that
// matches [os.ErrClosed].
func (s *Subscription) Close() error {
	s.closed.Store(true)
	return s.file.Close()
}

// Receive waits for events and returns all that are queued, up to a bound, in order.
// It returns the error of ctx when that ends first; events stay queued. Lost events
// show as one Overflow.
func (s *Subscription) Receive(ctx context.Context) ([]Event, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := s.file.SetReadDeadline(time.Time{}); err != nil {
		return nil, s.failed(err)
	}
	expired := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = s.file.SetReadDeadline(time.Unix(1, 0))
		close(expired)
	})
	defer func() {
		if !stop() {
			<-expired
		}
	}()
	events, err := s.read()
	switch {
	case err == nil:
		return events, nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, ctx.Err()
	default:
		return nil, s.failed(err)
	}
}

// failed names the operation. What the os package says of a file that is closed
// meanwhile is an unexported error.
func (s *Subscription) failed(err error) error {
	if s.closed.Load() {
		err = os.ErrClosed
	}
	return fmt.Errorf("receive network events: %w", err)
}

// read waits for the first wanted event, then drains the queue.
func (s *Subscription) read() ([]Event, error) {
	conn, err := s.file.SyscallConn()
	if err != nil {
		return nil, err
	}
	var events []Event
	var recvErr error
	err = conn.Read(func(fd uintptr) bool {
		for range batch {
			var got []Event
			got, recvErr = s.datagram(int(fd))
			if recvErr != nil {
				break
			}
			events = append(events, got...)
		}
		if errors.Is(recvErr, unix.EAGAIN) {
			recvErr = nil
		}
		return recvErr != nil || len(events) > 0
	})
	return events, errors.Join(err, recvErr)
}

// datagram reads one datagram without waiting.
func (s *Subscription) datagram(fd int) ([]Event, error) {
	n, _, flags, from, err := unix.Recvmsg(fd, s.buf, nil, 0)
	switch {
	case errors.Is(err, unix.ENOBUFS):
		return []Event{{Kind: Overflow}}, nil
	case errors.Is(err, unix.EINTR):
		return nil, nil
	case err != nil:
		return nil, err
	}
	if sender, ok := from.(*unix.SockaddrNetlink); !ok || sender.Pid != 0 {
		return nil, nil // not the kernel
	}
	if flags&unix.MSG_TRUNC != 0 {
		return []Event{{Kind: Overflow}}, nil
	}
	messages, err := syscall.ParseNetlinkMessage(s.buf[:n])
	if err != nil {
		return []Event{{Kind: Overflow}}, nil
	}
	var events []Event
	for _, m := range messages {
		if event, ok := parseEvent(m); ok {
			events = append(events, event)
		}
	}
	return events, nil
}

// parseEvent decodes as much of a notification as an Event holds.
func parseEvent(m syscall.NetlinkMessage) (Event, bool) {
	switch m.Header.Type {
	case unix.RTM_NEWLINK, unix.RTM_DELLINK: // struct ifinfomsg
		return Event{Kind: LinkEvent, Link: int32At(m.Data, 4), Gone: m.Header.Type == unix.RTM_DELLINK}, true
	case unix.RTM_NEWADDR, unix.RTM_DELADDR: // struct ifaddrmsg
		return Event{Kind: AddrEvent, Link: int32At(m.Data, 4), Gone: m.Header.Type == unix.RTM_DELADDR}, true
	case unix.RTM_NEWNEIGH, unix.RTM_DELNEIGH: // struct ndmsg
		return Event{Kind: NeighEvent, Link: int32At(m.Data, 4), Gone: m.Header.Type == unix.RTM_DELNEIGH}, true
	case unix.RTM_NEWROUTE, unix.RTM_DELROUTE:
		link := attrInt32(m.Data, unix.SizeofRtMsg, unix.RTA_OIF)
		return Event{Kind: RouteEvent, Link: link, Gone: m.Header.Type == unix.RTM_DELROUTE}, true
	case unix.RTM_NEWRULE, unix.RTM_DELRULE:
		return Event{Kind: RuleEvent, Gone: m.Header.Type == unix.RTM_DELRULE}, true
	case unix.RTM_NEWNETCONF, unix.RTM_DELNETCONF: // struct netconfmsg: one byte, padded
		link := attrInt32(m.Data, unix.NLMSG_ALIGNTO, netconfIfindex)
		return Event{Kind: NetconfEvent, Link: link, Gone: m.Header.Type == unix.RTM_DELNETCONF}, true
	default:
		return Event{}, false
	}
}

// int32At is 0 when the message is too short.
func int32At(data []byte, at int) int {
	if len(data) < at+4 {
		return 0
	}
	return int(int32(binary.NativeEndian.Uint32(data[at:])))
}

// attrInt32 finds a 32-bit attribute behind a header, 0 when there is none.
func attrInt32(data []byte, header int, kind uint16) int {
	for at := header; at+unix.SizeofRtAttr <= len(data); {
		length := int(binary.NativeEndian.Uint16(data[at:]))
		if length < unix.SizeofRtAttr {
			return 0
		}
		if binary.NativeEndian.Uint16(data[at+2:]) == kind {
			return int32At(data, at+unix.SizeofRtAttr)
		}
		at += (length + unix.RTA_ALIGNTO - 1) &^ (unix.RTA_ALIGNTO - 1)
	}
	return 0
}
