package reconcile_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/reconcile"
	"github.com/cnikit/cnikit/reconcile/reconciletest"
)

type (
	fake  = reconciletest.Fake[string, int]
	call  = reconciletest.Call[string]
	table = reconcile.Table[string, int]
	opts  = reconcile.TableOptions[string, int]
	vals  = map[string]int
)

var errBad = errors.New("bad key")

// A rig is a running engine over fakes, in a synctest bubble, with the rounds it made.
type rig struct {
	*reconcile.Engine
	mu     sync.Mutex
	rounds []reconcile.Round
}

// start runs an engine until the bubble ends. Back-offs and intervals are the defaults unless the caller sets them.
func start(t *testing.T, o reconcile.Options, targets ...reconcile.Target) *rig {
	t.Helper()
	r := &rig{}
	o.Targets = targets
	o.OnRound = func(round reconcile.Round) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.rounds = append(r.rounds, round)
	}
	var err error
	r.Engine, err = reconcile.New(o)
	require.NoError(t, err)
	done := make(chan error)
	go func() { done <- r.Run(t.Context()) }()
	t.Cleanup(func() { require.NoError(t, <-done) })
	synctest.Wait()
	return r
}

// newRounds returns the rounds since the last call.
func (r *rig) newRounds() []reconcile.Round {
	r.mu.Lock()
	defer r.mu.Unlock()
	rounds := r.rounds
	r.rounds = nil
	return rounds
}

func (r *rig) target(name string) reconcile.TargetStatus {
	for _, t := range r.Status().Targets {
		if t.Name == name {
			return t
		}
	}
	panic("no target " + name)
}

// pass lets bubble time go by and the engine come to rest.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// one returns a fake and a table of it that has the same content and is synced.
func one(content vals) (*fake, *table) {
	f := reconciletest.NewFake(content)
	t := reconcile.NewTable("one", f, opts{})
	t.Replace(content)
	return f, t
}

// many returns n keys with the same value.
func many(n, v int) vals {
	m := vals{}
	for i := range n {
		m[fmt.Sprintf("k%05d", i)] = v
	}
	return m
}

func observe() call          { return call{Op: "observe"} }
func apply(key string) call  { return call{Op: "apply", Key: key} }
func remove(key string) call { return call{Op: "delete", Key: key} }

// writes returns the calls that are no observations.
func writes(calls []call) []call {
	var w []call
	for _, c := range calls {
		if c.Op != "observe" {
			w = append(w, c)
		}
	}
	return w
}
