package reconcile

import (
	"context"
	"fmt"
	"time"
)

// An attempt remembers the last operation on a key that failed, or that a look called for and that has yet to prove that it
// lasts. The latter is what keeps two parties that undo each other's work, or a store that reports other values than it is
// given, from writing in a busy loop: each of their writes is an event that asks for a look, and the look for a write.
type attempt struct {
	name     string // the key as text
	deleting bool
	tries    int // failures in a row, or repairs that did not last
	at       time.Time
	due      time.Time // not again before
	err      error     // nil: it succeeded
}

// patience is how many repairs of a key may fail to last before the next one has to wait.
const patience = 3

// record notes the outcome of an operation and reports whether it succeeded.
func (t *Table[K, V]) record(ctx context.Context, r *round, c change[K, V], err error) bool {
	w, now := &t.work, time.Now()
	r.active = true
	if err != nil && ctx.Err() != nil {
		w.lookWanted = true // ended by Run, not failed
		return false
	}
	if err == nil {
		w.writes++
	}
	a := w.attempts[c.key]
	if err == nil && (a == nil || a.err != nil) {
		delete(w.told, c.key) // should it fail again, that is news
	}
	switch {
	case err == nil && !c.looked: // a change by the caller; take forgot the past of the key
		return true
	case a == nil || (a.err == nil) != (err == nil):
		a = &attempt{name: c.name}
	}
	a.tries++
	a.deleting, a.at, a.due, a.err = c.op == Remove, now, now.Add(r.backoff(a.tries)), err
	if err == nil {
		a.due = now.Add(r.backoff(a.tries - patience))
	}
	w.attempts[c.key] = a
	delete(w.failing, c.key)
	if err != nil {
		w.failing[c.key] = a
		t.reportKey(r, c.key, a)
	}
	return err == nil
}

// resting reports whether a key has to wait for the end of its back-off. A key that differs although its last operation
// succeeded, and that so recently, is contested.
func (t *Table[K, V]) resting(r *round, c change[K, V]) bool {
	a := t.work.attempts[c.key]
	if a == nil || !time.Now().Before(a.due) {
		return false
	}
	if a.err == nil && t.work.failing[c.key] == nil {
		t.work.failing[c.key] = a
		t.reportKey(r, c.key, a)
	}
	return true
}

// settle drops, after a full look, the attempts whose keys stand as wanted: failures at once, successes after a while.
func (t *Table[K, V]) settle(r *round, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := &t.work
	stands := func(key K) bool {
		applies, deletes := t.diffKey(w.seen, key, nil, nil)
		return len(applies)+len(deletes) == 0
	}
	for key := range w.told {
		if stands(key) {
			delete(w.told, key)
		}
	}
	for key, a := range w.attempts {
		if !stands(key) {
			continue
		}
		delete(w.failing, key)
		if a.err != nil || now.Sub(a.at) >= r.opts.soon() {
			delete(w.attempts, key)
		}
	}
}

// hurry brings forward, after a trigger, what waits because of an error: the cause may be gone. A storm of triggers still
// causes no more than one try in ten times BackoffMin.
func (t *Table[K, V]) hurry(r *round) {
	w := &t.work
	for _, a := range w.failing {
		if a.err != nil {
			a.due = earlier(a.due, a.at.Add(r.opts.soon()))
		}
	}
	if w.lookTries > 0 {
		w.lookFrom = earlier(w.lookFrom, w.lookedAt.Add(r.opts.soon()))
	}
}

func (t *Table[K, V]) retryDue(now time.Time) bool {
	for _, a := range t.work.failing {
		if !now.Before(a.due) {
			return true
		}
	}
	return false
}

func (t *Table[K, V]) forget(key K) {
	delete(t.work.attempts, key)
	delete(t.work.failing, key)
}

func (t *Table[K, V]) keyError(a *attempt) KeyError {
	err := a.err
	if err == nil {
		err = fmt.Errorf("%w (%d times)", ErrContested, a.tries)
	}
	return KeyError{Target: t.name, Key: a.name, Tries: a.tries, Retry: a.due, Err: err}
}
