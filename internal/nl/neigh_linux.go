package nl

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"

	"github.com/vishvananda/netlink"
	nlsys "github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Neighbors returns the neighbour entries of a link, or of all links when ifindex is
// 0, in one family or both (netlink.FAMILY_ALL); see [ErrPartial].
func (c *Conn) Neighbors(ifindex, family int) ([]netlink.Neigh, error) {
	if family == netlink.FAMILY_ALL {
		v4, err4 := c.Neighbors(ifindex, netlink.FAMILY_V4)
		v6, err6 := c.Neighbors(ifindex, netlink.FAMILY_V6)
		return append(v4, v6...), errors.Join(err4, err6)
	}
	return dump("list", fmt.Sprintf("neighbours of link %d", ifindex), func() ([]netlink.Neigh, error) {
		return c.dumpNeighbors(ifindex, family)
	})
}

// FDB returns the forwarding entries of a bridge or VXLAN link, or of all links when
// ifindex is 0; see [ErrPartial]. While others write, the kernel loses or doubles
// stable entries of this dump and does not say so: one dump proves presence, never
// absence.
func (c *Conn) FDB(ifindex int) ([]netlink.Neigh, error) {
	return dump("list", fmt.Sprintf("forwarding entries of link %d", ifindex), func() ([]netlink.Neigh, error) {
		return c.dumpNeighbors(ifindex, unix.AF_BRIDGE)
	})
}

// dumpNeighbors makes the request itself: the library's is refused under strict
// checking, without which the kernel dumps all links.
func (c *Conn) dumpNeighbors(ifindex, family int) ([]netlink.Neigh, error) {
	req := c.request(unix.RTM_GETNEIGH, unix.NLM_F_DUMP)
	req.AddData(&netlink.Ndmsg{Family: uint8(family)})
	if ifindex != 0 {
		req.AddData(nlsys.NewRtAttr(netlink.NDA_IFINDEX, nlsys.Uint32Attr(uint32(ifindex))))
	}
	messages, err := req.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWNEIGH)
	neighbors := make([]netlink.Neigh, 0, len(messages))
	for _, m := range messages {
		n, ok := parseNeighbor(m)
		if ok && n.Family == family && (ifindex == 0 || n.LinkIndex == ifindex) {
			neighbors = append(neighbors, n)
		}
	}
	return neighbors, err
}

// parseNeighbor decodes a struct ndmsg and its attributes. The library's decoder
// takes a 16-byte link-layer address for a reason to look the link up in whatever
// namespace the thread is in.
func parseNeighbor(m []byte) (netlink.Neigh, bool) {
	if len(m) < unix.SizeofNdMsg {
		return netlink.Neigh{}, false
	}
	n := netlink.Neigh{
		Family:    int(m[0]),
		LinkIndex: int(int32(binary.NativeEndian.Uint32(m[4:]))),
		State:     int(binary.NativeEndian.Uint16(m[8:])),
		Flags:     int(m[10]),
		Type:      int(m[11]),
	}
	attrs, err := nlsys.ParseRouteAttr(m[unix.SizeofNdMsg:])
	if err != nil {
		return netlink.Neigh{}, false
	}
	for _, a := range attrs {
		switch a.Attr.Type {
		case netlink.NDA_DST:
			n.IP = net.IP(a.Value)
		case netlink.NDA_LLADDR:
			n.HardwareAddr = net.HardwareAddr(a.Value)
		case netlink.NDA_VLAN:
			n.Vlan = int(binary.NativeEndian.Uint16(a.Value))
		case netlink.NDA_VNI:
			n.VNI = int(binary.NativeEndian.Uint32(a.Value))
		case netlink.NDA_MASTER:
			n.MasterIndex = int(binary.NativeEndian.Uint32(a.Value))
		}
	}
	return n, true
}

// SetNeighbor adds or replaces a neighbour entry; state 0 means permanent. Permanent
// entries are outside the kernel's garbage collection thresholds.
func (c *Conn) SetNeighbor(n *netlink.Neigh) error {
	entry := *n
	if entry.State == 0 {
		entry.State = netlink.NUD_PERMANENT
	}
	return c.write("set neighbour", describeNeighbor(n), func() error { return c.plain.NeighSet(&entry) })
}

// DelNeighbor deletes a neighbour entry. An absent entry or link is no error.
func (c *Conn) DelNeighbor(n *netlink.Neigh) error {
	return c.del("delete neighbour", describeNeighbor(n), func() error { return c.plain.NeighDel(n) })
}

// SetFDB adds a forwarding entry of a VXLAN device, or swaps the destination of one
// with the same unicast MAC address; state 0 means permanent.
func (c *Conn) SetFDB(n *netlink.Neigh) error {
	entry := fdbEntry(n)
	return c.write("set forwarding entry", describeNeighbor(n), func() error { return c.plain.NeighSet(&entry) })
}

// DelFDB deletes a forwarding entry. An absent entry or link is no error.
func (c *Conn) DelFDB(n *netlink.Neigh) error {
	entry := fdbEntry(n)
	return c.del("delete forwarding entry", describeNeighbor(n), func() error { return c.plain.NeighDel(&entry) })
}

func fdbEntry(n *netlink.Neigh) netlink.Neigh {
	entry := *n
	entry.Family = unix.AF_BRIDGE
	if entry.Flags == 0 {
		entry.Flags = netlink.NTF_SELF
	}
	if entry.State == 0 {
		entry.State = netlink.NUD_PERMANENT | netlink.NUD_NOARP
	}
	return entry
}

func describeNeighbor(n *netlink.Neigh) string {
	return fmt.Sprintf("%s %s dev #%d", n.HardwareAddr, n.IP, n.LinkIndex)
}
