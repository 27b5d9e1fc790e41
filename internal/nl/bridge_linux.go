package nl

import (
	"encoding/binary"

	"github.com/vishvananda/netlink"
	nlsys "github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// SpanningTree reports whether a spanning tree protocol runs on a bridge, the kernel's
// or a daemon's (IFLA_BR_STP_STATE). The library's bridge type has no field for it.
func (c *Conn) SpanningTree(bridge netlink.Link) (bool, error) {
	const op = "get spanning tree state of"
	found, err := c.resolve(bridge)
	if err != nil {
		return false, &Error{Op: op, Object: describe(bridge), Err: err}
	}
	req := c.request(unix.RTM_GETLINK, unix.NLM_F_ACK)
	msg := nlsys.NewIfInfomsg(unix.AF_UNSPEC)
	msg.Index = int32(found.Attrs().Index)
	req.AddData(msg)
	answers, err := req.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWLINK)
	if err != nil {
		return false, &Error{Op: op, Object: describe(bridge), Err: err}
	}
	for _, answer := range answers {
		state := attribute(answer[unix.SizeofIfInfomsg:], unix.IFLA_LINKINFO, nlsys.IFLA_INFO_DATA, nlsys.IFLA_BR_STP_STATE)
		if len(state) == 4 {
			return binary.NativeEndian.Uint32(state) != 0, nil
		}
	}
	return false, nil
}

// attribute is the value at a path of nested attributes; nil when there is none.
func attribute(data []byte, path ...uint16) []byte {
	for _, kind := range path {
		attrs, err := nlsys.ParseRouteAttr(data)
		if err != nil {
			return nil
		}
		data = nil
		for _, a := range attrs {
			if a.Attr.Type&^unix.NLA_F_NESTED == kind {
				data = a.Value
			}
		}
	}
	return data
}
