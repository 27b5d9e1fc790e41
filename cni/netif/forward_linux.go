package netif

import (
	"context"
	"net/netip"
)

// EnableForwarding makes the namespace forward packets of the families that addrs
// belong to (ip_forward, and forwarding for all interfaces in IPv6). Others are not
// touched, and nothing is ever switched off again: whether anything else on the node
// needs forwarding cannot be known.
//
// It takes the [Namespace.Lock] when something must be switched on, because the kernel
// lets each writer of these settings spin until it gets its own lock.
func (n *Namespace) EnableForwarding(ctx context.Context, addrs ...netip.Prefix) error {
	var off []string
	for _, addr := range addrs {
		key := "net/ipv4/ip_forward"
		if addr.Addr().Is6() {
			key = "net/ipv6/conf/all/forwarding"
		}
		value, err := n.conn.Sysctl(key)
		if err != nil {
			return err
		}
		if value == "0" {
			off = append(off, key)
		}
	}
	if len(off) == 0 {
		return nil
	}
	unlock, err := n.Lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	for _, key := range off {
		if _, err := n.conn.SetSysctl(key, "1"); err != nil {
			return err
		}
	}
	return nil
}
