package reconcile_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/reconcile"
	"github.com/cnikit/cnikit/reconcile/reconciletest"
)

// subtests runs each function in a synctest bubble of its own.
func subtests(t *testing.T, tests []struct {
	rule string
	run  func(t *testing.T)
}) {
	for _, tc := range tests {
		t.Run(tc.rule, func(t *testing.T) { synctest.Test(t, tc.run) })
	}
}

type rules = []struct {
	rule string
	run  func(t *testing.T)
}

// quiet is without resync, so that only what a test does makes rounds.
var quiet = reconcile.Options{Resync: -1}

func TestChanges(t *testing.T) {
	subtests(t, rules{
		{"set/applies that key without a look", func(t *testing.T) {
			f, tbl := one(vals{"a": 1, "b": 2})
			start(t, quiet, tbl)
			f.Calls()
			tbl.Set("b", 3)
			tbl.Set("c", 4)
			pass(time.Second)
			require.Equal(t, []call{apply("b"), apply("c")}, f.Calls())
			require.Equal(t, vals{"a": 1, "b": 3, "c": 4}, f.Vals())
		}},
		{"unset/deletes that key without a look", func(t *testing.T) {
			f, tbl := one(vals{"a": 1, "b": 2})
			start(t, quiet, tbl)
			f.Calls()
			tbl.Unset("b")
			tbl.Unset("unknown")
			pass(time.Second)
			require.Equal(t, []call{remove("b")}, f.Calls())
		}},
		{"set/of a key that was deleted creates it again", func(t *testing.T) {
			f, tbl := one(vals{"a": 1})
			start(t, quiet, tbl)
			tbl.Unset("a")
			pass(time.Second)
			require.Empty(t, f.Vals())
			tbl.Set("a", 1)
			pass(time.Second)
			require.Equal(t, vals{"a": 1}, f.Vals())
		}},
		{"replace/reconciles the keys that differ", func(t *testing.T) {
			f, tbl := one(vals{"a": 1, "b": 2, "c": 3})
			start(t, quiet, tbl)
			f.Calls()
			tbl.Replace(vals{"a": 1, "b": 9, "d": 4})
			pass(time.Second)
			require.Equal(t, []call{apply("b"), apply("d"), remove("c")}, f.Calls())
		}},
		{"replace/copies the map", func(t *testing.T) {
			f, tbl := one(nil)
			start(t, quiet, tbl)
			m := vals{"a": 1}
			tbl.Replace(m)
			m["b"] = 2
			pass(time.Second)
			tbl.Replace(nil)
			tbl.Set("c", 3)
			pass(time.Second)
			require.Equal(t, vals{"c": 3}, f.Vals())
		}},
		{"equal values/write nothing and make no round", func(t *testing.T) {
			f, tbl := one(vals{"a": 1})
			r := start(t, quiet, tbl)
			pass(time.Second)
			f.Calls()
			r.newRounds()
			tbl.Set("a", 1)
			tbl.Replace(vals{"a": 1})
			pass(time.Second)
			require.Empty(t, f.Calls())
			require.Empty(t, r.newRounds())
		}},
		{"the last value counts/a key that went back is not written", func(t *testing.T) {
			f, tbl := one(vals{"a": 1})
			start(t, quiet, tbl)
			f.Calls()
			tbl.Set("a", 2)
			tbl.Unset("a")
			tbl.Set("a", 1)
			pass(time.Second)
			require.Empty(t, f.Calls())
		}},
		{"coalescing/changes within the delay make one round", func(t *testing.T) {
			f, tbl := one(nil)
			r := start(t, quiet, tbl)
			pass(time.Second)
			f.Calls()
			r.newRounds()
			tbl.Set("a", 1)
			pass(4 * time.Millisecond)
			tbl.Set("b", 2)
			require.Empty(t, f.Calls())
			pass(time.Millisecond)
			require.Equal(t, []call{apply("a"), apply("b")}, f.Calls())
			require.Len(t, r.newRounds(), 1)
		}},
		{"freshness/what changes during a round is applied as it is by then", func(t *testing.T) {
			f, tbl := one(vals{"z": 0})
			f.Before(func(_ context.Context, c call) error {
				if c == apply("a") {
					tbl.Set("b", 3)
					tbl.Set("z", 1) // to be deleted by this round, wanted again before its turn
					tbl.Unset("c")
				}
				return nil
			})
			start(t, quiet, tbl)
			f.Calls()
			tbl.Replace(vals{"a": 1, "b": 2, "c": 3})
			pass(time.Second)
			require.Equal(t, []call{apply("a"), apply("b"), apply("z")}, f.Calls())
			require.Equal(t, vals{"a": 1, "b": 3, "z": 1}, f.Vals())
		}},
	})
}

// blind is a fake that sees wrong values at its first look, during which something happens.
type blind struct {
	*fake
	during *func()
}

func (b blind) Observe(ctx context.Context) (vals, error) {
	seen, err := b.fake.Observe(ctx)
	if do := *b.during; do != nil {
		*b.during = nil
		do()
		for k := range seen {
			seen[k]--
		}
	}
	return seen, err
}

func TestLooks(t *testing.T) {
	subtests(t, rules{
		{"start/one look, and no write when equal", func(t *testing.T) {
			f, tbl := one(many(100, 1))
			r := start(t, quiet, tbl)
			pass(time.Hour)
			require.Equal(t, []call{observe()}, f.Calls())
			rounds := r.newRounds()
			require.Len(t, rounds, 1)
			require.True(t, rounds[0].Full)
			require.True(t, r.target("one").Converged)
		}},
		{"first replace/is compared with a look of its own, also when it comes during one", func(t *testing.T) {
			f := reconciletest.NewFake(vals{"a": 1})
			before := func() {}
			tbl := reconcile.NewTable("one", blind{f, &before}, opts{})
			start(t, quiet, tbl)
			tbl.Replace(vals{"a": 1})
			pass(time.Second)
			require.Equal(t, []call{observe(), observe()}, f.Calls())

			var meanwhile *table
			during := func() { meanwhile.Replace(vals{"a": 1}) }
			meanwhile = reconcile.NewTable("two", blind{f, &during}, opts{})
			r := start(t, quiet, meanwhile)
			pass(time.Second)
			require.Equal(t, []call{observe(), observe()}, f.Calls())
			require.True(t, r.target("two").Converged)
		}},
		{"trigger/repairs whatever differs", func(t *testing.T) {
			f, tbl := one(vals{"a": 1, "b": 2, "c": 3})
			r := start(t, quiet, tbl)
			f.Put("a", 9)
			f.Remove("b")
			f.Put("stray", 1)
			f.Calls()
			r.Trigger()
			pass(time.Second)
			require.Equal(t, []call{observe(), apply("a"), apply("b"), remove("stray")}, f.Calls())
		}},
		{"trigger/looks at the named target only", func(t *testing.T) {
			f, tbl := one(nil)
			g := reconciletest.NewFake[string, int](nil)
			other := reconcile.NewTable("other", g, opts{})
			r := start(t, quiet, tbl, other)
			f.Calls()
			g.Calls()
			r.newRounds()
			r.Trigger(other)
			pass(time.Second)
			require.Empty(t, f.Calls())
			require.Equal(t, []call{observe()}, g.Calls())
			require.False(t, r.newRounds()[0].Full)
		}},
		{"resync/repairs without a cause within 110 percent of the interval", func(t *testing.T) {
			f, tbl := one(vals{"a": 1})
			start(t, reconcile.Options{Resync: time.Minute}, tbl)
			for range 5 {
				f.Remove("a")
				pass(66*time.Second + 5*time.Millisecond)
				require.Equal(t, vals{"a": 1}, f.Vals())
			}
			require.LessOrEqual(t, len(f.Calls())-5, 1+6, "looks in five and a half minutes")
		}},
		{"resync/negative means never", func(t *testing.T) {
			f, tbl := one(vals{"a": 1})
			start(t, quiet, tbl)
			f.Remove("a")
			pass(24 * time.Hour)
			require.Empty(t, f.Vals())
		}},
		{"cost/looking takes at most half of the time", func(t *testing.T) {
			f, tbl := one(nil)
			f.Before(func(context.Context, call) error { time.Sleep(100 * time.Millisecond); return nil })
			r := start(t, quiet, tbl)
			for range 1000 {
				r.Trigger()
				pass(10 * time.Millisecond)
			}
			require.InDelta(t, 50, len(f.Calls()), 3)
		}},
		{"cost/a change does not wait for the end of such a pause", func(t *testing.T) {
			f, tbl := one(nil)
			f.Before(func(_ context.Context, c call) error {
				if c.Op == "observe" {
					time.Sleep(time.Second)
				}
				return nil
			})
			r := start(t, quiet, tbl)
			pass(time.Second)
			r.Trigger()
			tbl.Set("a", 1)
			pass(5 * time.Millisecond)
			require.Equal(t, vals{"a": 1}, f.Vals())
			f.Calls()
			pass(2 * time.Second)
			require.Equal(t, []call{observe()}, f.Calls())
			require.True(t, r.target("one").Converged)
		}},
	})
}

func TestOrder(t *testing.T) {
	subtests(t, rules{
		{"phases/applies ascend, deletes come last and descend", func(t *testing.T) {
			var log []string
			mk := func(name string, phase int, after ...reconcile.Target) *table {
				f := reconciletest.NewFake(vals{"old": 1})
				f.Before(func(_ context.Context, c call) error {
					log = append(log, name+" "+c.Op)
					return nil
				})
				tbl := reconcile.NewTable(name, f, opts{Phase: phase, After: after})
				tbl.Replace(vals{"new": 1})
				return tbl
			}
			two, one := mk("two", 2), mk("one", 1)
			start(t, quiet, two, mk("one-after", 1, one), one)
			pass(time.Second)
			require.Equal(t, []string{
				"one observe", "one apply", "one-after observe", "one-after apply", "two observe", "two apply",
				"two delete", "one-after delete", "one delete",
				"one-after observe", // once more, as the one it waits for was written to
			}, log)
		}},
		{"after/waits as a whole until the other converged", func(t *testing.T) {
			f, device := one(vals{"dev": 1})
			f.Remove("dev")
			f.Fail("dev", errBad)
			g := reconciletest.NewFake(vals{"stray": 1})
			routes := reconcile.NewTable("routes", g, opts{Phase: 1, After: []reconcile.Target{device}})
			routes.Replace(vals{"r": 1})
			last := reconcile.NewTable("last", reconciletest.NewFake[string, int](nil), opts{After: []reconcile.Target{routes}, Phase: 1})
			last.Replace(nil)
			r := start(t, quiet, last, routes, device)
			pass(time.Minute)
			require.Empty(t, g.Calls())
			require.Equal(t, []string{"one"}, r.target("routes").Waiting)
			require.Equal(t, []string{"routes"}, r.target("last").Waiting)
			require.False(t, r.target("routes").Converged)

			f.Fail("dev", nil)
			r.newRounds()
			pass(30 * time.Second)
			require.Equal(t, []call{observe(), apply("r"), remove("stray")}, g.Calls())
			require.True(t, r.target("last").Converged)
			rounds := r.newRounds()
			require.Len(t, rounds, 2)
			require.Equal(t, 3, rounds[0].Looks, "the round that converges the one takes the others along")
			require.Equal(t, 1, rounds[1].Looks, "the last looks again after the delete of what it waits for")
		}},
		{"after/looks afresh when the other has come back", func(t *testing.T) {
			f, device := one(vals{"dev": 1})
			g := reconciletest.NewFake(vals{"r": 1})
			routes := reconcile.NewTable("routes", g, opts{Phase: 1, After: []reconcile.Target{device}})
			routes.Replace(vals{"r": 1})
			r := start(t, quiet, device, routes)
			require.NoError(t, r.Status().Ready(0))
			f.Remove("dev")
			f.Fail("dev", errBad)
			g.Remove("r") // as the routes of a device go with it
			r.Trigger(device)
			pass(time.Second)
			require.False(t, r.target("routes").Converged)
			require.ErrorContains(t, r.Status().Ready(0), "bad key")
			f.Fail("dev", nil)
			r.Trigger(device)
			pass(time.Second)
			require.Equal(t, vals{"r": 1}, g.Vals())
			require.NoError(t, r.Status().Ready(0))
		}},
		{"after/looks afresh in the round in which the other was written to", func(t *testing.T) {
			f, device := one(vals{"dev": 1, "old": 1})
			g := reconciletest.NewFake(vals{"r": 1})
			routes := reconcile.NewTable("routes", g, opts{Phase: 1, After: []reconcile.Target{device}})
			routes.Replace(vals{"r": 1})
			f.Before(func(_ context.Context, c call) error {
				if c.Op != "observe" {
					g.Remove("r") // as the routes of a device go when it is made anew
				}
				return nil
			})
			start(t, quiet, device, routes)
			device.Set("dev", 2)
			pass(5 * time.Millisecond)
			require.Equal(t, vals{"r": 1}, g.Vals())
			device.Unset("old") // deleted after the routes had their turn; the next round follows at once
			pass(5 * time.Millisecond)
			require.Equal(t, vals{"r": 1}, g.Vals())
			g.Calls()
			routes.Set("s", 2)
			pass(time.Hour)
			require.Equal(t, []call{apply("s")}, g.Calls(), "once is enough")
		}},
		{"after/looks before its first write", func(t *testing.T) {
			_, device := one(nil)
			device2 := reconcile.NewTable("device2", reconciletest.NewFake[string, int](nil), opts{})
			g := reconciletest.NewFake(vals{"a": 1})
			tbl := reconcile.NewTable("last", g, opts{After: []reconcile.Target{device, device2}})
			tbl.Set("a", 1)
			start(t, quiet, device, device2, tbl)
			device2.Replace(nil)
			pass(time.Second)
			require.Equal(t, []call{observe()}, g.Calls())
		}},
		{"after/waits for a table that was never synced", func(t *testing.T) {
			_, first := one(nil)
			unsynced := reconcile.NewTable("unsynced", reconciletest.NewFake[string, int](nil), opts{})
			g := reconciletest.NewFake[string, int](nil)
			tbl := reconcile.NewTable("last", g, opts{After: []reconcile.Target{first, unsynced}})
			tbl.Replace(vals{"a": 1})
			start(t, quiet, first, unsynced, tbl)
			pass(time.Minute)
			require.Empty(t, g.Calls())
			unsynced.Replace(nil)
			pass(time.Second)
			require.Equal(t, vals{"a": 1}, g.Vals())
		}},
		{"after/deletes that fail do not hold up others", func(t *testing.T) {
			f := reconciletest.NewFake(vals{"stray": 1})
			f.Fail("stray", errBad)
			first := reconcile.NewTable("first", f, opts{})
			first.Replace(nil)
			g := reconciletest.NewFake[string, int](nil)
			second := reconcile.NewTable("second", g, opts{After: []reconcile.Target{first}})
			second.Replace(vals{"a": 1})
			r := start(t, quiet, first, second)
			pass(time.Minute)
			second.Set("b", 2)
			pass(time.Second)
			require.Equal(t, vals{"a": 1, "b": 2}, g.Vals())
			require.Len(t, r.target("first").Failing, 1)
			require.NoError(t, r.Status().Ready(0))
		}},
	})
}
