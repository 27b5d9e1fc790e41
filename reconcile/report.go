package reconcile

import (
	"errors"
	"maps"
	"slices"
	"time"
)

const (
	tellAgain   = time.Minute // until a failure that lasts is logged for the second time; doubled with each
	tellAtMost  = time.Hour   // the limit of the doubling
	tellInRound = 5           // lines of one target and round; of more failures only the number is logged
)

// A telling remembers when a failure was last logged. The zero value is of one that never was.
type telling struct {
	text string
	at   time.Time
	wait time.Duration // until it is logged again
}

// due reports whether a failure is to be logged: a new one or one with another text at once, one that lasts at growing
// intervals. It then counts as logged.
func (m *telling) due(text string, now time.Time) bool {
	switch {
	case m.at.IsZero() || m.text != text:
		m.wait = tellAgain
	case now.Sub(m.at) < m.wait:
		return false
	default:
		m.wait = min(2*m.wait, tellAtMost)
	}
	m.text, m.at = text, now
	return true
}

// reportLook notes, and logs if it is due, that a look failed.
func (t *Table[K, V]) reportLook(r *round) {
	e := t.work.lookError
	r.Failed = append(r.Failed, e)
	if t.work.lookTold.due(e.Err.Error(), time.Now()) {
		r.tell("cannot look", e)
	}
}

// reportKey notes, and logs if it is due, that a key is in trouble.
func (t *Table[K, V]) reportKey(r *round, key K, a *attempt) {
	e, text, msg := t.keyError(a), ErrContested.Error(), "cannot keep"
	r.Failed = append(r.Failed, e)
	switch {
	case a.err == nil: // the error counts the repairs, the text does not
	case a.deleting:
		text, msg = a.err.Error(), "cannot delete"
	default:
		text, msg = a.err.Error(), "cannot apply"
	}
	told := t.work.told[key]
	if told == nil {
		told = &telling{}
		t.work.told[key] = told
	}
	if told.due(text, time.Now()) {
		r.tell(msg, e)
	}
}

// tell logs a failure, unless there were many of the target before.
func (r *round) tell(msg string, e KeyError) {
	if r.told[e.Target]++; r.told[e.Target] > tellInRound {
		return
	}
	attrs := []any{"target", e.Target}
	if e.Key != "" {
		attrs = append(attrs, "key", e.Key)
	}
	attrs = append(attrs, "error", e.Err, "tries", e.Tries, "retry", time.Until(e.Retry).Round(time.Millisecond))
	var panicked *panicError
	if errors.As(e.Err, &panicked) {
		attrs = append(attrs, "stack", string(panicked.stack))
	}
	r.opts.Log.Warn(msg, attrs...)
}

// tellRest logs how many failures tell has left out.
func (r *round) tellRest() {
	for _, target := range slices.Sorted(maps.Keys(r.told)) {
		if rest := r.told[target] - tellInRound; rest > 0 {
			r.opts.Log.Warn("more failures, see the status", "target", target, "keys", rest)
		}
	}
}
