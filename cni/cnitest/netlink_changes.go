package cnitest

import (
	"encoding/binary"
	"fmt"
	"net"
	"strings"
)

// Netlink protocols (linux/netlink.h).
const (
	routeNetlink   = 0
	xfrmNetlink    = 6
	nfNetlink      = 12
	genericNetlink = 16
)

// netlinkChanges names the requests in a netlink message that change something, in
// order: "RTM_NEWLINK eth0", "NFT_MSG_NEWCHAIN".
func netlinkChanges(protocol int, message []byte) []string {
	var names []string
	for len(message) >= 16 {
		size := int(binary.NativeEndian.Uint32(message))
		if size < 16 || size > len(message) {
			break
		}
		kind, flags := binary.NativeEndian.Uint16(message[4:]), binary.NativeEndian.Uint16(message[6:])
		if name := netlinkChange(protocol, int(kind), flags, message[16:size]); name != "" {
			names = append(names, name)
		}
		message = message[min(len(message), (size+3)&^3):]
	}
	return names
}

func netlinkChange(protocol, kind int, flags uint16, body []byte) string {
	const dump, firstOwn = 0x300, 16 // NLM_F_DUMP, NLMSG_MIN_TYPE
	switch protocol {
	case routeNetlink:
		return routeChange(kind, body)
	case nfNetlink:
		return netfilterChange(kind>>8, kind&0xff)
	case xfrmNetlink:
		switch kind {
		case 0x12, 0x15, 0x1d, 0x1f, 0x22, 0x24: // XFRM_MSG_GET…
			return ""
		}
		return fmt.Sprintf("XFRM message %#x", kind)
	case genericNetlink:
		if kind == firstOwn || flags&dump == dump { // to look up a family, to list
			return ""
		}
		return fmt.Sprintf("generic netlink message %#x", kind)
	}
	return ""
}

// routeChange names a message of rtnetlink. They come in groups of four: NEW, DEL, GET
// and SET of one kind of object (linux/rtnetlink.h).
func routeChange(kind int, body []byte) string {
	const first, get = 16, 2
	if kind < first || kind%4 == get {
		return ""
	}
	object := "OBJECT"
	objects := strings.Fields(`LINK ADDR ROUTE NEIGH RULE QDISC TCLASS TFILTER ACTION PREFIX MULTICAST ANYCAST NEIGHTBL
		NDUSEROPT ADDRLABEL DCB NETCONF MDB NSID STATS CACHEREPORT CHAIN NEXTHOP LINKPROP VLAN NEXTHOPBUCKET TUNNEL`)
	if i := (kind - first) / 4; i < len(objects) {
		object = objects[i]
	}
	name := "RTM_" + []string{"NEW", "DEL", "GET", "SET"}[kind%4] + object
	if about := routeObject(object, body); about != "" {
		name += " " + about
	}
	return name
}

// routeObject says which object a message is about, as far as that is short.
func routeObject(object string, body []byte) string {
	switch object {
	case "LINK":
		return linkObject(body)
	case "ADDR": // struct ifaddrmsg, IFA_ADDRESS
		return prefixText(attribute(body, 8, 1), body, "")
	case "ROUTE": // struct rtmsg, RTA_DST
		return prefixText(attribute(body, 12, 1), body, "default")
	case "NEIGH": // struct ndmsg, NDA_DST
		return ipText(net.IP(attribute(body, 12, 1)))
	}
	return ""
}

// linkObject says which link a struct ifinfomsg is about, and what is done to it.
func linkObject(body []byte) string {
	const header, address, name, master, peerPID, peerFD = 16, 1, 3, 10, 19, 28 // IFLA_…
	if len(body) < header {
		return ""
	}
	about, _, _ := strings.Cut(string(attribute(body, header, name)), "\x00")
	if index := binary.NativeEndian.Uint32(body[4:]); index != 0 {
		about = strings.TrimSpace(fmt.Sprintf("#%d %s", index, about))
	}
	up := func(offset int) bool { return binary.NativeEndian.Uint32(body[offset:])&1 != 0 } // IFF_UP
	for _, done := range []struct {
		what string
		is   bool
	}{
		{"up", up(12) && up(8)},
		{"down", up(12) && !up(8)},
		{"address", attribute(body, header, address) != nil},
		{"master", attribute(body, header, master) != nil},
		{"netns", attribute(body, header, peerPID) != nil || attribute(body, header, peerFD) != nil},
	} {
		if done.is {
			about += " " + done.what
		}
	}
	return strings.TrimSpace(about)
}

// prefixText is an address with the prefix length that stands in the second byte of a
// header.
func prefixText(address, header []byte, none string) string {
	if len(address) == 0 || len(header) < 2 {
		return none
	}
	return fmt.Sprintf("%s/%d", net.IP(address), header[1])
}

// attribute finds a netlink attribute behind a header.
func attribute(body []byte, header, kind int) []byte {
	for rest := body[min(len(body), header):]; len(rest) >= 4; {
		size := int(binary.NativeEndian.Uint16(rest))
		if size < 4 || size > len(rest) {
			return nil
		}
		if int(binary.NativeEndian.Uint16(rest[2:])) == kind {
			return rest[4:size]
		}
		rest = rest[min(len(rest), (size+3)&^3):]
	}
	return nil
}

// netfilterChange names a message of nfnetlink (linux/netfilter/nfnetlink.h,
// nf_tables.h, ipset/ip_set.h).
func netfilterChange(subsystem, kind int) string {
	const conntrack, expect, accounting, ipset, nftables = 1, 2, 7, 6, 10
	switch subsystem {
	case nftables:
		return nftablesChange(kind)
	case ipset:
		names := []string{2: "CREATE", 3: "DESTROY", 4: "FLUSH", 5: "RENAME", 6: "SWAP", 9: "ADD", 10: "DEL"}
		if kind < len(names) && names[kind] != "" {
			return "IPSET_CMD_" + names[kind]
		}
	case conntrack, expect, accounting:
		if kind == 0 || kind == 2 && subsystem != accounting || kind == 3 && subsystem == accounting {
			return fmt.Sprintf("nfnetlink subsystem %d message %d", subsystem, kind) // NEW, DELETE
		}
	}
	return ""
}

func nftablesChange(kind int) string {
	names := []string{
		0: "NEWTABLE", 2: "DELTABLE", 3: "NEWCHAIN", 5: "DELCHAIN", 6: "NEWRULE", 8: "DELRULE", 9: "NEWSET", 11: "DELSET",
		12: "NEWSETELEM", 14: "DELSETELEM", 18: "NEWOBJ", 20: "DELOBJ", 22: "NEWFLOWTABLE", 24: "DELFLOWTABLE",
		26: "DESTROYTABLE", 27: "DESTROYCHAIN", 28: "DESTROYRULE", 29: "DESTROYSET", 30: "DESTROYSETELEM",
		31: "DESTROYOBJ", 32: "DESTROYFLOWTABLE",
	}
	if kind >= len(names) || names[kind] == "" {
		return ""
	}
	return "NFT_MSG_" + names[kind]
}

// summary shortens a list for people: equal neighbours are counted, and what is beyond
// the first few is only counted.
func summary(names []string) []string {
	const most = 4
	var short []string
	for i := 0; i < len(names); {
		n := 1
		for i+n < len(names) && names[i+n] == names[i] {
			n++
		}
		if len(short) == most {
			return append(short, fmt.Sprintf("and %d more", len(names)-i))
		}
		name := names[i]
		if n > 1 {
			name = fmt.Sprintf("%s (%d times)", name, n)
		}
		short, i = append(short, name), i+n
	}
	return short
}
