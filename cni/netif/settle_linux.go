package netif

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnikit/cnikit/internal/nl"
)

// settleTimeout bounds the wait for work that the kernel does in the background, within
// milliseconds unless something holds its one lock on network configuration (RTNL).
const settleTimeout = 20 * time.Second

// WaitRunning waits until the interface is ready to pass packets (IFF_RUNNING). The
// kernel sets that state in the background after both ends of a veth pair were switched
// on. A bridge runs when one of its ports forwards; a port of a bridge may be running and
// still not forward, see [Namespace.SpanningTree]. It gives up when ctx ends, and after
// 20 seconds.
func (n *Namespace) WaitRunning(ctx context.Context, name string) error {
	running := func() (bool, error) {
		link, err := n.Link(name)
		return link.Running, err
	}
	if err := n.await(ctx, nl.LinkEvent, running); err != nil {
		return fmt.Errorf("wait for interface %q to run: %w", name, err)
	}
	return nil
}

// WaitAnswering waits until the interface, which is running, answers neighbour
// solicitations for the IPv6 addresses, which it has, and can send its own. The kernel
// joins the multicast groups of addresses in the background, and makes the link-local
// address valid there; a solicitation before that is repeated only after a second. An
// interface that checks its link-local address for duplicates is not waited for that
// long. IPv4 addresses answer at once. It gives up when ctx ends, and after 20 seconds.
func (n *Namespace) WaitAnswering(ctx context.Context, name string, addrs ...netip.Addr) error {
	for _, addr := range addrs {
		if !addr.Is6() {
			continue
		}
		// The kernel tells of an address when it has joined the group, and when it is valid.
		ready := func() (bool, error) {
			joined, err := n.joined(name, addr)
			if err != nil || !joined {
				return false, err
			}
			return n.soliciting(name)
		}
		if err := n.await(ctx, nl.AddrEvent, ready); err != nil {
			return fmt.Errorf("wait for interface %q to answer for %s: %w", name, addr, err)
		}
	}
	return nil
}

// soliciting reports whether no link-local address is about to become valid.
func (n *Namespace) soliciting(name string) (bool, error) {
	if dad, err := n.conn.Sysctl(ipv6Key(name, "accept_dad")); err != nil || dad != "0" {
		return true, err
	}
	link, err := n.find(name)
	if err != nil {
		return false, err
	}
	addrs, err := n.conn.Addrs(link, unix.AF_INET6)
	if err != nil {
		return false, err
	}
	for _, addr := range addrs {
		if addr.Scope == unix.RT_SCOPE_LINK && addr.Flags&unix.IFA_F_TENTATIVE != 0 {
			return false, nil
		}
	}
	return true, nil
}

// joined reports whether the interface is in the solicited-node multicast group of the
// address (RFC 4291, section 2.7.1).
func (n *Namespace) joined(name string, addr netip.Addr) (bool, error) {
	var groups []byte // lines of index, name, group, users, flags, timer
	err := n.ns.Do(func() (err error) {
		groups, err = os.ReadFile("/proc/thread-self/net/igmp6")
		return err
	})
	if err != nil {
		return false, err
	}
	last := addr.As16()
	group := append(netip.MustParseAddr("ff02::1:ff00:0").AsSlice()[:13], last[13:]...)
	for line := range bytes.Lines(groups) {
		fields := bytes.Fields(line)
		if len(fields) > 2 && string(fields[1]) == name && string(fields[2]) == hex.EncodeToString(group) {
			return true, nil
		}
	}
	return false, nil
}

// await waits for the condition, which is looked at again after each event of the kind.
func (n *Namespace) await(ctx context.Context, kind nl.EventKind, condition func() (bool, error)) error {
	if ok, err := condition(); ok || err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	events, err := nl.Subscribe(n.ns, kind)
	if err != nil {
		return err
	}
	defer func() { _ = events.Close() }()
	for {
		if ok, err := condition(); ok || err != nil {
			return err
		}
		if _, err := events.Receive(ctx); err != nil {
			return err
		}
	}
}
