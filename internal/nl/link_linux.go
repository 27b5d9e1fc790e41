package nl

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"github.com/vishvananda/netlink"
	nlsys "github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Link returns the link with this name, or an error that matches [ErrNotFound].
func (c *Conn) Link(name string) (netlink.Link, error) {
	link, err := c.plain.LinkByName(name)
	if err != nil {
		return nil, &Error{Op: "get link", Object: name, Err: err}
	}
	return link, nil
}

// LinkByIndex returns the link with this index, or an error that matches [ErrNotFound].
func (c *Conn) LinkByIndex(index int) (netlink.Link, error) {
	link, err := c.plain.LinkByIndex(index)
	if err != nil {
		return nil, &Error{Op: "get link", Object: fmt.Sprintf("with index %d", index), Err: err}
	}
	return link, nil
}

// Links returns all links; see [ErrPartial].
func (c *Conn) Links() ([]netlink.Link, error) {
	return dump("list", "links", c.plain.LinkList)
}

// BridgePort returns the settings of a bridge port, or an error that matches
// [ErrNotFound] when the link is no port of a bridge.
func (c *Conn) BridgePort(l netlink.Link) (netlink.Protinfo, error) {
	const op = "get bridge port"
	found, err := c.resolve(l)
	if err != nil {
		return netlink.Protinfo{}, &Error{Op: op, Object: describe(l), Err: err}
	}
	ports, err := dump(op, describe(l), func() ([]netlink.Protinfo, error) {
		port, err := c.plain.LinkGetProtinfo(found)
		var errno syscall.Errno
		if err != nil && !errors.As(err, &errno) && !errors.Is(err, netlink.ErrDumpInterrupted) {
			return nil, nil // in words: not in the dump
		}
		return []netlink.Protinfo{port}, err
	})
	if err == nil && len(ports) == 0 {
		err = &Error{Op: op, Object: describe(l), Err: unix.ENODEV}
	}
	if err != nil {
		return netlink.Protinfo{}, err
	}
	return ports[0], nil
}

// AddLink creates a link, sets its index in l, and puts it under its master if l
// names one (a write of its own). It exists: [ErrExists]. A link whose master refuses
// it is deleted again.
func (c *Conn) AddLink(l netlink.Link) error {
	attrs := l.Attrs()
	master := attrs.MasterIndex
	attrs.MasterIndex = 0
	err := c.write("add "+l.Type()+" link", attrs.Name, func() error { return c.plain.LinkAdd(l) })
	attrs.MasterIndex = master
	if err == nil {
		err = c.learnIndex(attrs)
	}
	if err != nil || master == 0 {
		return err
	}
	if err := c.SetMaster(l, &netlink.Device{LinkAttrs: netlink.LinkAttrs{Index: master}}); err != nil {
		_ = c.DelLink(l)
		return err
	}
	return nil
}

// learnIndex makes sure that the index of a new link is known. The library looks for it
// once, and leaves zero when that fails.
func (c *Conn) learnIndex(attrs *netlink.LinkAttrs) error {
	if attrs.Index != 0 {
		return nil
	}
	made, err := c.Link(attrs.Name)
	if err != nil {
		return fmt.Errorf("find the link just added: %w", err)
	}
	attrs.Index = made.Attrs().Index
	return nil
}

// DelLink deletes a link. An absent one is no error.
func (c *Conn) DelLink(l netlink.Link) error {
	err := c.onLink("delete link", l, c.plain.LinkDel)
	if absent(err) {
		return nil
	}
	return err
}

// VXLANChange names what [Conn.ChangeVXLAN] can change while the device works; zero
// values stay as they are. The kernel refuses any other change of a VXLAN device.
type VXLANChange struct {
	Local       netip.Addr // source address of outgoing packets, of the same family as before
	Device      int        // index of the underlay link
	LearningOff bool
}

// ChangeVXLAN changes a VXLAN device in place; its entries, addresses and routes stay.
func (c *Conn) ChangeVXLAN(l netlink.Link, change VXLANChange) error {
	return c.onLink("change vxlan link", l, func(l netlink.Link) error {
		req := c.request(unix.RTM_NEWLINK, unix.NLM_F_ACK)
		msg := nlsys.NewIfInfomsg(unix.AF_UNSPEC)
		msg.Index = int32(l.Attrs().Index)
		req.AddData(msg)
		info := nlsys.NewRtAttr(unix.IFLA_LINKINFO, nil)
		info.AddRtAttr(nlsys.IFLA_INFO_KIND, nlsys.NonZeroTerminated("vxlan"))
		change.encode(info.AddRtAttr(nlsys.IFLA_INFO_DATA, nil))
		req.AddData(info)
		_, err := req.Execute(unix.NETLINK_ROUTE, 0)
		return err
	})
}

func (v VXLANChange) encode(data *nlsys.RtAttr) {
	switch {
	case v.Local.Is4():
		data.AddRtAttr(nlsys.IFLA_VXLAN_LOCAL, v.Local.AsSlice())
	case v.Local.Is6():
		data.AddRtAttr(nlsys.IFLA_VXLAN_LOCAL6, v.Local.AsSlice())
	}
	if v.Device != 0 {
		data.AddRtAttr(nlsys.IFLA_VXLAN_LINK, nlsys.Uint32Attr(uint32(v.Device)))
	}
	if v.LearningOff {
		data.AddRtAttr(nlsys.IFLA_VXLAN_LEARNING, []byte{0})
	}
}

// SetUp brings a link up.
func (c *Conn) SetUp(l netlink.Link) error {
	return c.onLink("set up link", l, c.plain.LinkSetUp)
}

// SetDown takes a link down.
func (c *Conn) SetDown(l netlink.Link) error {
	return c.onLink("set down link", l, c.plain.LinkSetDown)
}

// SetMTU sets the MTU in bytes.
func (c *Conn) SetMTU(l netlink.Link, mtu int) error {
	return c.onLink(fmt.Sprintf("set MTU %d on link", mtu), l, func(l netlink.Link) error {
		return c.plain.LinkSetMTU(l, mtu)
	})
}

// SetMAC sets the hardware address.
func (c *Conn) SetMAC(l netlink.Link, mac net.HardwareAddr) error {
	return c.onLink(fmt.Sprintf("set MAC address %s on link", mac), l, func(l netlink.Link) error {
		return c.plain.LinkSetHardwareAddr(l, mac)
	})
}

// SetName renames a link. Kernels before 6.2 refuse while it is up.
func (c *Conn) SetName(l netlink.Link, name string) error {
	return c.onLink(fmt.Sprintf("set name %s on link", name), l, func(l netlink.Link) error {
		return c.plain.LinkSetName(l, name)
	})
}

// SetAlias sets the alias, a free text by which an owner can know its links again.
func (c *Conn) SetAlias(l netlink.Link, alias string) error {
	return c.onLink(fmt.Sprintf("set alias %q on link", alias), l, func(l netlink.Link) error {
		return c.plain.LinkSetAlias(l, alias)
	})
}

// SetMaster puts a link under a master: a bridge, bond or VRF.
func (c *Conn) SetMaster(l, master netlink.Link) error {
	return c.onLink("set master of link", l, func(l netlink.Link) error {
		found, err := c.resolve(master)
		if err != nil {
			return err
		}
		return c.plain.LinkSetMasterByIndex(l, found.Attrs().Index)
	})
}

// SetNoMaster takes a link from under its master; without one it does nothing.
func (c *Conn) SetNoMaster(l netlink.Link) error {
	return c.onLink("release from its master link", l, c.plain.LinkSetNoMaster)
}

// SetHairpin lets a bridge send frames back out of the port they came in by.
func (c *Conn) SetHairpin(l netlink.Link, on bool) error {
	return c.onLink("set hairpin mode of bridge port", l, func(l netlink.Link) error {
		return c.plain.LinkSetHairpin(l, on)
	})
}

// SetARP switches the resolution of neighbours' addresses, which is on by default.
func (c *Conn) SetARP(l netlink.Link, on bool) error {
	if on {
		return c.onLink("set address resolution on link", l, c.plain.LinkSetARPOn)
	}
	return c.onLink("set no address resolution on link", l, c.plain.LinkSetARPOff)
}

// onLink sends one write request about an existing link.
func (c *Conn) onLink(op string, l netlink.Link, send func(netlink.Link) error) error {
	found, err := c.resolve(l)
	if err != nil {
		return &Error{Op: op, Object: describe(l), Err: err}
	}
	return c.write(op, describe(l), func() error { return send(found) })
}

// resolve sees to it that the link has an index. The library looks names up too, but
// goes on with index 0 when it finds none.
func (c *Conn) resolve(l netlink.Link) (netlink.Link, error) {
	if l.Attrs().Index != 0 {
		return l, nil
	}
	return c.plain.LinkByName(l.Attrs().Name)
}

func describe(l netlink.Link) string {
	if name := l.Attrs().Name; name != "" {
		return name
	}
	return fmt.Sprintf("with index %d", l.Attrs().Index)
}
