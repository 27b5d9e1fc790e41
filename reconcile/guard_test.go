package reconcile_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/reconcile"
	"github.com/cnikit/cnikit/reconcile/reconciletest"
)

func TestSynced(t *testing.T) {
	subtests(t, rules{{"nothing is deleted before the first replace", func(t *testing.T) {
		f := reconciletest.NewFake(vals{"old": 1, "a": 9})
		tbl := reconcile.NewTable("one", f, opts{})
		r := start(t, quiet, tbl)
		tbl.Set("a", 1)
		tbl.Set("b", 2)
		pass(time.Second)
		tbl.Unset("b")
		r.Trigger()
		pass(time.Hour)
		require.False(t, tbl.Synced())
		require.False(t, r.target("one").Converged)
		require.ErrorContains(t, r.Status().Ready(0), "what is wanted")
		require.Equal(t, vals{"old": 1, "a": 1, "b": 2}, f.Vals())

		tbl.Replace(vals{"a": 1})
		pass(time.Second)
		require.True(t, tbl.Synced())
		require.True(t, r.target("one").Converged)
		require.Equal(t, vals{"a": 1}, f.Vals())
	}}, {"what waits for the other waits for a look after its first replace", func(t *testing.T) {
		f, g := reconciletest.NewFake(vals{"dev": 1}), reconciletest.NewFake(vals{"r": 1})
		f.Before(func(context.Context, call) error { time.Sleep(time.Second); return nil })
		device := reconcile.NewTable("device", f, opts{})
		routes := reconcile.NewTable("routes", g, opts{After: []reconcile.Target{device}})
		r := start(t, quiet, device, routes)
		pass(time.Second) // the look is done, and the next one may begin in a second
		routes.Replace(vals{"r": 1})
		device.Replace(vals{"dev": 1})
		pass(time.Second - time.Millisecond)
		require.Equal(t, []call{observe()}, f.Calls())
		require.False(t, r.target("device").Converged, "what was seen before says nothing")
		require.Empty(t, g.Calls())
		pass(time.Second + 5*time.Millisecond)
		require.Equal(t, []call{observe()}, f.Calls())
		require.Equal(t, []call{observe()}, g.Calls())
		require.True(t, r.target("routes").Converged)
	}}})
}

func TestGuard(t *testing.T) {
	subtests(t, rules{
		{"a surprising share is held until a second look agrees", func(t *testing.T) {
			f, tbl := one(many(40, 1))
			r := start(t, quiet, tbl)
			tbl.Replace(nil)
			pass(5 * time.Millisecond)
			require.Len(t, f.Vals(), 40)
			require.Len(t, r.target("one").Held, 40)
			require.Equal(t, 40, r.newRounds()[1].Held)
			require.NoError(t, r.Status().Ready(0), "too much is not too little")
			pass(9 * time.Second)
			r.Trigger() // a look, but too soon to be a second opinion
			pass(time.Second - 10*time.Millisecond)
			require.Len(t, f.Vals(), 40)
			pass(10 * time.Millisecond)
			require.Empty(t, f.Vals())
			require.Empty(t, r.target("one").Held)
		}},
		{"a source that recovers in time loses nothing", func(t *testing.T) {
			f, tbl := one(many(40, 1))
			r := start(t, quiet, tbl)
			f.Calls()
			tbl.Replace(nil)
			pass(9 * time.Second)
			tbl.Replace(many(35, 1))
			pass(5 * time.Millisecond)
			require.Len(t, f.Vals(), 35, "what is left is no surprise and goes at once")
			require.Len(t, writes(f.Calls()), 5)
			require.Empty(t, r.target("one").Held)
			pass(time.Hour)
			require.Len(t, f.Vals(), 35)
		}},
		{"keys that join later wait for a second look of their own", func(t *testing.T) {
			f, tbl := one(many(40, 1))
			start(t, quiet, tbl)
			tbl.Replace(vals{"k00000": 1, "k00001": 1})
			pass(5 * time.Second)
			tbl.Unset("k00000")
			pass(5*time.Second + 5*time.Millisecond)
			require.Equal(t, vals{"k00000": 1, "k00001": 1}, f.Vals(), "the others go after ten seconds")
			pass(5 * time.Second)
			require.Equal(t, vals{"k00001": 1}, f.Vals())
		}},
		{"the floor is always allowed", func(t *testing.T) {
			f, tbl := one(many(10, 1))
			start(t, quiet, tbl)
			tbl.Replace(nil)
			pass(5 * time.Millisecond)
			require.Empty(t, f.Vals())
		}},
		{"half is allowed", func(t *testing.T) {
			f, tbl := one(many(40, 1))
			start(t, quiet, tbl)
			tbl.Replace(many(20, 1))
			pass(5 * time.Millisecond)
			require.Len(t, f.Vals(), 20)
		}},
		{"changes one by one add up within a round", func(t *testing.T) {
			f, tbl := one(many(40, 1))
			start(t, quiet, tbl)
			for k := range many(40, 1) {
				tbl.Unset(k)
			}
			pass(5 * time.Millisecond)
			require.Len(t, f.Vals(), 40)
		}},
		{"time alone is no second look", func(t *testing.T) {
			f, tbl := one(many(40, 1))
			f.Before(func(_ context.Context, c call) error {
				if c == apply("slow") {
					time.Sleep(2 * time.Second) // over the moment at which the second look is due
				}
				return nil
			})
			start(t, quiet, tbl)
			f.Calls()
			tbl.Replace(nil)
			pass(9 * time.Second)
			tbl.Set("slow", 1)
			pass(time.Minute)
			require.Equal(t, []call{apply("slow"), observe()}, f.Calls()[:2])
			require.Equal(t, vals{"slow": 1}, f.Vals())
		}},
		{"a partial look confirms nothing", func(t *testing.T) {
			f, tbl := one(many(40, 1))
			start(t, quiet, tbl)
			tbl.Replace(nil)
			pass(time.Second)
			f.Hide("other")
			pass(time.Hour)
			require.Len(t, f.Vals(), 40)
		}},
		{"a partial look does not forget since when deletes are held", func(t *testing.T) {
			f, tbl := one(many(40, 1))
			r := start(t, quiet, tbl)
			tbl.Replace(nil)
			pass(5 * time.Second)
			f.Hide("other")
			r.Trigger()
			pass(time.Second)
			require.Len(t, r.target("one").Held, 40)
			f.Hide()
			pass(4*time.Second + 10*time.Millisecond)
			require.Empty(t, f.Vals())
		}},
		{"a key that was wanted again during partial looks is held anew", func(t *testing.T) {
			f, tbl := one(many(40, 1))
			r := start(t, quiet, tbl)
			tbl.Replace(nil)
			pass(5 * time.Second)
			f.Hide("other")
			r.Trigger()
			pass(time.Second)
			tbl.Set("k00000", 1)
			pass(time.Second)
			tbl.Unset("k00000")
			f.Hide()
			pass(4 * time.Second)
			require.Equal(t, vals{"k00000": 1}, f.Vals())
		}},
		{"share 1 and a negative floor/never hold, hold everything", func(t *testing.T) {
			f, tbl := one(many(40, 1))
			g := reconciletest.NewFake(vals{"a": 1})
			small := reconcile.NewTable("small", g, opts{})
			start(t, reconcile.Options{MaxDeleteShare: 1}, tbl)
			start(t, reconcile.Options{DeleteFloor: -1}, small)
			tbl.Replace(nil)
			small.Replace(nil)
			pass(5 * time.Millisecond)
			require.Empty(t, f.Vals())
			require.Len(t, g.Vals(), 1)
		}},
	})
}
