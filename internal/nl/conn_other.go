//go:build !linux

package nl

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"

	"github.com/cnikit/cnikit/internal/netns"
)

var errUnsupported = fmt.Errorf("route netlink needs Linux: %w", errors.ErrUnsupported)

// Conn cannot be opened on this platform; see the Linux documentation.
type Conn struct{}

// Open is not supported on this platform.
func Open() (*Conn, error) { return nil, errUnsupported }

// OpenIn is not supported on this platform.
func OpenIn(*netns.NS) (*Conn, error) { return nil, errUnsupported }

// Close does nothing.
func (c *Conn) Close() {}

// NS is nil.
func (c *Conn) NS() *netns.NS { return nil }

// Writes is 0.
func (c *Conn) Writes() uint64 { return 0 }

// VXLANChange has no effect on this platform.
type VXLANChange struct {
	Local       netip.Addr
	Device      int
	LearningOff bool
}

func (c *Conn) Link(string) (netlink.Link, error)               { return nil, errUnsupported }
func (c *Conn) LinkByIndex(int) (netlink.Link, error)           { return nil, errUnsupported }
func (c *Conn) Links() ([]netlink.Link, error)                  { return nil, errUnsupported }
func (c *Conn) Addrs(netlink.Link, int) ([]netlink.Addr, error) { return nil, errUnsupported }
func (c *Conn) Routes(*netlink.Route, uint64, int) ([]netlink.Route, error) {
	return nil, errUnsupported
}
func (c *Conn) SpanningTree(netlink.Link) (bool, error) { return false, errUnsupported }
func (c *Conn) BridgePort(netlink.Link) (netlink.Protinfo, error) {
	return netlink.Protinfo{}, errUnsupported
}
func (c *Conn) Rules(int) ([]netlink.Rule, error)             { return nil, errUnsupported }
func (c *Conn) Neighbors(int, int) ([]netlink.Neigh, error)   { return nil, errUnsupported }
func (c *Conn) FDB(int) ([]netlink.Neigh, error)              { return nil, errUnsupported }
func (c *Conn) Sysctl(string) (string, error)                 { return "", errUnsupported }
func (c *Conn) SetSysctl(string, string) (bool, error)        { return false, errUnsupported }
func (c *Conn) AddLink(netlink.Link) error                    { return errUnsupported }
func (c *Conn) DelLink(netlink.Link) error                    { return errUnsupported }
func (c *Conn) ChangeVXLAN(netlink.Link, VXLANChange) error   { return errUnsupported }
func (c *Conn) SetUp(netlink.Link) error                      { return errUnsupported }
func (c *Conn) SetDown(netlink.Link) error                    { return errUnsupported }
func (c *Conn) SetMTU(netlink.Link, int) error                { return errUnsupported }
func (c *Conn) SetMAC(netlink.Link, net.HardwareAddr) error   { return errUnsupported }
func (c *Conn) SetName(netlink.Link, string) error            { return errUnsupported }
func (c *Conn) SetAlias(netlink.Link, string) error           { return errUnsupported }
func (c *Conn) SetMaster(netlink.Link, netlink.Link) error    { return errUnsupported }
func (c *Conn) SetNoMaster(netlink.Link) error                { return errUnsupported }
func (c *Conn) SetHairpin(netlink.Link, bool) error           { return errUnsupported }
func (c *Conn) SetARP(netlink.Link, bool) error               { return errUnsupported }
func (c *Conn) ReplaceAddr(netlink.Link, *netlink.Addr) error { return errUnsupported }
func (c *Conn) DelAddr(netlink.Link, *netlink.Addr) error     { return errUnsupported }
func (c *Conn) AddRoute(*netlink.Route) error                 { return errUnsupported }
func (c *Conn) ReplaceRoute(*netlink.Route) error             { return errUnsupported }
func (c *Conn) DelRoute(*netlink.Route) error                 { return errUnsupported }
func (c *Conn) SetNeighbor(*netlink.Neigh) error              { return errUnsupported }
func (c *Conn) DelNeighbor(*netlink.Neigh) error              { return errUnsupported }
func (c *Conn) SetFDB(*netlink.Neigh) error                   { return errUnsupported }
func (c *Conn) DelFDB(*netlink.Neigh) error                   { return errUnsupported }
