package reconcile

import "slices"

// grace is for how many failures in a row of a delete those of lower phases wait for it, about a second and a half with the
// default back-off. One that fails for ever must not keep everything below it for ever.
const grace = 5

// bar makes the deletes of phases below this one wait: they take away what something of this phase still needs. It is called
// in descending order of phases, so the first call tells.
func (r *round) bar(phase int) {
	if r.lowest == nil {
		r.lowest = &phase
	}
}

func (r *round) barred(phase int) bool { return r.lowest != nil && phase < *r.lowest }

// pause leaves the deletes of this round for the next ones. The target that they wait for sees to it that there is one: it
// has a retry or a second look to make.
func (t *Table[K, V]) pause(r *round) {
	w := &t.work
	before := len(w.passed)
	for _, c := range w.doomed {
		if _, wanted := t.want(c.key); wanted {
			continue
		}
		if w.passed == nil {
			w.passed = map[K]bool{}
		}
		w.passed[c.key] = true
		t.forget(c.key) // it waits for its turn, not for a retry
	}
	if len(w.passed) > before {
		r.opts.Log.Debug("deletes wait for those of higher phases", "target", t.name, "deletes", len(w.passed))
	}
}

// deleteFailed reports whether a delete has failed that lower phases wait for.
func (t *Table[K, V]) deleteFailed() bool {
	for _, a := range t.work.failing {
		if a.deleting && a.err != nil && a.tries < grace {
			return true
		}
	}
	return false
}

// hold marks, as held, the deletes of a plan that would have to wait for held ones of a higher phase.
func (p Plan) hold() {
	var r round
	for _, t := range slices.Backward(p.Targets) {
		for j := range t.Changes {
			c := &t.Changes[j]
			c.Held = c.Held || c.Op == Remove && r.barred(t.Phase)
			if c.Held {
				r.bar(t.Phase)
			}
		}
	}
}
