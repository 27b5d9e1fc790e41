package reconcile_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/reconcile"
	"github.com/cnikit/cnikit/reconcile/reconciletest"
)

// An onion is targets of which each needs those of lower phases: per peer two routes, two neighbours and one FDB entry.
type onion struct {
	fdbStore, neighStore, routeStore *fake
	fdb, neigh, route                *table
}

func newOnion(peers int) *onion {
	o := &onion{}
	o.fdbStore, o.fdb = layer("fdb", 1, peers)
	o.neighStore, o.neigh = layer("neighbors", 2, 2*peers)
	o.routeStore, o.route = layer("routes", 3, 2*peers)
	return o
}

func layer(name string, phase, n int) (*fake, *table) {
	f := reconciletest.NewFake(many(n, 1))
	tbl := reconcile.NewTable(name, f, opts{Phase: phase})
	tbl.Replace(many(n, 1))
	return f, tbl
}

// want leaves so many peers wanted.
func (o *onion) want(peers int) {
	o.fdb.Replace(many(peers, 1))
	o.neigh.Replace(many(2*peers, 1))
	o.route.Replace(many(2*peers, 1))
}

// left returns how many FDB entries, neighbours and routes there are.
func (o *onion) left() [3]int {
	return [3]int{len(o.fdbStore.Vals()), len(o.neighStore.Vals()), len(o.routeStore.Vals())}
}

func (o *onion) start(t *testing.T) *rig { return start(t, quiet, o.fdb, o.neigh, o.route) }

func TestDeleteOrder(t *testing.T) {
	subtests(t, rules{
		{"held/lower phases keep what the held ones need, and go with them", func(t *testing.T) {
			o := newOnion(8)
			r := o.start(t)
			r.newRounds()
			o.want(0)
			pass(time.Second)
			require.Equal(t, [3]int{8, 16, 16}, o.left())
			require.Len(t, r.target("fdb").Held, 8)
			require.Equal(t, 8+16+16, r.newRounds()[0].Held)
			require.NoError(t, r.Status().Ready(0))
			pass(10 * time.Second)
			require.Equal(t, [3]int{0, 0, 0}, o.left())
			require.Empty(t, r.target("fdb").Held)
			require.Len(t, r.newRounds(), 1, "one round deletes them all")
		}},
		{"held/a source that recovers in time finds everything there", func(t *testing.T) {
			o := newOnion(8)
			r := o.start(t)
			o.want(0)
			pass(9 * time.Second)
			o.want(7)
			pass(5 * time.Millisecond)
			require.Equal(t, [3]int{7, 14, 14}, o.left(), "what is left is no surprise and goes at once")
			require.Empty(t, r.target("fdb").Held)
			pass(time.Hour)
			require.Equal(t, [3]int{7, 14, 14}, o.left())
		}},
		{"held/what passed the guard and only waits its turn is not held again", func(t *testing.T) {
			o := newOnion(8)
			o.routeStore.Fail("k00000", errBad)
			o.start(t)
			o.want(0)
			pass(10*time.Second + 5*time.Millisecond)
			require.Equal(t, [3]int{8, 16, 1}, o.left())
			o.routeStore.Fail("k00000", nil)
			pass(100 * time.Millisecond)
			require.Equal(t, [3]int{0, 0, 0}, o.left())
		}},
		{"held/creates of lower phases go on", func(t *testing.T) {
			o := newOnion(8)
			o.start(t)
			o.want(0)
			o.fdb.Set("new", 1)
			pass(5 * time.Millisecond)
			require.Contains(t, o.fdbStore.Vals(), "new")
		}},
		{"held/a target of the same phase is not concerned", func(t *testing.T) {
			o := newOnion(8)
			f, other := layer("other", 3, 5)
			start(t, quiet, o.fdb, o.neigh, other, o.route)
			o.want(0)
			other.Replace(nil)
			pass(time.Second)
			require.Empty(t, f.Vals())
		}},
		{"failed/lower phases wait for the retry", func(t *testing.T) {
			o := newOnion(8)
			o.routeStore.Fail("k00014", errBad)
			r := o.start(t)
			o.want(7)
			pass(10 * time.Millisecond)
			require.Equal(t, [3]int{8, 16, 15}, o.left())
			require.Equal(t, []string{"k00007"}, r.target("fdb").Held)
			o.routeStore.Fail("k00014", nil)
			pass(100 * time.Millisecond)
			require.Equal(t, [3]int{7, 14, 14}, o.left())
		}},
		{"failed/also in rounds in which it rests", func(t *testing.T) {
			o := newOnion(8)
			o.routeStore.Fail("k00014", errBad)
			o.start(t)
			o.want(7)
			for i := range 4 {
				pass(10 * time.Millisecond)
				o.fdb.Set("k00000", i+2)
			}
			require.Equal(t, [3]int{8, 16, 15}, o.left())
		}},
		{"failed/not for ever, and the key goes on being tried", func(t *testing.T) {
			o := newOnion(8)
			o.routeStore.Fail("k00014", errBad)
			r := o.start(t)
			o.want(7)
			pass(3 * time.Second)
			require.Equal(t, [3]int{7, 14, 15}, o.left())
			require.Empty(t, r.target("fdb").Held)
			require.Len(t, r.target("routes").Failing, 1)
			o.fdb.Unset("k00000")
			pass(5 * time.Millisecond)
			require.Equal(t, [3]int{6, 14, 15}, o.left())
		}},
		{"failed/a lower key that failed before makes no busy loop while it waits", func(t *testing.T) {
			o := newOnion(8)
			o.fdbStore.Fail("k00007", errBad)
			r := o.start(t)
			o.fdb.Unset("k00007")
			pass(time.Second)
			o.routeStore.Before(func(_ context.Context, c call) error {
				if c.Op == "delete" {
					time.Sleep(time.Minute / 10)
					return errBad
				}
				return nil
			})
			o.route.Replace(nil)
			pass(time.Millisecond)
			r.newRounds()
			pass(9 * time.Second)
			require.Less(t, len(r.newRounds()), 10)
		}},
		{"plan/says that they are held", func(t *testing.T) {
			o := newOnion(8)
			o.want(0)
			e, err := reconcile.New(reconcile.Options{Targets: []reconcile.Target{o.fdb, o.neigh, o.route}})
			require.NoError(t, err)
			p, err := e.Plan(t.Context())
			require.NoError(t, err)
			require.Contains(t, p.String(), "fdb (phase 1):\n  - k00000: 1 (held)\n")
		}},
	})
}
