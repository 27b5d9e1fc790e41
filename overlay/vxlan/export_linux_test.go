package vxlan

import (
	"context"
	"errors"

	"github.com/cnikit/cnikit/internal/nl"
	"github.com/cnikit/cnikit/overlay"
	"github.com/cnikit/cnikit/reconcile"
)

// Writes is the number of requests that the backend has sent so far.
func (b *Backend) Writes() uint64 { return b.conn().Writes() }

func (b *Backend) conn() *nl.Conn {
	conn, err := b.kernel.connect()
	if err != nil {
		panic(err)
	}
	return conn
}

// ApplyBlindly applies everything that the topology asks for as if the last looks had
// shown nothing, as after incomplete dumps.
func (b *Backend) ApplyBlindly(ctx context.Context, t overlay.Topology) error {
	d, err := desire(b.config, *t.Self, t.Peers)
	return errors.Join(err,
		applyAll(ctx, deviceStore(b.kernel), d.devices), applyAll(ctx, sysctlStore(b.kernel), d.sysctls),
		applyAll(ctx, addressStore(b.kernel), d.addresses), applyAll(ctx, neighborStore(b.kernel), d.neighbors),
		applyAll(ctx, fdbStore(b.kernel), d.fdb), applyAll(ctx, routeStore(b.kernel), d.routes))
}

func applyAll[K comparable, V any](ctx context.Context, s reconcile.Store[K, V], want map[K]V) error {
	var errs []error
	for key, v := range want {
		errs = append(errs, s.Apply(ctx, key, v, nil))
	}
	return errors.Join(errs...)
}
