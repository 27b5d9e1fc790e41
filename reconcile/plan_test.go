package reconcile_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/reconcile"
	"github.com/cnikit/cnikit/reconcile/reconciletest"
)

func TestPlan(t *testing.T) {
	subtests(t, rules{
		{"prints what a round would do, and does nothing", func(t *testing.T) {
			f, device := one(vals{"dev": 1})
			f.Remove("dev")
			g := reconciletest.NewFake(vals{"same": 1, "differs": 9, "stray": 5})
			routes := reconcile.NewTable("routes", g, opts{Phase: 1, After: []reconcile.Target{device},
				Format: func(k string, v int) string { return fmt.Sprintf("%s via %d", k, v) }})
			routes.Replace(vals{"same": 1, "differs": 2, "new": 3})
			h := reconciletest.NewFake(many(12, 1))
			emptied := reconcile.NewTable("emptied", h, opts{Phase: 2, After: []reconcile.Target{routes}})
			emptied.Replace(vals{"k00000": 1})
			i, partial := one(vals{"a": 1})
			i.Hide("a")
			e, err := reconcile.New(reconcile.Options{Targets: []reconcile.Target{device, routes, emptied}})
			require.NoError(t, err)
			p, err := e.Plan(t.Context())
			require.NoError(t, err)
			require.False(t, p.Empty())
			require.Equal(t, `one (phase 0):
  + dev: 1
routes (phase 1), after one:
  ~ differs via 9 => differs via 2
  + new via 3
  - stray via 5 (held)
emptied (phase 2), after routes:
  - k00001: 1 (held)
  - k00002: 1 (held)
  - k00003: 1 (held)
  - k00004: 1 (held)
  - k00005: 1 (held)
  - k00006: 1 (held)
  - k00007: 1 (held)
  - k00008: 1 (held)
  - k00009: 1 (held)
  - k00010: 1 (held)
  - k00011: 1 (held)
`, p.String())
			require.Empty(t, writes(append(append(f.Calls(), g.Calls()...), h.Calls()...)))

			e2, err := reconcile.New(reconcile.Options{Targets: []reconcile.Target{partial}})
			require.NoError(t, err)
			p, err = e2.Plan(t.Context())
			require.NoError(t, err)
			require.Equal(t, "one (phase 0): observe: observation is partial\n  + a: 1\n", p.String())
		}},
		{"of a converged engine is empty", func(t *testing.T) {
			_, tbl := one(vals{"a": 1})
			r := start(t, quiet, tbl)
			p, err := r.Plan(t.Context())
			require.NoError(t, err)
			require.True(t, p.Empty())
			require.Equal(t, "one (phase 0): nothing to do\n", p.String())
		}},
		{"shows what waits for what", func(t *testing.T) {
			first := reconcile.NewTable("first", reconciletest.NewFake[string, int](nil), opts{})
			second := reconcile.NewTable("second", reconciletest.NewFake[string, int](nil), opts{After: []reconcile.Target{first}})
			third := reconcile.NewTable("third", reconciletest.NewFake[string, int](nil), opts{After: []reconcile.Target{second}})
			e, err := reconcile.New(reconcile.Options{Targets: []reconcile.Target{first, second, third}})
			require.NoError(t, err)
			second.Replace(nil)
			third.Replace(nil)
			p, err := e.Plan(t.Context())
			require.NoError(t, err)
			require.Equal(t, `first (phase 0): nothing to do
second (phase 0), after first: nothing to do
third (phase 0), after second: nothing to do
`, p.String())
			first.Replace(nil)
			p, err = e.Plan(t.Context())
			require.NoError(t, err)
			require.NotContains(t, p.String(), "after")
		}},
		{"of a failing store says why", func(t *testing.T) {
			f, tbl := one(nil)
			f.Before(func(context.Context, call) error { return errBad })
			r := start(t, quiet, tbl)
			p, err := r.Plan(t.Context())
			require.NoError(t, err)
			require.False(t, p.Empty())
			require.Equal(t, "one (phase 0): bad key\n", p.String())
		}},
		{"can be asked for, like the status, after a round", func(t *testing.T) {
			_, tbl := one(nil)
			var e *reconcile.Engine
			ctx, cancel := context.WithCancel(t.Context())
			e, err := reconcile.New(reconcile.Options{Targets: []reconcile.Target{tbl}, OnRound: func(r reconcile.Round) {
				p, err := e.Plan(ctx)
				require.NoError(t, err)
				require.True(t, p.Empty())
				require.Equal(t, r, e.Status().Round)
				cancel()
			}})
			require.NoError(t, err)
			require.NoError(t, e.Run(ctx))
		}},
		{"waits for the round under way, or for its context", func(t *testing.T) {
			f, tbl := one(vals{"a": 1})
			f.Remove("a")
			f.Before(func(_ context.Context, c call) error {
				if c == apply("a") {
					time.Sleep(5 * time.Second)
				}
				return nil
			})
			r := start(t, quiet, tbl)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := r.Plan(ctx)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			p, err := r.Plan(t.Context())
			require.NoError(t, err)
			require.True(t, p.Empty())
		}},
	})
}

func TestStatus(t *testing.T) {
	subtests(t, rules{
		{"ages, readiness, json", func(t *testing.T) {
			_, tbl := one(vals{"a": 1})
			began := time.Now()
			r := start(t, quiet, tbl)
			pass(time.Minute)
			s := r.Status()
			require.Equal(t, reconcile.TargetStatus{
				Name: "one", Synced: true, Converged: true, Desired: 1, Observed: 1, LastLook: began, LastSuccess: began,
			}, s.Targets[0])
			require.NoError(t, s.Ready(0))
			require.NoError(t, s.Ready(time.Minute))
			require.ErrorContains(t, s.Ready(59*time.Second), "last looked at 1m0s ago")
			tbl.Set("b", 1)
			require.ErrorContains(t, r.Status().Ready(0), "outstanding")
			_, err := json.Marshal(r.Status())
			require.NoError(t, err)
		}},
		{"never waits for a store", func(t *testing.T) {
			f, tbl := one(vals{"a": 1})
			f.Before(func(ctx context.Context, _ call) error { <-ctx.Done(); return ctx.Err() })
			r := start(t, quiet, tbl)
			began := time.Now()
			require.False(t, r.Status().Targets[0].Converged)
			require.Equal(t, began, time.Now())
		}},
		{"an error in json is its text", func(t *testing.T) {
			data, err := json.Marshal(reconcile.KeyError{Target: "one", Key: "k", Tries: 2, Err: errBad})
			require.NoError(t, err)
			require.JSONEq(t, `{"target":"one","key":"k","tries":2,"retry":"0001-01-01T00:00:00Z","error":"bad key"}`, string(data))
		}},
	})
}

func TestNew(t *testing.T) {
	mk := func(name string, phase int, after ...reconcile.Target) reconcile.Target {
		return reconcile.NewTable(name, reconciletest.NewFake[string, int](nil), opts{Phase: phase, After: after})
	}
	a := mk("a", 1)
	for _, tc := range []struct {
		rule string
		opts reconcile.Options
		want string
	}{
		{"no target", reconcile.Options{}, "targets: none given"},
		{"nil target", reconcile.Options{Targets: []reconcile.Target{nil}}, "one is nil"},
		{"nil table", reconcile.Options{Targets: []reconcile.Target{(*table)(nil)}}, "one is nil"},
		{"no name", reconcile.Options{Targets: []reconcile.Target{mk("", 0)}}, "a target has no name; give NewTable one"},
		{"no store", reconcile.Options{Targets: []reconcile.Target{reconcile.NewTable[string, int]("x", nil, opts{})}},
			`target "x": has no store; give NewTable one`},
		{"after nil", reconcile.Options{Targets: []reconcile.Target{mk("x", 0, nil)}}, `target "x": waits for a target that is nil`},
		{"two of a name", reconcile.Options{Targets: []reconcile.Target{mk("x", 0), mk("x", 1)}}, `"x": the name is taken`},
		{"after one that is missing", reconcile.Options{Targets: []reconcile.Target{mk("b", 1, a)}}, `waits for "a", which is not`},
		{"after a later phase", reconcile.Options{Targets: []reconcile.Target{mk("b", 0, a), a}}, `use at least that phase`},
		{"share", reconcile.Options{Targets: []reconcile.Target{a}, MaxDeleteShare: 1.5}, "1.5: not between 0 and 1"},
		{"back-off", reconcile.Options{Targets: []reconcile.Target{a}, BackoffMin: time.Hour}, "from 1h0m0s to 30s"},
		{"timeout", reconcile.Options{Targets: []reconcile.Target{a}, Timeout: -1}, "must not be negative"},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			_, err := reconcile.New(tc.opts)
			require.ErrorContains(t, err, tc.want)
		})
	}
	_, err := reconcile.New(reconcile.Options{Targets: []reconcile.Target{a}})
	require.NoError(t, err)
	_, err = reconcile.New(reconcile.Options{Targets: []reconcile.Target{a}})
	require.ErrorContains(t, err, "belongs to another engine")

	free := mk("free", 0)
	_, err = reconcile.New(reconcile.Options{Targets: []reconcile.Target{free, a}})
	require.ErrorContains(t, err, `"a": belongs to another engine`)
	_, err = reconcile.New(reconcile.Options{Targets: []reconcile.Target{free}})
	require.NoError(t, err, "an engine that could not be made keeps nothing")
}

func TestConcurrentUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, tbl := one(nil)
		r := start(t, reconcile.Options{Resync: time.Millisecond}, tbl)
		for i := range 8 {
			go func() {
				for j := range 100 {
					key := fmt.Sprint("k", (i+j)%10)
					tbl.Set(key, j)
					tbl.Unset(key)
					r.Trigger(tbl)
					_ = r.Status()
					if _, err := r.Plan(t.Context()); err != nil {
						t.Error(err)
					}
					time.Sleep(time.Millisecond)
				}
			}()
		}
		pass(time.Second)
		tbl.Replace(vals{"end": 1})
		pass(time.Second)
		require.Equal(t, vals{"end": 1}, f.Vals())
	})
}
