package netif

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"net"

	"github.com/vishvananda/netlink"

	"github.com/cnikit/cnikit/internal/nl"
)

// bridgeAttempts is how often EnsureBridge looks again when a bridge comes or goes
// between two of its steps.
const bridgeAttempts = 5

// EnsureBridge sees to it that the bridge exists and is switched on, and reports
// whether this call created it. A bridge that is there is adopted whoever made it, also
// when another process creates it at the same moment; an interface of another kind is
// an error that matches [ErrWrongKind] and is left alone.
//
// The MAC address is fixed: a bridge without a fixed one takes the lowest of its ports,
// so that it changes with the containers and neighbours lose it. Promiscuous mode is
// not touched. A new bridge ignores router advertisements, and its link-local address is
// not checked for duplicates: until that is done the kernel forwards no packet whose next
// hop it has to solicit. When EnsureBridge fails, a bridge that it created is gone again.
// It refuses a name that [CheckName] does: the kernel would complete a template, and a
// bridge of another name be created.
func (n *Namespace) EnsureBridge(b Bridge) (link Link, created bool, err error) {
	if err := CheckName(b.Name); err != nil {
		return Link{}, false, fmt.Errorf("create bridge: name %q %w", b.Name, err)
	}
	for range bridgeAttempts {
		found, err := n.find(b.Name)
		switch {
		case err == nil:
			link, err = n.adoptBridge(found, b)
		case errors.Is(err, ErrNotFound):
			created = true
			link, err = n.createBridge(b)
		}
		if err == nil {
			return link, created, nil
		}
		created = false
		if !errors.Is(err, ErrNotFound) && !errors.Is(err, nl.ErrNotFound) && !errors.Is(err, nl.ErrExists) {
			return Link{}, false, err
		}
	}
	return Link{}, false, fmt.Errorf("create bridge %q: something else creates and deletes it all the time", b.Name)
}

func (n *Namespace) createBridge(b Bridge) (Link, error) {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = b.Name
	attrs.MTU = b.MTU
	attrs.HardwareAddr = randomMAC()
	if err := n.conn.AddLink(&netlink.Bridge{LinkAttrs: attrs}); err != nil {
		return Link{}, err
	}
	link, err := n.finishBridge(b)
	if err != nil {
		return Link{}, errors.Join(err, n.DeleteLink(b.Name))
	}
	return link, nil
}

func (n *Namespace) finishBridge(b Bridge) (Link, error) {
	link, err := n.find(b.Name)
	if err != nil {
		return Link{}, err
	}
	if b.Alias != "" {
		if err := n.conn.SetAlias(link, b.Alias); err != nil {
			return Link{}, err
		}
	}
	for _, setting := range []string{"accept_ra", "accept_dad"} {
		if err := n.setIfPresent(ipv6Key(b.Name, setting), "0"); err != nil {
			return Link{}, err
		}
	}
	if err := n.conn.SetUp(link); err != nil {
		return Link{}, err
	}
	return n.Link(b.Name)
}

func (n *Namespace) adoptBridge(link netlink.Link, b Bridge) (Link, error) {
	if link.Type() != "bridge" {
		return Link{}, fmt.Errorf("%q is a %s: %w", b.Name, link.Type(), ErrWrongKind)
	}
	if err := n.fixMAC(link, b); err != nil {
		return Link{}, err
	}
	if !facts(link).Up {
		if err := n.conn.SetUp(link); err != nil {
			return Link{}, err
		}
	}
	return n.Link(b.Name)
}

// fixMAC fixes the MAC address by setting the one that is there. It avoids that where it
// is needless, because the kernel then forgets all neighbours: on a bridge with our mark,
// which was created with a fixed address, and on one whose address none of its ports has.
func (n *Namespace) fixMAC(link netlink.Link, b Bridge) error {
	if b.Alias != "" && link.Attrs().Alias == b.Alias {
		return nil
	}
	ports, err := n.Ports(b.Name)
	if err != nil {
		return err
	}
	mac := link.Attrs().HardwareAddr
	follows := len(ports) == 0
	for _, port := range ports {
		follows = follows || bytes.Equal(port.MAC, mac)
	}
	if !follows {
		return nil
	}
	if isZero(mac) { // a bridge that lost its last port
		mac = randomMAC()
	}
	return n.conn.SetMAC(link, mac)
}

// DeleteBridge deletes the bridge if it has no ports, and reports whether it is gone.
// It succeeds when there is none; an interface of another kind is an error that matches
// [ErrWrongKind].
func (n *Namespace) DeleteBridge(name string) (gone bool, err error) {
	ports, err := n.Ports(name)
	if errors.Is(err, ErrNotFound) {
		return true, nil
	}
	if err != nil || len(ports) > 0 {
		return false, err
	}
	return true, n.DeleteLink(name)
}

// Ports returns the ports of the bridge.
func (n *Namespace) Ports(bridge string) ([]Link, error) {
	link, err := n.Link(bridge)
	if err != nil {
		return nil, err
	}
	if link.Kind != "bridge" {
		return nil, fmt.Errorf("%q is a %s: %w", bridge, link.Kind, ErrWrongKind)
	}
	all, err := n.Links()
	if err != nil {
		return nil, err
	}
	var ports []Link
	for _, l := range all {
		if l.Master == link.Index {
			ports = append(ports, l)
		}
	}
	return ports, nil
}

// SetPort makes the interface a port of the bridge, with these settings. It succeeds
// when it is one. A port that cannot have the settings is none.
func (n *Namespace) SetPort(name, bridge string, o PortOptions) error {
	port, err := n.find(name)
	if err != nil {
		return err
	}
	master, err := n.find(bridge)
	if err != nil {
		return err
	}
	if port.Attrs().MasterIndex != master.Attrs().Index {
		if err := n.conn.SetMaster(port, master); err != nil {
			return err
		}
	}
	if err := n.conn.SetHairpin(port, o.Hairpin); err != nil {
		return errors.Join(err, n.conn.SetNoMaster(port))
	}
	return nil
}

// Port returns how the interface is set as a port. The error matches [ErrNotFound] when
// there is no such interface or it is no port of a bridge.
func (n *Namespace) Port(name string) (PortOptions, error) {
	link, err := n.find(name)
	if err != nil {
		return PortOptions{}, err
	}
	info, err := n.conn.BridgePort(link)
	if errors.Is(err, nl.ErrNotFound) {
		return PortOptions{}, fmt.Errorf("%q as port of a bridge: %w", name, ErrNotFound)
	}
	return PortOptions{Hairpin: info.Hairpin}, err
}

// randomMAC is a locally administered unicast address.
func randomMAC() net.HardwareAddr {
	mac := make(net.HardwareAddr, 6)
	_, _ = rand.Read(mac) // never fails
	mac[0] = mac[0]&^1 | 2
	return mac
}

func isZero(mac net.HardwareAddr) bool {
	for _, b := range mac {
		if b != 0 {
			return false
		}
	}
	return true
}
