package vxlan

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"

	"github.com/cnikit/cnikit/overlay"
	"github.com/cnikit/cnikit/reconcile"
)

// Backend is a VXLAN network on one node. Its methods are safe for concurrent use,
// but for Close.
type Backend struct {
	config Config
	kernel *kernel

	devices   *reconcile.Table[string, device]
	addresses *reconcile.Table[netip.Prefix, address]
	sysctls   *reconcile.Table[string, string]
	neighbors *reconcile.Table[netip.Addr, neighbor]
	fdb       *reconcile.Table[fdbKey, fdbEntry]
	routes    *reconcile.Table[routeKey, route]

	mu   sync.Mutex
	self *overlay.Peer
}

var _ overlay.Backend = (*Backend)(nil)

// New checks the configuration and returns a backend. It does no I/O: the kernel is
// first asked when the engine runs. The tables belong to one engine.
func New(c Config) (*Backend, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("configure vxlan: %w", err)
	}
	c = c.withDefaults()
	b := &Backend{config: c, kernel: newKernel(c)}
	b.devices = reconcile.NewTable("vxlan device", deviceStore(b.kernel), reconcile.TableOptions[string, device]{
		Equal: equal[device], Format: format[string, device],
	})
	b.sysctls = reconcile.NewTable("vxlan sysctls", sysctlStore(b.kernel), reconcile.TableOptions[string, string]{
		Equal: equal[string],
	})
	device := []reconcile.Target{b.devices}
	b.addresses = reconcile.NewTable("vxlan addresses", addressStore(b.kernel), reconcile.TableOptions[netip.Prefix, address]{
		Phase: 1, After: device, Equal: equal[address], Format: format[netip.Prefix, address],
	})
	// A peer is built from its far end: a neighbour must not name a MAC address that no
	// forwarding entry has yet, nor a route a neighbour.
	b.fdb = reconcile.NewTable("vxlan forwarding entries", fdbStore(b.kernel), reconcile.TableOptions[fdbKey, fdbEntry]{
		Phase: 2, After: device, Equal: equal[fdbEntry], Format: format[fdbKey, fdbEntry],
	})
	b.neighbors = reconcile.NewTable("vxlan neighbours", neighborStore(b.kernel), reconcile.TableOptions[netip.Addr, neighbor]{
		Phase: 3, After: device, Equal: equal[neighbor], Format: format[netip.Addr, neighbor],
	})
	// Routes come after the addresses, but do not wait for all of them: that of a family
	// which the kernel refuses would hold up the other family.
	b.routes = reconcile.NewTable("vxlan routes", routeStore(b.kernel), reconcile.TableOptions[routeKey, route]{
		Phase: 4, After: device, Equal: equal[route], Format: format[routeKey, route],
	})
	return b, nil
}

func equal[V comparable](desired, observed V) bool { return desired == observed }

func format[K comparable, V fmt.Stringer](k K, v V) string { return fmt.Sprintf("%v: %v", k, v) }

// Name is "vxlan".
func (b *Backend) Name() string { return "vxlan" }

// Overhead is 50 bytes: outer IPv4, UDP, VXLAN and inner Ethernet header.
func (b *Backend) Overhead() int { return overhead }

// Targets returns all targets of the backend.
func (b *Backend) Targets() []reconcile.Target {
	return []reconcile.Target{b.devices, b.sysctls, b.addresses, b.fdb, b.neighbors, b.routes}
}

// Essential returns the targets without which no pod should be attached: the device.
// What can fail for one peer or one family alone is not among them: a host with IPv6
// switched off has an IPv4 network, and [reconcile.Engine.Status] says what is missing.
func (b *Backend) Essential() []reconcile.Target { return []reconcile.Target{b.devices} }

// SetTopology sets what the targets want; it returns at once and does no I/O. With a
// nil Self the last one stays in force; before the first one nothing is wanted and
// nothing deleted. Peers that cannot be used are left out and named in the error,
// the others take effect.
func (b *Backend) SetTopology(t overlay.Topology) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if t.Self != nil {
		if err := checkSelf(*t.Self); err != nil {
			return fmt.Errorf("set topology: own node %q: %w", t.Self.Name, err)
		}
		self := *t.Self
		self.PodCIDRs = slices.Clone(self.PodCIDRs)
		b.self = &self
	}
	if b.self == nil {
		return nil
	}
	want, err := desire(b.config, *b.self, t.Peers)
	b.kernel.want(want, *b.self)
	b.devices.Replace(want.devices)
	b.sysctls.Replace(want.sysctls)
	b.addresses.Replace(want.addresses)
	b.neighbors.Replace(want.neighbors)
	b.fdb.Replace(want.fdb)
	b.routes.Replace(want.routes)
	if err != nil {
		return fmt.Errorf("set topology: %w", err)
	}
	return nil
}

func checkSelf(self overlay.Peer) error {
	if !self.Underlay.Is4() {
		return &FieldError{Key: "underlay", Value: self.Underlay, Reason: "not IPv4, which this backend needs", Fix: "give the node an IPv4 address"}
	}
	if self.MAC == (overlay.MAC{}) || self.MAC[0]&1 != 0 {
		return &FieldError{Key: "mac", Value: self.MAC, Reason: "not a unicast address", Fix: "derive it by overlay.TunnelMAC"}
	}
	return nil
}

// MTU is the MTU of the device, and the largest that pods may have, in bytes: the
// configured one, or that of the underlay less [Backend.Overhead]. It is 0 while it
// is not known: before the first topology, while no link has the node's address, or
// when the configured one does not fit. It may ask the kernel.
func (b *Backend) MTU() int { return b.kernel.mtu() }

// Close releases the connection to the kernel, and leaves everything in the kernel as
// it is. The engine must not be running.
func (b *Backend) Close() error { return b.kernel.close() }
