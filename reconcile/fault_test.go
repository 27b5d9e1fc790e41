package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/reconcile"
	"github.com/cnikit/cnikit/reconcile/reconciletest"
)

// times returns a hook that notes when an operation on key was called.
func times(key string) (func(context.Context, call) error, *[]time.Time) {
	var at []time.Time
	return func(_ context.Context, c call) error {
		if c.Op != "observe" && c.Key == key {
			at = append(at, time.Now())
		}
		return nil
	}, &at
}

// requireBackoff checks that the gaps between tries double from least to most, less up to half of each for jitter.
func requireBackoff(t *testing.T, at []time.Time, least, most time.Duration) {
	t.Helper()
	require.Greater(t, len(at), 2)
	for i, d := 1, least; i < len(at); i, d = i+1, min(2*d, most) {
		gap := at[i].Sub(at[i-1])
		require.GreaterOrEqual(t, gap, d/2, "gap %d", i)
		require.LessOrEqual(t, gap, d, "gap %d", i)
	}
}

func TestBackoff(t *testing.T) {
	subtests(t, rules{
		{"key/tried again with doubling delays up to the limit, others go on", func(t *testing.T) {
			f, tbl := one(nil)
			hook, at := times("bad")
			f.Before(hook)
			f.Fail("bad", errBad)
			r := start(t, quiet, tbl)
			tbl.Set("bad", 1)
			for i := range 600 {
				tbl.Set("good", i)
				pass(time.Second)
				require.Equal(t, vals{"good": i}, f.Vals())
			}
			requireBackoff(t, *at, 100*time.Millisecond, 30*time.Second)
			failing := r.target("one").Failing
			require.Len(t, failing, 1)
			require.Equal(t, "bad", failing[0].Key)
			require.Equal(t, len(*at), failing[0].Tries)
			require.ErrorIs(t, failing[0], errBad)
			require.ErrorIs(t, r.Status().Ready(0), errBad)
		}},
		{"key/the limit is kept", func(t *testing.T) {
			f, tbl := one(nil)
			hook, at := times("bad")
			f.Before(hook)
			f.Fail("bad", errBad)
			o := quiet
			o.BackoffMin, o.BackoffMax = time.Second, 5*time.Second
			start(t, o, tbl)
			tbl.Set("bad", 1)
			pass(time.Hour)
			require.Greater(t, len(*at), 3600/5)
			requireBackoff(t, *at, time.Second, 5*time.Second)
		}},
		{"key/a new value is tried at once", func(t *testing.T) {
			f, tbl := one(nil)
			f.Fail("bad", errBad)
			start(t, quiet, tbl)
			tbl.Set("bad", 1)
			pass(time.Hour)
			f.Fail("bad", nil)
			tbl.Set("bad", 2)
			pass(5 * time.Millisecond)
			require.Equal(t, vals{"bad": 2}, f.Vals())
		}},
		{"key/no longer wanted, no longer tried", func(t *testing.T) {
			f, tbl := one(nil)
			f.Fail("bad", errBad)
			r := start(t, quiet, tbl)
			tbl.Set("bad", 1)
			pass(time.Hour)
			tbl.Unset("bad")
			pass(time.Second)
			f.Calls()
			pass(time.Hour)
			require.Empty(t, f.Calls())
			require.Empty(t, r.target("one").Failing)
			require.True(t, r.target("one").Converged)
		}},
		{"key/no longer wanted, and what the failure left is deleted", func(t *testing.T) {
			f, tbl := one(nil)
			f.Before(func(_ context.Context, c call) error {
				if c == apply("half") {
					f.Put("half", 1) // done in part, and an error
					return errBad
				}
				return nil
			})
			start(t, quiet, tbl)
			tbl.Set("half", 2)
			pass(10 * time.Millisecond)
			tbl.Unset("half")
			pass(10 * time.Millisecond)
			require.Empty(t, f.Vals())
		}},
		{"key/a trigger brings it forward, a storm of them no faster than ten times the least delay", func(t *testing.T) {
			f, tbl := one(nil)
			hook, at := times("bad")
			f.Before(hook)
			f.Fail("bad", errBad)
			r := start(t, quiet, tbl)
			tbl.Set("bad", 1)
			pass(time.Hour)
			before := len(*at)
			for range 1000 {
				r.Trigger()
				pass(10 * time.Millisecond)
			}
			require.InDelta(t, 10, len(*at)-before, 1)
		}},
		{"key/once it succeeded its past does not count against it", func(t *testing.T) {
			f, tbl := one(nil)
			f.Fail("bad", errBad)
			r := start(t, quiet, tbl)
			tbl.Set("bad", 1)
			pass(time.Hour)
			f.Fail("bad", nil)
			r.Trigger()
			pass(time.Second)
			for range 3 {
				require.Equal(t, vals{"bad": 1}, f.Vals())
				f.Remove("bad")
				r.Trigger()
				pass(5 * time.Millisecond)
			}
		}},
		{"key/seen again before it is tried again", func(t *testing.T) {
			f, tbl := one(nil)
			f.Before(func(_ context.Context, c call) error {
				if c == apply("a") {
					f.Put("a", 1) // done, and yet an error
					return errBad
				}
				return nil
			})
			r := start(t, quiet, tbl)
			f.Calls()
			tbl.Set("a", 1)
			pass(time.Hour)
			require.Equal(t, []call{apply("a"), observe()}, f.Calls())
			require.True(t, r.target("one").Converged)
			require.Empty(t, r.target("one").Failing)
		}},
		{"key/what fails together is retried together", func(t *testing.T) {
			f, tbl := one(nil)
			for k := range many(1000, 1) {
				f.Fail(k, errBad)
			}
			start(t, quiet, tbl)
			tbl.Replace(many(1000, 1))
			pass(time.Hour)
			looks := 0
			for _, c := range f.Calls() {
				if c == observe() {
					looks++
				}
			}
			require.Less(t, looks, 3600/15+20)
		}},
		{"delete/fails, is retried", func(t *testing.T) {
			f, tbl := one(vals{"bad": 1, "good": 2})
			f.Fail("bad", errBad)
			r := start(t, quiet, tbl)
			tbl.Replace(nil)
			pass(time.Second)
			require.Equal(t, vals{"bad": 1}, f.Vals())
			require.Equal(t, "bad", r.target("one").Failing[0].Key)
			f.Fail("bad", nil)
			pass(30 * time.Second)
			require.Empty(t, f.Vals())
		}},
		{"observation/fails, the target is left alone and tried again, others go on", func(t *testing.T) {
			f, tbl := one(vals{"a": 1})
			f.Remove("a")
			var at []time.Time
			down := true
			f.Before(func(_ context.Context, c call) error {
				at = append(at, time.Now())
				if down {
					return errBad
				}
				return nil
			})
			g := reconciletest.NewFake[string, int](nil)
			other := reconcile.NewTable("other", g, opts{})
			r := start(t, quiet, tbl, other)
			tbl.Set("b", 2)
			other.Set("x", 1)
			pass(time.Hour)
			require.Empty(t, writes(f.Calls()))
			requireBackoff(t, at, 100*time.Millisecond, 30*time.Second)
			require.Equal(t, vals{"x": 1}, g.Vals())
			require.ErrorIs(t, r.target("one").Failing[0], errBad)
			require.Empty(t, r.target("one").Failing[0].Key)
			require.False(t, r.target("one").Converged)

			down = false
			r.Trigger()
			pass(time.Second)
			require.Equal(t, vals{"a": 1, "b": 2}, f.Vals())
			require.Empty(t, r.target("one").Failing)
		}},
		{"observation/fails after it worked, and nothing is done on old knowledge", func(t *testing.T) {
			f, tbl := one(vals{"a": 1})
			r := start(t, quiet, tbl)
			f.Before(func(_ context.Context, c call) error { return errBad })
			r.Trigger()
			pass(time.Second)
			f.Calls()
			tbl.Set("b", 2)
			tbl.Unset("a")
			pass(time.Minute)
			require.Empty(t, writes(f.Calls()))
		}},
	})
}

func TestContested(t *testing.T) {
	fight := func(t *testing.T, wanted vals, undo func(f *fake, c call)) {
		f, tbl := one(wanted)
		var r *rig
		f.Before(func(_ context.Context, c call) error {
			if c.Op != "observe" {
				time.AfterFunc(time.Millisecond, func() { undo(f, c); r.Trigger() }) // when it is done
			}
			return nil
		})
		r = start(t, quiet, tbl)
		undo(f, apply("a"))
		r.Trigger()
		pass(6 * time.Millisecond)
		require.Len(t, writes(f.Calls()), 1, "the first repair does not wait")
		pass(time.Hour)
		require.Less(t, len(writes(f.Calls())), 3600/15+20)
		require.True(t, slices.ContainsFunc(r.newRounds(), func(round reconcile.Round) bool {
			return len(round.Failed) > 0 && errors.Is(round.Failed[0], reconcile.ErrContested)
		}))
		f.Before(nil)
		pass(time.Minute)
		require.Empty(t, r.target("one").Failing)
	}
	subtests(t, rules{
		{"another party changes it back/backs off, says so, recovers", func(t *testing.T) {
			fight(t, vals{"a": 1}, func(f *fake, _ call) { f.Put("a", 2) })
		}},
		{"another party removes it/likewise", func(t *testing.T) {
			fight(t, vals{"a": 1}, func(f *fake, _ call) { f.Remove("a") })
		}},
		{"another party puts back what is deleted/likewise", func(t *testing.T) {
			fight(t, nil, func(f *fake, _ call) { f.Put("a", 2) })
		}},
		{"drift/is repaired at once, also a few times in a row", func(t *testing.T) {
			f, tbl := one(vals{"a": 1})
			r := start(t, quiet, tbl)
			for range 100 {
				for range 3 {
					f.Remove("a")
					r.Trigger()
					pass(5 * time.Millisecond)
					require.Equal(t, vals{"a": 1}, f.Vals())
				}
				pass(time.Second)
				r.Trigger()
				pass(5 * time.Millisecond)
			}
		}},
	})
}

func TestPanic(t *testing.T) {
	for _, op := range []string{"observe", "apply", "delete"} {
		subtests(t, rules{{op + "/becomes an error of the target", func(t *testing.T) {
			f, tbl := one(vals{"a": 1})
			f.Put("stray", 1)
			f.Put("a", 2)
			f.Before(func(_ context.Context, c call) error {
				if c.Op == op {
					panic(fmt.Errorf("boom: %w", errBad))
				}
				return nil
			})
			g := reconciletest.NewFake[string, int](nil)
			other := reconcile.NewTable("other", g, opts{Phase: 1})
			other.Replace(vals{"x": 1})
			r := start(t, quiet, tbl, other)
			pass(time.Second)
			require.Equal(t, vals{"x": 1}, g.Vals())
			require.ErrorContains(t, r.target("one").Failing[0], "panic: boom")
			require.ErrorIs(t, r.target("one").Failing[0], errBad)
			f.Before(nil)
			pass(time.Minute)
			require.Equal(t, vals{"a": 1}, f.Vals())
		}}})
	}
}

func TestTimeout(t *testing.T) {
	subtests(t, rules{{"a store that hangs gets its context ended and is retried", func(t *testing.T) {
		f, tbl := one(nil)
		f.Before(func(ctx context.Context, c call) error {
			if c == apply("slow") {
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		})
		r := start(t, quiet, tbl)
		tbl.Set("slow", 1)
		tbl.Set("z", 1)
		pass(10*time.Second + 5*time.Millisecond)
		require.Equal(t, vals{"z": 1}, f.Vals())
		require.ErrorIs(t, r.target("one").Failing[0], context.DeadlineExceeded)
	}}})
}

func TestPartial(t *testing.T) {
	subtests(t, rules{
		{"only adds, then looks again", func(t *testing.T) {
			f := reconciletest.NewFake(vals{"hidden": 1, "differs": 9, "stray": 1})
			f.Hide("hidden")
			tbl := reconcile.NewTable("one", f, opts{})
			tbl.Replace(vals{"hidden": 1, "differs": 2, "missing": 3})
			r := start(t, quiet, tbl)
			require.Equal(t, []call{observe(), apply("hidden"), apply("missing")}, f.Calls())
			require.False(t, r.target("one").Converged)
			require.ErrorIs(t, r.target("one").Failing[0], reconcile.ErrPartial)
			f.Hide()
			pass(time.Second)
			require.Equal(t, []call{observe(), apply("differs"), remove("stray")}, f.Calls())
			require.True(t, r.target("one").Converged)
		}},
		{"repeats at least once a second as long as it lasts", func(t *testing.T) {
			f, tbl := one(nil)
			f.Hide("other")
			start(t, quiet, tbl)
			pass(time.Hour)
			require.InDelta(t, 3600, len(f.Calls()), 10)
			f.Hide()
			f.Put("stray", 1)
			pass(time.Second)
			require.Empty(t, f.Vals())
		}},
		{"a new key is added at once, however long it lasts", func(t *testing.T) {
			f, tbl := one(nil)
			f.Hide("other")
			start(t, quiet, tbl)
			pass(time.Hour + 300*time.Millisecond)
			f.Calls()
			tbl.Set("new", 1)
			pass(5 * time.Millisecond)
			require.Equal(t, []call{apply("new")}, f.Calls())
		}},
		{"the first replace waits for a look of its own all the same", func(t *testing.T) {
			f := reconciletest.NewFake(vals{"a": 1})
			f.Hide("a")
			tbl := reconcile.NewTable("one", f, opts{})
			start(t, quiet, tbl)
			pass(10*time.Minute + 300*time.Millisecond)
			f.Hide()
			tbl.Replace(vals{"a": 1})
			pass(time.Minute)
			require.Empty(t, writes(f.Calls()))
		}},
	})
}

func TestEnd(t *testing.T) {
	subtests(t, rules{
		{"promptly, with the call under way, and the rest is left", func(t *testing.T) {
			f, tbl := one(nil)
			tbl.Replace(many(100, 1))
			f.Before(func(ctx context.Context, c call) error {
				if c == apply("k00005") {
					<-ctx.Done()
					return fmt.Errorf("set: %w", ctx.Err())
				}
				return nil
			})
			e, err := reconcile.New(reconcile.Options{Targets: []reconcile.Target{tbl}})
			require.NoError(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			began := time.Now()
			require.NoError(t, e.Run(ctx))
			require.Equal(t, time.Second, time.Since(began))
			require.Len(t, f.Vals(), 5)
			require.Empty(t, e.Status().Targets[0].Failing)
			require.Error(t, e.Status().Ready(0), "not running")

			f.Before(nil)
			ctx, cancel = context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			require.NoError(t, e.Run(ctx), "it can run again")
			require.Equal(t, many(100, 1), f.Vals())
		}},
		{"an observation under way is no failure", func(t *testing.T) {
			f, tbl := one(nil)
			f.Before(func(ctx context.Context, _ call) error { <-ctx.Done(); return ctx.Err() })
			e, err := reconcile.New(reconcile.Options{Targets: []reconcile.Target{tbl}})
			require.NoError(t, err)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			require.NoError(t, e.Run(ctx))
			require.Empty(t, e.Status().Targets[0].Failing)
		}},
		{"an idle engine too", func(t *testing.T) {
			_, tbl := one(nil)
			e, err := reconcile.New(reconcile.Options{Targets: []reconcile.Target{tbl}, Resync: -1})
			require.NoError(t, err)
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Hour, func() { cancel(errors.New("enough")) })
			require.NoError(t, e.Run(ctx))
		}},
		{"run/twice at a time is refused", func(t *testing.T) {
			_, tbl := one(nil)
			r := start(t, quiet, tbl)
			require.ErrorContains(t, r.Run(t.Context()), "running already")
		}},
	})
}
