package reconcile

import (
	"context"
	"errors"
	"time"
)

// A view is a remembered observation, kept current with what the engine itself changed.
type view[K comparable, V any] struct {
	vals    map[K]V
	known   bool // false: the last look failed, vals is meaningless
	partial bool // absence from vals and the values in it prove nothing
	synced  bool // the wanted state was complete when the look began
}

// partialRetry is the longest wait after a partial look, unless looking takes longer: until a complete one nothing is changed
// or deleted.
const partialRetry = time.Second

// look observes the store and reports whether there is something to compare with.
func (t *Table[K, V]) look(ctx context.Context, r *round) bool {
	w, started, trusted := &t.work, time.Now(), t.writesBefore()
	seen, err := t.observe(ctx, r.opts.Timeout)
	now := time.Now()
	if err != nil && ctx.Err() != nil {
		return false
	}
	seen.synced = w.synced
	w.seen, w.lookedAt, w.trusted = seen, now, trusted
	r.Looks++
	r.active = true
	if err != nil {
		w.lookTries++
		wait := r.backoff(w.lookTries)
		if seen.partial {
			wait = max(min(wait, partialRetry), now.Sub(started))
		}
		w.lookFrom = now.Add(wait)
		w.lookError = KeyError{Target: t.name, Tries: w.lookTries, Retry: w.lookFrom, Err: err}
		t.reportLook(r)
		return seen.known
	}
	// Looking takes at most half of the time, however often it is asked for.
	w.lookFrom = now.Add(now.Sub(started))
	w.lookTries, w.lookTold, w.lookWanted, w.lastLook = 0, telling{}, false, now
	t.settle(r, now)
	return true
}

// observe calls the store.
func (t *Table[K, V]) observe(ctx context.Context, timeout time.Duration) (view[K, V], error) {
	var vals map[K]V
	err := call(ctx, timeout, func(ctx context.Context) (err error) {
		vals, err = t.store.Observe(ctx)
		return err
	})
	if vals == nil {
		vals = map[K]V{}
	}
	partial := errors.Is(err, ErrPartial)
	return view[K, V]{vals: vals, known: err == nil || partial, partial: partial}, err
}
