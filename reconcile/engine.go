package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// An Engine keeps its targets as wanted while Run runs. Its methods are safe for concurrent use.
type Engine struct {
	opts    Options
	targets []Target // in the order in which they are applied
	woken   chan struct{}
	turn    chan struct{} // holds a token while somebody uses the stores
	running atomic.Bool

	resyncAt time.Time // used by Run only; zero: never
	rounds   uint64    // likewise

	mu   sync.Mutex
	last Round
}

// New checks the options and returns an engine; it does no I/O. A table belongs to one engine only.
func New(o Options) (*Engine, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("reconcile: %w", err)
	}
	e := &Engine{opts: o, woken: make(chan struct{}, 1), turn: make(chan struct{}, 1)}
	for i, t := range o.Targets {
		if err := t.join(e); err != nil {
			for _, joined := range o.Targets[:i] {
				joined.leave()
			}
			return nil, fmt.Errorf("reconcile: %w", err)
		}
	}
	e.targets = slices.Clone(o.Targets)
	slices.SortStableFunc(e.targets, func(a, b Target) int {
		x, y := a.settings(), b.settings()
		return cmp.Or(cmp.Compare(x.phase, y.phase), cmp.Compare(x.depth, y.depth))
	})
	return e, nil
}

// Run reconciles until ctx ends, and then returns nil; the operation under way gets the same context, the rest is left. It
// works on the calling goroutine and starts no other. It may be called again after it returned, not while it runs.
func (e *Engine) Run(ctx context.Context) error {
	if !e.running.CompareAndSwap(false, true) {
		return errors.New("reconcile: the engine is running already")
	}
	defer e.running.Store(false)
	for resync := true; ctx.Err() == nil; resync = e.wait(ctx) {
		e.round(ctx, resync)
	}
	return nil
}

// wait blocks until there is something to do, and reports whether it is time for a resync.
func (e *Engine) wait(ctx context.Context) (resync bool) {
	var timer <-chan time.Time
	if due := e.due(); !due.IsZero() {
		timer = time.After(time.Until(due))
	}
	select {
	case <-ctx.Done():
	case <-timer:
	case <-e.woken:
		select {
		case <-ctx.Done():
		case <-time.After(e.opts.Coalesce):
		}
	}
	return !e.resyncAt.IsZero() && !time.Now().Before(e.resyncAt)
}

// due returns when the next round is due without being woken; zero: never.
func (e *Engine) due() time.Time {
	first := e.resyncAt
	for _, t := range e.targets {
		first = earlier(first, t.due(e.opts.HoldFor))
	}
	return first
}

// round makes one pass over the targets and publishes it, unless it did nothing or was interrupted.
func (e *Engine) round(ctx context.Context, resync bool) {
	if e.lock(ctx) != nil {
		return
	}
	r := e.pass(ctx, resync)
	e.unlock()
	if r.active && ctx.Err() == nil {
		e.finish(r)
	}
}

func (e *Engine) pass(ctx context.Context, resync bool) *round {
	r := newRound(e.opts, resync)
	for _, t := range e.targets {
		if ctx.Err() != nil {
			return r
		}
		t.applies(ctx, r)
	}
	for _, t := range slices.Backward(e.targets) {
		t.deletes(ctx, r)
	}
	if resync && e.opts.Resync > 0 {
		e.resyncAt = time.Now().Add(time.Duration(float64(e.opts.Resync) * (0.9 + rand.Float64()/5)))
	}
	return r
}

// finish publishes a round.
func (e *Engine) finish(r *round) {
	e.rounds++
	r.tellRest()
	r.Number, r.Took, r.Full = e.rounds, time.Since(r.Started), r.Looks == len(e.targets)
	e.mu.Lock()
	e.last = r.Round
	e.mu.Unlock()
	e.opts.Log.Debug("round", "number", r.Number, "took", r.Took, "looks", r.Looks, "applied", r.Applied,
		"deleted", r.Deleted, "held", r.Held, "failed", len(r.Failed))
	if e.opts.OnRound != nil {
		e.opts.OnRound(r.Round)
	}
}

// Trigger asks for a full look at the targets soon; with none named, at all of them. Call it when the outside state may have
// changed; calls are cheap and coalesce. It also brings forward keys that wait after an error, to ten times BackoffMin after
// their last try.
func (e *Engine) Trigger(targets ...Target) {
	if len(targets) == 0 {
		targets = e.targets
	}
	for _, t := range targets {
		t.trigger()
	}
}

// wake makes Run look for work.
func (e *Engine) wake() {
	select {
	case e.woken <- struct{}{}:
	default:
	}
}

// lock waits for the stores to be free.
func (e *Engine) lock(ctx context.Context) error {
	select {
	case e.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (e *Engine) unlock() { <-e.turn }
