package reconcile

import (
	"context"
	"maps"
	"time"
)

// work is what the engine remembers of a table between rounds. Only the goroutine of Run touches it.
type work[K comparable, V any] struct {
	seen       view[K, V]
	lookWanted bool      // before anything else is done; always true while seen is not known
	lookFrom   time.Time // not earlier
	lookTries  int       // failed looks in a row
	lookError  KeyError  // of the last one, while lookTries > 0
	lookTold   telling   // that it failed
	lookedAt   time.Time // the last look, failed or not
	lastLook   time.Time // the last complete one

	synced   bool            // the wanted state is complete
	changed  map[K]struct{}  // by callers, to reconcile
	attempts map[K]*attempt  // keys whose last operation failed or has yet to prove that it lasts
	failing  map[K]*attempt  // those of them that are in trouble
	told     map[K]*telling  // that a key was in trouble
	held     map[K]time.Time // keys whose deletion the guard holds back, and since when
	passed   map[K]bool      // keys whose deletion passed the guard and waits for those of higher phases
	doomed   []change[K, V]  // to delete at the end of the round
	waiting  []string        // targets to wait for
	writes   uint64          // applies and deletes that succeeded
	trusted  uint64          // the writes of the targets in After when the last look began; seen may miss what later ones did

	converged   bool
	lastSuccess time.Time
}

func newWork[K comparable, V any]() work[K, V] {
	return work[K, V]{lookWanted: true, attempts: map[K]*attempt{}, failing: map[K]*attempt{}, told: map[K]*telling{}, held: map[K]time.Time{}}
}

// applies is the table's part in the first half of a round: look if need be, compare, create and change. What is to be
// deleted is left for the second half. While a look has to wait, the keys that changed do not: they are compared with what is
// remembered, if anything is.
func (t *Table[K, V]) applies(ctx context.Context, r *round) {
	w := &t.work
	w.doomed, w.waiting = nil, t.unconverged()
	defer t.judge(r)
	if len(w.waiting) > 0 {
		w.lookWanted = true // what it waits for is not as it should be, so neither may be what it remembers
		return
	}
	t.take(r)
	w.lookWanted = w.lookWanted || t.writesBefore() != w.trusted
	full := w.lookWanted && !time.Now().Before(w.lookFrom)
	if full && !t.look(ctx, r) || !w.seen.known {
		return
	}
	applies, deletes := t.compare(full)
	for _, c := range applies {
		if ctx.Err() != nil {
			w.lookWanted = true
			return
		}
		t.apply(ctx, r, c)
	}
	w.changed = nil
	if !w.seen.partial { // else it says nothing about deletes, those held included
		w.doomed = t.guard(r, deletes, full)
	}
}

// deletes is the table's part in the second half of a round.
func (t *Table[K, V]) deletes(ctx context.Context, r *round) {
	w := &t.work
	if len(w.doomed) > 0 {
		defer t.publish()
	}
	if r.barred(t.opts.Phase) {
		t.pause(r)
	} else {
		for _, c := range w.doomed {
			if ctx.Err() != nil {
				w.lookWanted = true
				return
			}
			t.delete(ctx, r, c)
		}
	}
	held := len(w.held) + len(w.passed)
	r.Held += held
	if held > 0 || t.deleteFailed() {
		r.bar(t.opts.Phase)
	}
}

// take decides what the round has to do: a full look, or the keys that changed since the last round.
func (t *Table[K, V]) take(r *round) {
	w, now := &t.work, time.Now()
	t.mu.Lock()
	changed, triggered := t.changed, t.triggered
	w.synced = t.synced
	t.changed, t.triggered = nil, false
	t.mu.Unlock()
	if triggered {
		t.hurry(r)
	}
	w.lookWanted = w.lookWanted || triggered || r.resync || t.retryDue(now) || t.secondLookDue(r, now)
	for key := range changed {
		// A failed operation may have left anything. A new intention starts without its predecessor's back-off.
		w.lookWanted = w.lookWanted || w.failing[key] != nil
		t.forget(key)
		delete(w.held, key)
		delete(w.passed, key)
	}
	if w.changed == nil {
		w.changed = changed
		return
	}
	maps.Copy(w.changed, changed)
}

// unconverged names the targets that this one has to wait for.
func (t *Table[K, V]) unconverged() []string {
	var names []string
	for _, a := range t.opts.After {
		if !a.converged() {
			names = append(names, a.Name())
		}
	}
	return names
}

// judge decides, after the creates and changes of a round, whether the table has converged, and publishes its status. What was
// seen before the first Replace says nothing about what that wants.
func (t *Table[K, V]) judge(r *round) {
	w := &t.work
	converged := len(w.waiting) == 0 && len(w.changed) == 0 && w.seen.known && !w.seen.partial && w.seen.synced
	for _, a := range w.failing {
		converged = converged && a.deleting
	}
	if converged != w.converged {
		r.opts.Log.Info("convergence changed", "target", t.name, "converged", converged)
	}
	w.converged = converged
	if converged {
		w.lastSuccess = time.Now()
	}
	t.publish()
}

func (t *Table[K, V]) converged() bool { return t.work.converged }

func (t *Table[K, V]) writes() uint64 { return t.work.writes }

// writesBefore counts the writes of the targets in After. Each may have changed what this target remembers: the kernel drops
// the routes and neighbours of a device with it.
func (t *Table[K, V]) writesBefore() uint64 {
	var n uint64
	for _, a := range t.opts.After {
		n += a.writes()
	}
	return n
}

// due returns when the table has something to do without being woken; zero: never.
func (t *Table[K, V]) due(holdFor time.Duration) time.Time {
	w := &t.work
	if len(w.waiting) > 0 {
		return time.Time{} // the round in which the other targets converge takes this one along
	}
	if w.lookWanted || t.writesBefore() != w.trusted {
		return w.lookFrom
	}
	var first time.Time
	for _, a := range w.failing {
		first = earlier(first, a.due)
	}
	for _, since := range w.held {
		first = earlier(first, since.Add(holdFor))
	}
	return first
}

// earlier returns the earlier of two times of which zero means never.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
