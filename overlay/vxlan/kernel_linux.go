package vxlan

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"

	"github.com/vishvananda/netlink"

	"github.com/cnikit/cnikit/internal/netns"
	"github.com/cnikit/cnikit/internal/nl"
	"github.com/cnikit/cnikit/overlay"
	"github.com/cnikit/cnikit/reconcile"
)

// kernel is what the stores share: the connection, and what they have to know of the
// wanted state to tell what is ours.
type kernel struct {
	config Config

	mu      sync.Mutex
	conn    *nl.Conn
	local   netip.Addr  // own underlay address, invalid before the first topology
	mac     overlay.MAC // of our device
	sysctls []string    // in use
	tunnel  int         // index of our device at the last look, 0: absent
	parent  int         // index of the underlay at the last look, 0: none
}

func newKernel(c Config) *kernel { return &kernel{config: c} }

func (k *kernel) want(d desired, self overlay.Peer) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.local, k.mac = self.Underlay, self.MAC
	k.sysctls = slices.Sorted(maps.Keys(d.sysctls))
}

// wanted returns our underlay address and tunnel MAC address.
func (k *kernel) wanted() (netip.Addr, overlay.MAC) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.local, k.mac
}

// saw remembers where the device and its underlay are, for the events.
func (k *kernel) saw(tunnel, parent int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.tunnel, k.parent = tunnel, parent
}

func (k *kernel) seen() (tunnel, parent int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.tunnel, k.parent
}

// connect returns the connection, opened when it is first needed.
func (k *kernel) connect() (*nl.Conn, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.conn != nil {
		return k.conn, nil
	}
	conn, err := dial(k.config.NetNS)
	if err != nil {
		return nil, err
	}
	k.conn = conn
	return conn, nil
}

func dial(path string) (*nl.Conn, error) {
	if path == "" {
		return nl.Open()
	}
	ns, err := netns.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = ns.Close() }()
	return nl.OpenIn(ns)
}

func (k *kernel) close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.conn != nil {
		k.conn.Close()
		k.conn = nil
	}
	return nil
}

// ours returns the link as a VXLAN device when it is ours: it has our mark, or it is
// what we create in the moment before it is marked.
func (k *kernel) ours(l netlink.Link) (*netlink.Vxlan, bool) {
	v, ok := l.(*netlink.Vxlan)
	if !ok {
		return nil, false
	}
	_, mac := k.wanted()
	fresh := v.Alias == "" && v.Name == k.config.Device && macOf(v.HardwareAddr) == mac && mac != overlay.MAC{}
	return v, v.Alias == k.config.mark() || fresh
}

// device returns the index of our device, 0 when it is absent.
func (k *kernel) device(conn *nl.Conn) (int, error) {
	l, err := conn.Link(k.config.Device)
	if errors.Is(err, nl.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	if _, ours := k.ours(l); !ours {
		return 0, nil
	}
	return l.Attrs().Index, nil
}

// onDevice returns the connection and the index of our device; an error that matches
// [nl.ErrNotFound] when it is absent.
func (k *kernel) onDevice() (*nl.Conn, int, error) {
	conn, err := k.connect()
	if err != nil {
		return nil, 0, err
	}
	if index, _ := k.seen(); index != 0 {
		return conn, index, nil
	}
	return nil, 0, &nl.Error{Op: "find device", Object: k.config.Device, Err: nl.ErrNotFound}
}

// underlay is the link that carries our underlay address.
type underlay struct {
	index, mtu int
	name       string
}

var errNoTopology = errors.New("no topology yet")

// underlay finds it. Our own device does not count.
func (k *kernel) underlay(conn *nl.Conn) (underlay, error) {
	local, _ := k.wanted()
	if !local.IsValid() {
		return underlay{}, errNoTopology
	}
	addrs, err := conn.Addrs(nil, netlink.FAMILY_V4)
	if err != nil {
		return underlay{}, err
	}
	tunnel, _ := k.seen()
	for _, a := range addrs {
		if a.LinkIndex == tunnel || !a.IP.Equal(local.AsSlice()) {
			continue
		}
		l, err := conn.LinkByIndex(a.LinkIndex)
		if err != nil {
			return underlay{}, err
		}
		if l.Attrs().Name == "lo" {
			return underlay{}, &FieldError{Key: "underlay", Value: local, Reason: "on the loopback, which no packet leaves by",
				Fix: "use an address of the link that leads to the other nodes"}
		}
		return underlay{index: l.Attrs().Index, mtu: l.Attrs().MTU, name: l.Attrs().Name}, nil
	}
	return underlay{}, &FieldError{Key: "underlay", Value: local, Reason: "no link of this node has the address",
		Fix: "give the node the address that the others know it by, or correct the node's record"}
}

// fit returns the MTU that the device must have on this underlay.
func (k *kernel) fit(u underlay) (int, error) {
	most := u.mtu - overhead
	if k.config.MTU == 0 {
		return most, nil
	}
	if k.config.MTU > most {
		return 0, &FieldError{Key: "mtu", Value: k.config.MTU,
			Reason: fmt.Sprintf("the underlay %s has an MTU of %d and the tunnel adds %d", u.name, u.mtu, overhead),
			Fix:    fmt.Sprintf("use at most %d, or 0 to follow the underlay", most)}
	}
	return k.config.MTU, nil
}

func (k *kernel) mtu() int {
	conn, err := k.connect()
	if err != nil {
		return 0
	}
	u, err := k.underlay(conn)
	if err != nil {
		return 0
	}
	mtu, err := k.fit(u)
	if err != nil {
		return 0
	}
	return mtu
}

// partial translates an interrupted dump for the engine.
func partial(err error) error {
	if errors.Is(err, nl.ErrPartial) {
		return fmt.Errorf("%w: %w", reconcile.ErrPartial, err)
	}
	return err
}

// macOf is zero for addresses of other kinds.
func macOf(addr []byte) overlay.MAC {
	if len(addr) != 6 {
		return overlay.MAC{}
	}
	return overlay.MAC(addr)
}

// addrOf is invalid for anything but an IPv4 or IPv6 address.
func addrOf(ip []byte) netip.Addr {
	addr, _ := netip.AddrFromSlice(ip)
	return addr.Unmap()
}
