//go:build !linux

package vxlan

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"github.com/cnikit/cnikit/overlay"
	"github.com/cnikit/cnikit/reconcile"
)

var errUnsupported = fmt.Errorf("vxlan needs Linux: %w", errors.ErrUnsupported)

type kernel struct{}

func newKernel(Config) *kernel { return &kernel{} }

func (k *kernel) want(desired, overlay.Peer) {}
func (k *kernel) mtu() int                   { return 0 }
func (k *kernel) strictFilters() []string    { return nil }
func (k *kernel) close() error               { return nil }

// unsupported is the store of everything on this platform.
type unsupported[K comparable, V any] struct{}

func (unsupported[K, V]) Observe(context.Context) (map[K]V, error) { return nil, errUnsupported }
func (unsupported[K, V]) Apply(context.Context, K, V, *V) error    { return errUnsupported }
func (unsupported[K, V]) Delete(context.Context, K, V) error       { return errUnsupported }

func deviceStore(*kernel) reconcile.Store[string, device] { return unsupported[string, device]{} }
func sysctlStore(*kernel) reconcile.Store[string, string] { return unsupported[string, string]{} }
func addressStore(*kernel) reconcile.Store[netip.Prefix, address] {
	return unsupported[netip.Prefix, address]{}
}
func neighborStore(*kernel) reconcile.Store[netip.Addr, neighbor] {
	return unsupported[netip.Addr, neighbor]{}
}
func fdbStore(*kernel) reconcile.Store[fdbKey, fdbEntry]  { return unsupported[fdbKey, fdbEntry]{} }
func routeStore(*kernel) reconcile.Store[routeKey, route] { return unsupported[routeKey, route]{} }

// Watch is not supported on this platform.
func (b *Backend) Watch(context.Context, func(...reconcile.Target)) error { return errUnsupported }

// Cleanup is not supported on this platform.
func (b *Backend) Cleanup(context.Context) error { return errUnsupported }
