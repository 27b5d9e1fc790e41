package bridge

import (
	"fmt"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/cni/netif"
)

// linkMTU is the MTU of the container's link. Frames that are too long for an uplink of
// the bridge would vanish without a message, so that is refused. Other containers do
// not count: theirs may have another MTU while a change of the configuration spreads,
// and the kernel adapts a bridge of ours to the least of its ports.
func linkMTU(c Config, l *layout, bridge netif.Link, ports []netif.Link) (int, error) {
	if c.MTU == 0 {
		return bridge.MTU, inheritable(l, bridge)
	}
	if !ownBridge(bridge) && c.MTU > bridge.MTU {
		return 0, mtuError(c, fmt.Sprintf("the bridge %s, which something else created, has only %d bytes", bridge.Name, bridge.MTU), bridge.MTU)
	}
	for _, port := range ports {
		if port.Kind != "veth" && c.MTU > port.MTU {
			return 0, mtuError(c, fmt.Sprintf("%s, a port of the bridge %s, has only %d bytes", port.Name, bridge.Name, port.MTU), port.MTU)
		}
	}
	return c.MTU, nil
}

func mtuError(c Config, reason string, most int) error {
	return &cni.FieldError{Key: "mtu", Value: c.MTU, Reason: reason,
		Fix: fmt.Sprintf("use at most %d, leave it out, or raise the other", most)}
}

// inheritable refuses a bridge that is too narrow for IPv6.
func inheritable(l *layout, bridge netif.Link) error {
	for _, ip := range l.ips {
		if ip.Address.Addr().Is6() && bridge.MTU < minIPv6MTU {
			return &cni.FieldError{Key: "bridge", Value: bridge.Name,
				Reason: fmt.Sprintf("it has an MTU of %d bytes, and the IPv6 address %s needs %d", bridge.MTU, ip.Address, minIPv6MTU),
				Fix:    "raise it, or use a range without IPv6"}
		}
	}
	return nil
}
