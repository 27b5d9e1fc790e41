package vxlan

import (
	"fmt"
	"net/netip"

	"github.com/cnikit/cnikit/overlay"
)

// device is the VXLAN device. What depends on the present underlay is kept relative
// to it, so that a wanted device needs no look at the kernel, and an observed one
// that is right is equal to it.
type device struct {
	VNI, Port int
	Local     netip.Addr
	MAC       overlay.MAC
	MTU       int    // 0: that of the underlay less the overhead
	Underlay  string // name of the underlay link; empty: the one that carries Local
	Learning  bool   // of forwarding entries
	Down      bool
	NoARP     bool   // resolves nothing, not even by permanent neighbours
	Unmarked  bool   // has not our alias
	LinkLocal bool   // makes itself an IPv6 link-local address
	Odd       string // other settings that nobody should have made
}

// changeable reports whether the kernel can make d of o without a new device.
func (d device) changeable(o device) bool {
	return d.VNI == o.VNI && d.Port == o.Port && d.Odd == o.Odd && d.Local.Is4() == o.Local.Is4()
}

func (d device) String() string {
	s := fmt.Sprintf("vni %d port %d local %v mac %v", d.VNI, d.Port, d.Local, d.MAC)
	s = with(s, d.MTU == 0, "mtu auto")
	s = with(s, d.MTU != 0, fmt.Sprintf("mtu %d", d.MTU))
	s = with(s, d.Underlay != "", "dev "+d.Underlay)
	s = with(s, d.Learning, "learning")
	s = with(s, d.Down, "down")
	s = with(s, d.NoARP, "noarp")
	s = with(s, d.Unmarked, "unmarked")
	s = with(s, d.LinkLocal, "link-local")
	return with(s, d.Odd != "", d.Odd)
}

// address is an address of the device; the key says which.
type address struct {
	Unusable bool // IPv6: tentative, or a duplicate was detected
}

func (a address) String() string { return with("present", a.Unusable, "but unusable") }

// neighbor is where a tunnel address is; the key is the address.
type neighbor struct {
	MAC     overlay.MAC
	Dynamic bool // not permanent
}

func (n neighbor) String() string { return with("at "+n.MAC.String(), n.Dynamic, "dynamic") }

// fdbKey names a forwarding entry. The kernel keeps one destination per unicast MAC
// address, and several for a group or the all-zero address.
type fdbKey struct {
	MAC   overlay.MAC
	Group netip.Addr // the destination, when MAC can have several
}

func (k fdbKey) String() string {
	if k.Group.IsValid() {
		return k.MAC.String() + " at " + k.Group.String()
	}
	return k.MAC.String()
}

// fdbEntry is where frames for a MAC address are sent.
type fdbEntry struct {
	Dst     netip.Addr
	VNI     int  // 0: that of the device
	Dynamic bool // learned, or not permanent
}

func (e fdbEntry) String() string {
	return with(with("at "+e.Dst.String(), e.Dynamic, "dynamic"), e.VNI != 0, fmt.Sprintf("vni %d", e.VNI))
}

// with adds a word when it applies.
func with(s string, on bool, word string) string {
	if on {
		return s + " " + word
	}
	return s
}

// routeKey names a route: the kernel has one per destination, metric and (IPv4) type
// of service.
type routeKey struct {
	Prefix netip.Prefix
	Metric int
	TOS    int
}

func (k routeKey) String() string {
	switch {
	case k.TOS != 0:
		return fmt.Sprintf("%v metric %d tos %d", k.Prefix, k.Metric, k.TOS)
	case k.Metric != Metric(k.Prefix):
		return fmt.Sprintf("%v metric %d", k.Prefix, k.Metric)
	default:
		return k.Prefix.String()
	}
}

// route is how a Pod CIDR is reached.
type route struct {
	Via, Src netip.Addr
	Path     overlay.Path
	Odd      string // other settings that nobody should have made
}

func (r route) String() string {
	return with(fmt.Sprintf("%v via %v src %v", r.Path, r.Via, r.Src), r.Odd != "", r.Odd)
}
