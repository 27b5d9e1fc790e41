package vxlan

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnikit/cnikit/internal/nl"
	"github.com/cnikit/cnikit/reconcile"
)

// devices is the store of our VXLAN device, and of left-overs that have its mark.
type devices struct{ k *kernel }

func deviceStore(k *kernel) reconcile.Store[string, device] { return devices{k} }

// Observe implements [reconcile.Store].
func (s devices) Observe(context.Context) (map[string]device, error) {
	conn, err := s.k.connect()
	if err != nil {
		return nil, err
	}
	links, err := conn.Links()
	if err != nil && !errors.Is(err, nl.ErrPartial) {
		return nil, err
	}
	tunnel, seen := 0, map[string]device{}
	u, underlayErr := s.k.underlay(conn)
	if errors.Is(underlayErr, nl.ErrPartial) {
		return nil, underlayErr // what there is cannot be judged
	}
	for _, l := range links {
		v, ours := s.k.ours(l)
		if !ours {
			continue
		}
		if v.Name == s.k.config.Device {
			tunnel = v.Index
		}
		d, err := s.describe(conn, v, u)
		if err != nil {
			return nil, err
		}
		seen[v.Name] = d
	}
	s.k.saw(tunnel, u.index)
	return seen, partial(err)
}

// describe turns a link into the terms of the wanted device.
func (s devices) describe(conn *nl.Conn, v *netlink.Vxlan, u underlay) (device, error) {
	d := device{
		VNI: v.VxlanId, Port: v.Port, Local: addrOf(v.SrcAddr), MAC: macOf(v.HardwareAddr), MTU: v.MTU,
		Learning: v.Learning,
		Down:     v.Flags&net.FlagUp == 0,
		NoARP:    v.RawFlags&unix.IFF_NOARP != 0,
		Unmarked: v.Alias != s.k.config.mark(),
		Odd:      oddities(v),
	}
	fit, err := s.k.fit(u)
	switch {
	case err != nil: // nothing fits: Apply says so
		d.Odd = strings.TrimPrefix(d.Odd+",mtu beyond the underlay", ",")
	case s.k.config.MTU == 0 && v.MTU == fit:
		d.MTU = 0
	}
	if v.VtepDevIndex != u.index || u.index == 0 {
		d.Underlay = "none"
		if parent, err := conn.LinkByIndex(v.VtepDevIndex); err == nil {
			d.Underlay = parent.Attrs().Name
		}
	}
	mode, err := conn.Sysctl(addrGenMode(v.Name))
	if err != nil && !errors.Is(err, nl.ErrNotFound) { // no IPv6, or the link is gone
		return device{}, err
	}
	d.LinkLocal = err == nil && mode != addrGenModeNone
	return d, nil
}

// oddities names settings that we never make and that change what the device does.
func oddities(v *netlink.Vxlan) string {
	var odd []string
	for _, setting := range []struct {
		on   bool
		name string
	}{
		{v.Group != nil, "group"}, {v.FlowBased, "external"}, {v.GBP, "gbp"}, {v.Proxy, "proxy"}, {v.RSC, "rsc"},
		{v.L2miss, "l2miss"}, {v.L3miss, "l3miss"}, {v.TTL != 0, "ttl"}, {v.TOS != 0, "tos"}, {v.Limit != 0, "limit"},
		{v.MasterIndex != 0, "master"},
	} {
		if setting.on {
			odd = append(odd, setting.name)
		}
	}
	return strings.Join(odd, ",")
}

// Apply implements [reconcile.Store]. It changes what the kernel can change in a
// working device, and makes a new one otherwise. It looks for itself: a dump may have
// missed the device, and what was right for another underlay address may not be now.
func (s devices) Apply(_ context.Context, name string, want device, _ *device) error {
	conn, err := s.k.connect()
	if err != nil {
		return err
	}
	u, err := s.k.underlay(conn)
	if err != nil {
		return err
	}
	mtu, err := s.k.fit(u)
	if err != nil {
		return err
	}
	have, err := s.find(conn, name, u)
	if err != nil {
		return err
	}
	if have != nil && !want.changeable(*have) {
		if err := s.remove(conn, name); err != nil {
			return err
		}
		have = nil
	}
	if have == nil {
		if have, err = s.create(conn, name, want, u, mtu); err != nil {
			return err
		}
	}
	return s.change(conn, name, want, *have, u, mtu)
}

// find returns our device, nil when there is none.
func (s devices) find(conn *nl.Conn, name string, u underlay) (*device, error) {
	l, err := conn.Link(name)
	if errors.Is(err, nl.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	v, ours := s.k.ours(l)
	if !ours {
		return nil, nil
	}
	d, err := s.describe(conn, v, u)
	return &d, err
}

// create makes the device, not yet up, and returns what it then is. Its MAC address
// is in the request, so that nobody else sees another one and thinks of changing it.
func (s devices) create(conn *nl.Conn, name string, want device, u underlay, mtu int) (*device, error) {
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU, attrs.HardwareAddr = name, mtu, want.MAC.HardwareAddr()
	v := &netlink.Vxlan{
		LinkAttrs: attrs, VxlanId: want.VNI, Port: want.Port, SrcAddr: want.Local.AsSlice(), VtepDevIndex: u.index,
	}
	err := conn.AddLink(v)
	if errors.Is(err, nl.ErrExists) {
		if err = s.makeRoom(conn, name, want, err); err == nil {
			err = conn.AddLink(v)
		}
	}
	if err != nil {
		return nil, err
	}
	s.k.saw(v.Index, u.index)
	made := want
	made.Down, made.Unmarked, made.LinkLocal = true, true, true
	return &made, nil
}

// makeRoom finds what keeps the device from being made. A device of ours (renamed, or
// of an earlier configuration) is removed, anybody else's is named.
func (s devices) makeRoom(conn *nl.Conn, name string, want device, cause error) error {
	links, err := conn.Links()
	if err != nil {
		return cause
	}
	for _, l := range links {
		v, isVXLAN := l.(*netlink.Vxlan)
		sameName := l.Attrs().Name == name
		if !sameName && (!isVXLAN || v.VxlanId != want.VNI || v.Port != want.Port) {
			continue
		}
		if _, ours := s.k.ours(l); ours {
			return conn.DelLink(l)
		}
		if sameName {
			return &FieldError{Key: "device", Value: name, Reason: fmt.Sprintf("a %s link that is not ours has the name", l.Type()),
				Fix: "remove or rename it, or use another name"}
		}
		return &FieldError{Key: "vni", Value: want.VNI, Reason: fmt.Sprintf("the device %s, which is not ours, has it on port %d", v.Name, v.Port),
			Fix: "remove that device, or use another VNI or port on all nodes"}
	}
	return cause
}

// change makes the device as wanted, step by step; up comes last.
func (s devices) change(conn *nl.Conn, name string, want, have device, u underlay, mtu int) error {
	link, err := conn.Link(name)
	if err != nil {
		return err
	}
	for _, step := range []struct {
		needed bool
		do     func() error
	}{
		{have.Unmarked, func() error { return conn.SetAlias(link, s.k.config.mark()) }},
		{have.LinkLocal, func() error { return noLinkLocal(conn, name) }},
		{have.MAC != want.MAC, func() error { return conn.SetMAC(link, want.MAC.HardwareAddr()) }},
		{have.Local != want.Local || have.Underlay != "" || have.Learning, func() error {
			return conn.ChangeVXLAN(link, nl.VXLANChange{Local: want.Local, Device: u.index, LearningOff: true})
		}},
		{have.NoARP, func() error { return conn.SetARP(link, true) }},
		{have.MTU != want.MTU, func() error { return conn.SetMTU(link, mtu) }},
		{have.Down, func() error { return s.up(conn, link, want) }},
	} {
		if !step.needed {
			continue
		}
		if err := step.do(); err != nil {
			return err
		}
	}
	return nil
}

// up brings the device up, which is when the kernel binds the UDP port.
func (s devices) up(conn *nl.Conn, link netlink.Link, want device) error {
	err := conn.SetUp(link)
	if !errors.Is(err, unix.EADDRINUSE) {
		return err
	}
	user := "a program of this node"
	links, _ := conn.Links()
	for _, l := range links {
		if v, ok := l.(*netlink.Vxlan); ok && v.Port == want.Port && v.Index != link.Attrs().Index {
			user = "the device " + v.Name
		}
	}
	return &FieldError{Key: "port", Value: want.Port, Reason: "UDP port taken by " + user, Fix: "stop it, or use another port on all nodes"}
}

// Delete implements [reconcile.Store].
func (s devices) Delete(_ context.Context, name string, _ device) error {
	conn, err := s.k.connect()
	if err != nil {
		return err
	}
	return s.remove(conn, name)
}

// remove deletes a device that is ours; everything on it goes with it.
func (s devices) remove(conn *nl.Conn, name string) error {
	l, err := conn.Link(name)
	if errors.Is(err, nl.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if _, ours := s.k.ours(l); !ours {
		return fmt.Errorf("delete device %s: it is not ours any more", name)
	}
	return conn.DelLink(l)
}
