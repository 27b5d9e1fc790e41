package reconcile_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/reconcile"
	"github.com/cnikit/cnikit/reconcile/reconciletest"
)

// owned is a fake of which only the keys that begin with "our" are ours.
type owned struct{ *fake }

func (o owned) Observe(ctx context.Context) (vals, error) {
	seen, err := o.fake.Observe(ctx)
	maps.DeleteFunc(seen, func(k string, _ int) bool { return !strings.HasPrefix(k, "our") })
	return seen, err
}

// A world is a table, its store and a model of what the table wants, changed at random.
type world struct {
	*rand.Rand
	faults *rand.Rand // of its own: it is drawn from by the engine's goroutine
	*fake
	tbl  *table
	want vals
	rig  *rig
}

func (w *world) key() string { return fmt.Sprint("our", w.IntN(30)) }

// chaos does one random thing, good or bad.
func (w *world) chaos() {
	switch w.IntN(12) {
	case 0, 1:
		w.change()
	case 2:
		w.drift()
	case 3:
		w.Fail(w.key(), errBad)
	case 4:
		w.Fail(w.key(), nil)
	case 5:
		w.Hide(w.key(), w.key())
	case 6:
		w.Hide()
	case 7:
		w.want = vals{}
		for range w.IntN(30) {
			w.want[w.key()] = w.IntN(4)
		}
		w.tbl.Replace(w.want)
		w.want = maps.Clone(w.want)
	case 8:
		w.rig.Trigger()
	default:
		pass(time.Duration(w.IntN(300)) * time.Millisecond)
	}
}

// change changes what the table wants, by one key, and returns it.
func (w *world) change() string {
	key := w.key()
	if w.IntN(3) == 0 {
		delete(w.want, key)
		w.tbl.Unset(key)
		return key
	}
	w.want[key] = w.IntN(4)
	w.tbl.Set(key, w.want[key])
	return key
}

// drift changes the store behind the engine's back, by one key, and returns it.
func (w *world) drift() string {
	key := w.key()
	if w.IntN(2) == 0 {
		w.Remove(key)
	} else {
		w.Put(key, w.IntN(4))
	}
	return key
}

// fault makes one call in eight fail, hang or panic.
func (w *world) fault(ctx context.Context, _ call) error {
	switch w.faults.IntN(24) {
	case 0:
		return errBad
	case 1:
		panic("boom")
	case 2:
		<-ctx.Done()
	}
	return nil
}

func TestModel(t *testing.T) {
	foreign := vals{"foreign1": 1, "foreign2": 2}
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			w := &world{Rand: rand.New(rand.NewPCG(seed, 0)), faults: rand.New(rand.NewPCG(seed, 1)), fake: reconciletest.NewFake(foreign), want: vals{}}
			w.tbl = reconcile.NewTable("model", owned{w.fake}, opts{})
			w.tbl.Replace(nil)
			w.Before(w.fault)
			w.rig = start(t, quiet, w.tbl)
			for range 100 {
				w.chaos()
			}
			synctest.Wait()

			// However bad it was, it converges once the faults are over.
			pass(time.Minute)
			w.Before(nil)
			w.Hide()
			for i := range 30 {
				w.Fail(fmt.Sprint("our", i), nil)
			}
			w.rig.Trigger()
			pass(5 * time.Minute)
			require.Equal(t, merge(w.want, foreign), w.Vals(), "seed %d", seed)
			require.NoError(t, w.rig.Status().Ready(0), "seed %d", seed)

			// From there, each key that differs costs at most one operation, and the others none.
			w.Calls()
			touched := map[string]bool{}
			for range w.IntN(20) {
				touched[w.change()] = true
				touched[w.drift()] = true
			}
			w.rig.Trigger()
			pass(time.Minute)
			require.Equal(t, merge(w.want, foreign), w.Vals(), "seed %d", seed)
			done := map[string]int{}
			for _, c := range writes(w.Calls()) {
				done[c.Key]++
				require.True(t, touched[c.Key], "seed %d: %v", seed, c)
				require.Equal(t, 1, done[c.Key], "seed %d: %v", seed, c)
			}
		})
	}
}

func merge(a, b vals) vals {
	m := maps.Clone(a)
	maps.Copy(m, b)
	return m
}
