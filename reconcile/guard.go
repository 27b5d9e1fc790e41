package reconcile

import (
	"time"
)

// guard returns the deletes that may go ahead. When they are more than the floor and a surprising share of what was
// observed, they are held until a full look, HoldFor or more after the first, finds them still unwanted: time for a source
// that lost its data to recover. A delete that has passed need not pass again when it had to wait for its turn.
func (t *Table[K, V]) guard(r *round, deletes []change[K, V], looked bool) []change[K, V] {
	w, now := &t.work, time.Now()
	before, passed := w.held, w.passed
	w.held, w.passed = map[K]time.Time{}, nil
	already := 0
	for _, c := range deletes {
		if passed[c.key] {
			already++
		}
	}
	if !r.opts.surprising(len(deletes)-already, len(w.seen.vals)-already) {
		return deletes
	}
	var released []change[K, V]
	for _, c := range deletes {
		since, ok := before[c.key]
		if passed[c.key] || ok && looked && now.Sub(since) >= r.opts.HoldFor {
			released = append(released, c)
			continue
		}
		if !ok {
			since = now
		}
		w.held[c.key] = since
		t.forget(c.key) // it waits for the second look, not for a retry
	}
	if len(w.held) > len(before) {
		r.active = true
		r.opts.Log.Warn("deletes held back until a second look agrees", "target", t.name, "deletes", len(w.held),
			"observed", len(w.seen.vals), "next look", r.opts.HoldFor)
	}
	return released
}

// secondLookDue reports whether deletes have been held for long enough.
func (t *Table[K, V]) secondLookDue(r *round, now time.Time) bool {
	for _, since := range t.work.held {
		if now.Sub(since) >= r.opts.HoldFor {
			return true
		}
	}
	return false
}

// surprising reports whether so many deletes, of so many observed keys, are more than anybody is likely to want.
func (o Options) surprising(deletes, observed int) bool {
	return deletes > o.DeleteFloor && float64(deletes) > o.MaxDeleteShare*float64(observed)
}
