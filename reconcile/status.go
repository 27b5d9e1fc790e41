package reconcile

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Status is the state of an engine at one moment. It marshals to JSON.
type Status struct {
	Time    time.Time      `json:"time"`    // when it was taken
	Running bool           `json:"running"` // Run has been called and has not returned
	Round   Round          `json:"round"`   // the last one that did anything; Number 0: none yet
	Targets []TargetStatus `json:"targets"` // in the order in which they are applied
}

// TargetStatus is the state of one target.
type TargetStatus struct {
	Name  string `json:"name"`
	Phase int    `json:"phase"`

	Synced    bool     `json:"synced"`            // the table has had its first Replace
	Converged bool     `json:"converged"`         // synced, and every wanted key stands as wanted; deletes may be outstanding
	Waiting   []string `json:"waiting,omitempty"` // targets named in After that have not converged
	Desired   int      `json:"desired"`           // wanted keys
	Observed  int      `json:"observed"`          // keys in the remembered observation

	LastLook    time.Time `json:"lastLook"`    // last complete observation; zero: none
	LastSuccess time.Time `json:"lastSuccess"` // end of the last round that left the target converged; zero: none

	Failing []KeyError `json:"failing,omitempty"` // sorted by key; one without a key is the observation itself
	Held    []string   `json:"held,omitempty"`    // keys whose deletion is held back, by the guard or by the order, sorted
}

// Ready returns nil when the engine runs and every target has converged, else the first reason why not. Deletes that fail or
// are held back do not count: they leave too much behind, but nothing is missing.
//
// With a positive maxAge every target must also have been looked at that recently, which a stuck store prevents. It only
// makes sense with a resync, and should be several times as long.
func (s Status) Ready(maxAge time.Duration) error {
	if !s.Running {
		return fmt.Errorf("the engine is not running")
	}
	for _, t := range s.Targets {
		if err := t.ready(); err != nil {
			return fmt.Errorf("target %s: %w", t.Name, err)
		}
		if age := s.Time.Sub(t.LastLook); maxAge > 0 && age > maxAge {
			return fmt.Errorf("target %s: last looked at %v ago, more than %v", t.Name, age.Round(time.Millisecond), maxAge)
		}
	}
	return nil
}

func (t TargetStatus) ready() error {
	switch {
	case t.Converged:
		return nil
	case !t.Synced:
		return fmt.Errorf("nothing has said yet what is wanted")
	case len(t.Waiting) > 0:
		return fmt.Errorf("waits for %v", t.Waiting)
	case len(t.Failing) > 0:
		return fmt.Errorf("%d of %d keys failing: %w", len(t.Failing), t.Desired, t.Failing[0])
	}
	return fmt.Errorf("changes are outstanding")
}

// Status returns the present state; it never waits for a store.
func (e *Engine) Status() Status {
	s := Status{Time: time.Now(), Running: e.running.Load()}
	e.mu.Lock()
	s.Round = e.last
	e.mu.Unlock()
	for _, t := range e.targets {
		s.Targets = append(s.Targets, t.status())
	}
	return s
}

func (t *Table[K, V]) status() TargetStatus {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.published
	s.Name, s.Phase = t.name, t.opts.Phase
	s.Synced, s.Desired = t.synced, len(t.desired)
	s.Converged = s.Converged && len(t.changed) == 0
	s.Waiting, s.Failing, s.Held = slices.Clone(s.Waiting), slices.Clone(s.Failing), slices.Clone(s.Held)
	return s
}

// publish makes the result of the table's part in a round visible to Status.
func (t *Table[K, V]) publish() {
	w := &t.work
	s := TargetStatus{
		Converged: w.converged, Waiting: w.waiting, Observed: len(w.seen.vals),
		LastLook: w.lastLook, LastSuccess: w.lastSuccess,
	}
	if w.lookTries > 0 {
		s.Failing = append(s.Failing, w.lookError)
	}
	for _, a := range w.failing {
		s.Failing = append(s.Failing, t.keyError(a))
	}
	slices.SortFunc(s.Failing, func(a, b KeyError) int { return cmp.Compare(a.Key, b.Key) })
	for key := range w.held {
		s.Held = append(s.Held, fmt.Sprint(key))
	}
	for key := range w.passed {
		s.Held = append(s.Held, fmt.Sprint(key))
	}
	slices.Sort(s.Held)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.published = s
}
