package reconcile_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/reconcile"
	"github.com/cnikit/cnikit/reconcile/reconciletest"
)

// BenchmarkEngine compares the cost of one changed key with that of a full look that finds nothing, by number of keys. The
// store is a map in memory, so that all of it is the engine's own, but for the copy of the map that a look takes.
func BenchmarkEngine(b *testing.B) {
	for _, n := range []int{100, 1_000, 10_000} {
		f := reconciletest.NewFake(many(n, 1))
		tbl := reconcile.NewTable("bench", f, opts{Equal: func(a, b int) bool { return a == b }})
		tbl.Replace(many(n, 1))
		rounds := make(chan reconcile.Round)
		e, err := reconcile.New(reconcile.Options{
			Targets: []reconcile.Target{tbl}, Resync: -1, Coalesce: -1, OnRound: func(r reconcile.Round) { rounds <- r },
		})
		require.NoError(b, err)
		ctx, cancel := context.WithCancel(b.Context())
		done := make(chan error)
		go func() { done <- e.Run(ctx) }()
		<-rounds

		b.Run(fmt.Sprintf("keys=%d/change", n), func(b *testing.B) {
			b.ReportAllocs()
			for v := 2; b.Loop(); v++ {
				tbl.Set("k00007", v)
				require.Equal(b, 1, (<-rounds).Applied)
			}
		})
		f.Calls()
		b.Run(fmt.Sprintf("keys=%d/look", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				e.Trigger()
				require.Equal(b, 0, (<-rounds).Applied)
			}
		})
		b.Run(fmt.Sprintf("keys=%d/plan", n), func(b *testing.B) {
			for b.Loop() {
				_, err := e.Plan(ctx)
				require.NoError(b, err)
			}
		})
		cancel()
		require.NoError(b, <-done)
	}
}
