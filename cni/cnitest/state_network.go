package cnitest

import (
	"bytes"
	"net"
	"strconv"

	"github.com/vishvananda/netlink"

	"github.com/cnikit/cnikit/internal/nl"
)

// Constants of route-netlink and neighbour messages (linux/rtnetlink.h,
// linux/neighbour.h); the text of a state does not depend on the platform that prints it.
const (
	inet, inet6      = 2, 10
	permanent, noARP = 0x80, 0x40
	unicast          = 1
	mainTable        = 254
	cached           = 0x200
	momentary        = 0x1 | 0x10 | cached // dead, link down, cached: how a route is, not what it is
)

// networkState lists what route-netlink shows.
func networkState(c *nl.Conn) (State, error) {
	links, err := c.Links()
	if err != nil {
		return nil, err
	}
	names := map[int]string{}
	for _, link := range links {
		names[link.Attrs().Index] = link.Attrs().Name
	}
	var s State
	for _, link := range links {
		s = append(s, linkLine(link, names))
	}
	for _, part := range []func(*nl.Conn, map[int]string) (State, error){addrs, routes, rules, neighbours, fdb} {
		lines, err := part(c, names)
		if err != nil {
			return nil, err
		}
		s = append(s, lines...)
	}
	return s, nil
}

func addrs(c *nl.Conn, names map[int]string) (State, error) {
	list, err := c.Addrs(nil, 0)
	if err != nil {
		return nil, err
	}
	var s State
	for _, a := range list {
		w := words{"addr", a.IPNet.String(), "dev", names[a.LinkIndex], "scope", strconv.Itoa(a.Scope)}
		if a.Peer != nil && a.Peer.String() != a.IPNet.String() {
			w.add("peer", a.Peer.String())
		}
		if a.Label != names[a.LinkIndex] {
			w.add("label", a.Label)
		}
		s = append(s, w.String())
	}
	return s, nil
}

func routes(c *nl.Conn, names map[int]string) (State, error) {
	var s State
	for _, family := range []int{inet, inet6} {
		list, err := c.Routes(&netlink.Route{}, netlink.RT_FILTER_TABLE, family)
		if err != nil {
			return nil, err
		}
		for _, r := range list {
			if r.Flags&cached == 0 {
				s = append(s, routeLine(r, family, names))
			}
		}
	}
	return s, nil
}

func rules(c *nl.Conn, _ map[int]string) (State, error) {
	var s State
	for _, family := range []int{inet, inet6} {
		list, err := c.Rules(family)
		if err != nil {
			return nil, err
		}
		for _, r := range list {
			s = append(s, ruleLine(r, family))
		}
	}
	return s, nil
}

func neighbours(c *nl.Conn, names map[int]string) (State, error) {
	links, err := c.Links()
	if err != nil {
		return nil, err
	}
	macs := map[int]net.HardwareAddr{}
	for _, link := range links {
		macs[link.Attrs().Index] = link.Attrs().HardwareAddr
	}
	var s State
	for _, family := range []int{inet, inet6} {
		list, err := c.Neighbors(0, family)
		if err != nil {
			return nil, err
		}
		for _, e := range list {
			w := words{"neighbour", ipText(e.IP), "dev", names[e.LinkIndex], "mac", e.HardwareAddr.String()}
			switch {
			case e.State&permanent != 0:
				s = append(s, w.String())
			case e.State&noARP != 0 && !derived(e.HardwareAddr, macs[e.LinkIndex]):
				s = append(s, append(w, "noarp").String())
			}
		}
	}
	return s, nil
}

// derived reports whether the kernel itself makes neighbours with such a MAC address,
// for addresses that need no resolution: group addresses, and all those on a loopback
// interface or one without ARP, which get zeros or the interface's own address.
func derived(mac, own net.HardwareAddr) bool {
	zero := len(bytes.Trim(mac, "\x00")) == 0
	return zero || mac[0]&1 == 1 || bytes.Equal(mac, own)
}

func fdb(c *nl.Conn, names map[int]string) (State, error) {
	list, err := c.FDB(0)
	if err != nil {
		return nil, err
	}
	var s State
	for _, e := range list {
		group := len(e.HardwareAddr) > 0 && e.HardwareAddr[0]&1 == 1 && e.IP == nil
		if e.State&(permanent|noARP) == 0 || group {
			continue // learned, or a multicast group that the kernel itself listens to
		}
		w := words{"fdb", e.HardwareAddr.String(), "dev", names[e.LinkIndex]}
		w.add("dst", ipText(e.IP))
		w.add("master", names[e.MasterIndex])
		w.number("vlan", e.Vlan, 0)
		s = append(s, w.String())
	}
	return s, nil
}
