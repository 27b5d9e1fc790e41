package cnitest

import (
	"net"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
)

func linkLine(link netlink.Link, names map[int]string) string {
	a := link.Attrs()
	w := words{"link", a.Name, link.Type(), "mtu", strconv.Itoa(a.MTU)}
	w.add("mac", a.HardwareAddr.String())
	w.add("master", names[a.MasterIndex])
	if a.Alias != "" {
		w.add("alias", strconv.Quote(a.Alias))
	}
	if a.Flags&net.FlagUp != 0 {
		w = append(w, "up")
	}
	if a.Promisc != 0 {
		w = append(w, "promisc")
	}
	if vxlan, ok := link.(*netlink.Vxlan); ok {
		w.add("vni", strconv.Itoa(vxlan.VxlanId))
		w.add("port", strconv.Itoa(vxlan.Port))
		w.add("dev", names[vxlan.VtepDevIndex])
		w.add("local", ipText(vxlan.SrcAddr))
	}
	return w.String()
}

func routeLine(r netlink.Route, family int, names map[int]string) string {
	dst := "default"
	if r.Dst != nil {
		dst = r.Dst.String()
	}
	w := words{"route", familyName(family), dst}
	w.add("via", ipText(r.Gw))
	if r.Via != nil {
		w.add("via", r.Via.String())
	}
	if r.Encap != nil {
		w.add("encap", r.Encap.String())
	}
	w.add("dev", names[r.LinkIndex])
	w.add("src", ipText(r.Src))
	for _, hop := range r.MultiPath {
		w.add("nexthop", ipText(hop.Gw)+"@"+names[hop.LinkIndex])
	}
	w.number("type", r.Type, unicast)
	w.number("table", r.Table, mainTable)
	w.number("scope", int(r.Scope), 0)
	w.number("metric", r.Priority, 0)
	w.number("mtu", r.MTU, 0)
	w.number("flags", r.Flags&^momentary, 0)
	w = append(w, "proto", strconv.Itoa(int(r.Protocol)))
	return w.String()
}

func ruleLine(r netlink.Rule, family int) string {
	w := words{"rule", familyName(family), strconv.Itoa(r.Priority)}
	if r.Invert {
		w = append(w, "not")
	}
	w.add("from", netText(r.Src))
	w.add("to", netText(r.Dst))
	w.add("iif", r.IifName)
	w.add("oif", r.OifName)
	w.number("fwmark", int(r.Mark), 0)
	w.number("tos", int(r.Tos), 0)
	w.number("ipproto", r.IPProto, 0)
	w.number("table", r.Table, 0)
	w.number("goto", r.Goto, -1)
	w.number("suppress", r.SuppressPrefixlen, -1)
	w.number("type", int(r.Type), unicast)
	w.number("proto", int(r.Protocol), 0)
	return w.String()
}

// words builds a line of names and values.
type words []string

// add appends a name and its value, unless there is none.
func (w *words) add(name, value string) {
	if value != "" {
		*w = append(*w, name, value)
	}
}

// number appends a name and its value, unless it is the usual one.
func (w *words) number(name string, value, usual int) {
	if value != usual {
		*w = append(*w, name, strconv.Itoa(value))
	}
}

func (w words) String() string { return strings.Join(w, " ") }

func ipText(ip net.IP) string {
	if len(ip) == 0 {
		return ""
	}
	return ip.String()
}

func netText(n *net.IPNet) string {
	if n == nil {
		return ""
	}
	return n.String()
}

func familyName(family int) string {
	if family == inet6 {
		return "ipv6"
	}
	return "ipv4"
}
