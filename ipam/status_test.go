package ipam

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tiring is a store whose user gives up while an address is looked for.
type tiring struct {
	*Memory
	stop context.CancelFunc
}

type tiringTx struct {
	Tx
	stop context.CancelFunc
}

func (s tiring) Update(ctx context.Context, fn func(Tx) error) error {
	return s.Memory.Update(ctx, func(tx Tx) error { return fn(tiringTx{tx, s.stop}) })
}

func (t tiringTx) NextFree(first, last netip.Addr, rested time.Time) (netip.Addr, error) {
	t.stop()
	return t.Tx.NextFree(first, last, rested)
}

// A search ends with its context.
func TestPoolSearchEnds(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	m := NewMemory(MemoryOptions{})
	p, err := NewPool(tiring{m, stop}, PoolOptions{}, RangeSet{{Subnet: pfx("10.1.0.0/24")}})
	require.NoError(t, err)
	_, err = p.Allocate(ctx, owner("a"), Options{})
	require.ErrorIs(t, err, context.Canceled)
	assert.Empty(t, m.String())
}
