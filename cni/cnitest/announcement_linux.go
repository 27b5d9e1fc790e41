package cnitest

import (
	"encoding/binary"
	"fmt"
	"net"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	// netconfIfindex is NETCONFA_IFINDEX of linux/netconf.h, netconfHeader the size of a
	// netconfmsg with its padding.
	netconfIfindex = 1
	netconfHeader  = 4

	// stateOffset is where the state is in a ndmsg (linux/neighbour.h).
	stateOffset = 8
)

// announcement is how one kind of notification is laid out: the size of its header and
// the attributes worth showing.
type announcement struct {
	object string
	header int
	attrs  []shownAttr
}

type shownAttr struct {
	kind uint16
	name string
	text func([]byte) string
}

// layout finds the layout of a pair of message types (rtnetlink(7)).
func layout(kind uint16) (announcement, bool) {
	switch kind {
	case unix.RTM_NEWLINK, unix.RTM_DELLINK:
		return announcement{"link", unix.SizeofIfInfomsg, []shownAttr{{unix.IFLA_IFNAME, "", nameText}}}, true
	case unix.RTM_NEWADDR, unix.RTM_DELADDR:
		return announcement{"addr", unix.SizeofIfAddrmsg, []shownAttr{{unix.IFA_ADDRESS, "", addrText}}}, true
	case unix.RTM_NEWROUTE, unix.RTM_DELROUTE:
		return announcement{"route", unix.SizeofRtMsg, []shownAttr{
			{unix.RTA_DST, "", addrText}, {unix.RTA_GATEWAY, "via ", addrText}, {unix.RTA_OIF, "dev ", numberText},
		}}, true
	case unix.RTM_NEWNEIGH, unix.RTM_DELNEIGH:
		return announcement{"neighbour", unix.SizeofNdMsg, []shownAttr{
			{unix.NDA_DST, "", addrText}, {unix.NDA_LLADDR, "mac ", macText},
		}}, true
	case unix.RTM_NEWRULE, unix.RTM_DELRULE:
		return announcement{"rule", unix.SizeofRtMsg, []shownAttr{{unix.FRA_PRIORITY, "priority ", numberText}}}, true
	case unix.RTM_NEWNETCONF, unix.RTM_DELNETCONF:
		return announcement{"setting", netconfHeader, []shownAttr{{netconfIfindex, "dev ", numberText}}}, true
	case unix.RTM_NEWNEXTHOP, unix.RTM_DELNEXTHOP:
		return announcement{object: "next hop"}, true
	case unix.RTM_NEWQDISC, unix.RTM_DELQDISC:
		return announcement{object: "queueing discipline"}, true
	}
	return announcement{}, false
}

// describe puts a notification into words. It is false for one that is no change, and
// for what comes and goes by itself.
func describe(m syscall.NetlinkMessage) (string, bool) {
	kind := m.Header.Type
	if kind>>8 == unix.NFNL_SUBSYS_NFTABLES {
		return fmt.Sprintf("nftables message %d", kind&0xff), true
	}
	l, ok := layout(kind)
	if !ok {
		return fmt.Sprintf("message of type %d", kind), kind >= unix.RTM_NEWLINK
	}
	if l.object == "neighbour" && transient(m) || kind == unix.RTM_NEWLINK && repeated(m) {
		return "", false
	}
	w := words{verb(kind), l.object}
	if l.header > 0 && len(m.Data) > l.header {
		w = append(w, shown(m.Data, l)...)
	}
	return w.String(), true
}

// verb: the new, delete and get messages of an object have types 4n, 4n+1 and 4n+2.
func verb(kind uint16) string {
	if kind%4 == 1 {
		return "delete"
	}
	return "new"
}

// transient reports whether the kernel announces a neighbour or FDB entry that it keeps
// by itself. Entries that somebody configured are permanent, or static (NOARP) in an
// FDB; a deletion that somebody asked for carries a port ID, as the entry's last state
// is "failed" then.
func transient(m syscall.NetlinkMessage) bool {
	if len(m.Data) < unix.SizeofNdMsg || m.Header.Pid != 0 {
		return false
	}
	configured := uint16(unix.NUD_PERMANENT)
	if m.Data[0] == unix.AF_BRIDGE {
		configured |= unix.NUD_NOARP
	}
	return binary.NativeEndian.Uint16(m.Data[stateOffset:])&configured == 0
}

// repeated reports whether an announcement is of the settings of a bridge port. The bridge
// makes it once more on its own when the forward delay of a new port is over, 15 seconds
// after it joined (br_forward_delay_timer_expired). Joining and leaving are announced as
// changes of the link itself.
func repeated(m syscall.NetlinkMessage) bool { return len(m.Data) > 0 && m.Data[0] == unix.AF_BRIDGE }

// shown renders the family and the attributes that the layout names.
func shown(data []byte, l announcement) []string {
	var out []string
	switch data[0] {
	case unix.AF_INET:
		out = append(out, "ipv4")
	case unix.AF_INET6:
		out = append(out, "ipv6")
	case unix.AF_BRIDGE: // an FDB, or a bridge port
		out = append(out, "bridge")
	}
	values := attributes(data[l.header:])
	for _, a := range l.attrs {
		if value, ok := values[a.kind]; ok {
			out = append(out, a.name+a.text(value))
		}
	}
	if l.object == "neighbour" && binary.NativeEndian.Uint16(data[stateOffset:])&unix.NUD_FAILED != 0 {
		out = append(out, "failed") // what the kernel announces of one that is about to be deleted
	}
	return out
}

// attributes reads a list of attributes up to a malformed one.
func attributes(b []byte) map[uint16][]byte {
	values := map[uint16][]byte{}
	for len(b) >= unix.SizeofRtAttr {
		length := int(binary.NativeEndian.Uint16(b))
		if length < unix.SizeofRtAttr || length > len(b) {
			break
		}
		kind := binary.NativeEndian.Uint16(b[2:]) &^ (unix.NLA_F_NESTED | unix.NLA_F_NET_BYTEORDER)
		values[kind] = b[unix.SizeofRtAttr:length]
		b = b[min((length+3)&^3, len(b)):]
	}
	return values
}

func nameText(b []byte) string { return strings.TrimRight(string(b), "\x00") }
func addrText(b []byte) string { return net.IP(b).String() }
func macText(b []byte) string  { return net.HardwareAddr(b).String() }

func numberText(b []byte) string {
	if len(b) != 4 {
		return fmt.Sprintf("%x", b)
	}
	return fmt.Sprint(int32(binary.NativeEndian.Uint32(b)))
}
