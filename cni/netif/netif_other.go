//go:build !linux

package netif

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
)

var errUnsupported = fmt.Errorf("network interfaces of containers need Linux: %w", errors.ErrUnsupported)

// Namespace cannot exist on this platform; see the Linux documentation.
type Namespace struct{}

// Current is not supported on this platform.
func Current() (*Namespace, error) { return nil, errUnsupported }

// Open is not supported on this platform.
func Open(string) (*Namespace, error) { return nil, errUnsupported }

// CheckVacant is not supported on this platform.
func CheckVacant(string, ...string) error { return errUnsupported }

// Verify is not supported on this platform.
func Verify(context.Context, string, string, []netip.Prefix, []netip.Prefix) error {
	return errUnsupported
}

// Close does nothing.
func (n *Namespace) Close() {}

// Lock is not supported on this platform.
func (n *Namespace) Lock(context.Context) (unlock func(), err error) { return nil, errUnsupported }

// TryLock is not supported on this platform.
func (n *Namespace) TryLock(string) (unlock func(), err error) { return nil, errUnsupported }

// Link is not supported on this platform.
func (n *Namespace) Link(string) (Link, error) { return Link{}, errUnsupported }

// LinkByIndex is not supported on this platform.
func (n *Namespace) LinkByIndex(int) (Link, error) { return Link{}, errUnsupported }

// Links is not supported on this platform.
func (n *Namespace) Links() ([]Link, error) { return nil, errUnsupported }

// DeleteLink is not supported on this platform.
func (n *Namespace) DeleteLink(string) error { return errUnsupported }

// SetUp is not supported on this platform.
func (n *Namespace) SetUp(string) error { return errUnsupported }

// SetAlias is not supported on this platform.
func (n *Namespace) SetAlias(string, string) error { return errUnsupported }

// WaitRunning is not supported on this platform.
func (n *Namespace) WaitRunning(context.Context, string) error { return errUnsupported }

// WaitAnswering is not supported on this platform.
func (n *Namespace) WaitAnswering(context.Context, string, ...netip.Addr) error {
	return errUnsupported
}

// EnsureBridge is not supported on this platform.
func (n *Namespace) EnsureBridge(Bridge) (link Link, created bool, err error) {
	return Link{}, false, errUnsupported
}

// DeleteBridge is not supported on this platform.
func (n *Namespace) DeleteBridge(string) (gone bool, err error) { return false, errUnsupported }

// Ports is not supported on this platform.
func (n *Namespace) Ports(string) ([]Link, error) { return nil, errUnsupported }

// Setting is not supported on this platform.
func (n *Namespace) Setting(string, string) (string, error) { return "", errUnsupported }

// SetSetting is not supported on this platform.
func (n *Namespace) SetSetting(string, string, string) (bool, error) { return false, errUnsupported }

// SpanningTree is not supported on this platform.
func (n *Namespace) SpanningTree(string) (bool, error) { return false, errUnsupported }

// SetPort is not supported on this platform.
func (n *Namespace) SetPort(string, string, PortOptions) error { return errUnsupported }

// Port is not supported on this platform.
func (n *Namespace) Port(string) (PortOptions, error) { return PortOptions{}, errUnsupported }

// CreateVeth is not supported on this platform.
func (n *Namespace) CreateVeth(Veth, *Namespace) (end, peerEnd Link, err error) {
	return Link{}, Link{}, errUnsupported
}

// AddAddresses is not supported on this platform.
func (n *Namespace) AddAddresses(string, ...netip.Prefix) error { return errUnsupported }

// Addresses is not supported on this platform.
func (n *Namespace) Addresses(string) ([]netip.Prefix, error) { return nil, errUnsupported }

// SetGateways is not supported on this platform.
func (n *Namespace) SetGateways(string, []netip.Prefix, bool) (AddressChange, error) {
	return AddressChange{}, errUnsupported
}

// RevertAddresses is not supported on this platform.
func (n *Namespace) RevertAddresses(string, AddressChange) error { return errUnsupported }

// EnableForwarding is not supported on this platform.
func (n *Namespace) EnableForwarding(context.Context, ...netip.Prefix) error {
	return errUnsupported
}

// AddRoutes is not supported on this platform.
func (n *Namespace) AddRoutes(string, ...Route) error { return errUnsupported }

// DeleteRoutes is not supported on this platform.
func (n *Namespace) DeleteRoutes(string, ...Route) error { return errUnsupported }

// Routes is not supported on this platform.
func (n *Namespace) Routes(string) ([]Route, error) { return nil, errUnsupported }

// Announce is not supported on this platform.
func (n *Namespace) Announce(string, ...netip.Addr) error { return errUnsupported }
