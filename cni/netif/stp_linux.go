package netif

import (
	"encoding/binary"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// SpanningTree reports whether a spanning tree protocol runs on the bridge, the kernel's
// or a daemon's. It keeps a new port from forwarding for twice the forward delay, half a
// minute by default, which neither IFF_RUNNING nor IFF_LOWER_UP of the port shows.
func (n *Namespace) SpanningTree(bridge string) (bool, error) {
	link, err := n.find(bridge)
	if err != nil {
		return false, err
	}
	if link.Type() != "bridge" {
		return false, fmt.Errorf("%q is a %s: %w", bridge, link.Type(), ErrWrongKind)
	}
	var messages []syscall.NetlinkMessage
	err = n.ns.Do(func() error {
		dump, err := syscall.NetlinkRIB(syscall.RTM_GETLINK, syscall.AF_UNSPEC)
		if err == nil {
			messages, err = syscall.ParseNetlinkMessage(dump)
		}
		return err
	})
	if err != nil {
		return false, fmt.Errorf("get spanning tree state of %q: %w", bridge, err)
	}
	for _, m := range messages {
		if m.Header.Type == syscall.RTM_NEWLINK && indexOf(m) == link.Attrs().Index {
			state := attribute(m.Data[syscall.SizeofIfInfomsg:], unix.IFLA_LINKINFO, unix.IFLA_INFO_DATA, unix.IFLA_BR_STP_STATE)
			return len(state) == 4 && binary.NativeEndian.Uint32(state) != 0, nil
		}
	}
	return false, fmt.Errorf("interface %q: %w", bridge, ErrNotFound)
}

// indexOf is 0 for a message that is too short for a struct ifinfomsg.
func indexOf(m syscall.NetlinkMessage) int {
	if len(m.Data) < syscall.SizeofIfInfomsg {
		return 0
	}
	return int(int32(binary.NativeEndian.Uint32(m.Data[4:])))
}

// attribute is the value at a path of nested attributes (struct rtattr); nil when there
// is none.
func attribute(data []byte, path ...uint16) []byte {
	for _, kind := range path {
		data = value(data, kind)
	}
	return data
}

func value(data []byte, kind uint16) []byte {
	for len(data) >= unix.SizeofRtAttr {
		size := int(binary.NativeEndian.Uint16(data))
		if size < unix.SizeofRtAttr || size > len(data) {
			return nil
		}
		if binary.NativeEndian.Uint16(data[2:])&^unix.NLA_F_NESTED == kind {
			return data[unix.SizeofRtAttr:size]
		}
		data = data[min((size+3)&^3, len(data)):]
	}
	return nil
}
