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

// What the reader of the error would count as free, and is not, is told.
func TestExhaustedKeepsBack(t *testing.T) {
	wide := Range{Subnet: pfx("fd00::/32")}
	for want, s := range map[string]RangeSet{
		"all 2 are taken;": {{Subnet: pfx("10.1.0.0/24"), Start: addr("10.1.0.5"), End: addr("10.1.0.6")}},
		"all 2 that may be handed out are taken (4 kept back as": {{Subnet: pfx("10.1.0.0/29"), Exclude: pfxs("10.1.0.4/31", "10.1.0.6/32")}},
		"all 2 that may be handed out are taken (2 kept back as": {{Subnet: pfx("10.1.0.0/30")}, {Subnet: pfx("10.2.0.0/30"), Exclude: pfxs("10.2.0.0/32"), Gateway: addr("10.2.0.2")}},
		"all 18446744073709551615 are taken;":                    {wide},
		"all 9223372036854775808 are taken;":                     {{Subnet: pfx("fd00::/63"), Exclude: pfxs("fd00::/64", "fd00:0:0:1::/65")}},
	} {
		m := NewMemory(MemoryOptions{})
		p, err := NewPool(m, PoolOptions{}, s)
		require.NoError(t, err)
		require.NoError(t, m.View(t.Context(), func(tx ReadTx) error {
			assert.ErrorContains(t, p.exhausted(tx, 0, p.rested()), want)
			return nil
		}))
	}
	resting := &ExhaustedError{Set: 1, Size: 5, Resting: 2, Next: time.Unix(60, 0).UTC()}
	assert.ErrorContains(t, resting, "of 5, 3 are taken and 2 rest in quarantine, the first until 1970-01-01T00:01:00Z;")
}
