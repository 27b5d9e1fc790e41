package reconcile

import (
	"context"
	"fmt"
	"strings"
)

// A Plan is what a round would do now.
type Plan struct {
	Targets []TargetPlan // in the order in which they are applied
}

// A TargetPlan is what a round would do to one target.
type TargetPlan struct {
	Name    string
	Phase   int
	Waiting []string // targets that would have to converge first
	Changes []Change // creations and modifications, then deletions, each sorted by key
	Err     error    // the observation failed or was partial

	blocks bool // creations, modifications or an error: what waits for this target has to wait
}

// A Change is one operation of a plan.
type Change struct {
	Op   Op
	Key  string // as fmt.Sprint prints it
	Text string // as TableOptions.Format prints it; for Modify: "observed => desired"
	Held bool   // a deletion that the guard or the order would hold back at first
}

// Op is what happens to a key.
type Op byte

// The operations, as they are printed.
const (
	Create Op = '+'
	Modify Op = '~'
	Remove Op = '-'
)

// Empty reports whether the plan has nothing to do, and could see so.
func (p Plan) Empty() bool {
	for _, t := range p.Targets {
		if len(t.Changes) > 0 || t.Err != nil {
			return false
		}
	}
	return true
}

// String prints a line for each target and each change:
//
//	routes (phase 1):
//	  + 10.1.0.0/24: via 10.1.0.0
//	  ~ 10.2.0.0/24: via 10.9.9.9 => 10.2.0.0/24: via 10.2.0.0
//	  - 10.3.0.0/24: via 10.3.0.0
func (p Plan) String() string {
	var b strings.Builder
	for _, t := range p.Targets {
		b.WriteString(t.String())
	}
	return b.String()
}

// String prints the target's part of the plan.
func (p TargetPlan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (phase %d)", p.Name, p.Phase)
	if len(p.Waiting) > 0 {
		fmt.Fprintf(&b, ", after %s", strings.Join(p.Waiting, ", "))
	}
	switch {
	case p.Err != nil:
		fmt.Fprintf(&b, ": %v\n", p.Err)
	case len(p.Changes) == 0:
		b.WriteString(": nothing to do\n")
	default:
		b.WriteString(":\n")
	}
	for _, c := range p.Changes {
		fmt.Fprintf(&b, "  %s\n", c)
	}
	return b.String()
}

// String prints the change without a line end.
func (c Change) String() string {
	if c.Held {
		return fmt.Sprintf("%c %s (held)", c.Op, c.Text)
	}
	return fmt.Sprintf("%c %s", c.Op, c.Text)
}

// Plan looks at every target and returns what a round would do, back-offs left aside. It writes nothing and changes nothing
// that the engine remembers. It waits for a round under way to end; the error is that of ctx. Run need not run.
func (e *Engine) Plan(ctx context.Context) (Plan, error) {
	if err := e.lock(ctx); err != nil {
		return Plan{}, fmt.Errorf("plan: %w", err)
	}
	defer e.unlock()
	var p Plan
	blocked := map[string]bool{}
	for _, t := range e.targets {
		tp := t.plan(ctx, e.opts)
		for _, a := range t.settings().after {
			if blocked[a.Name()] {
				tp.Waiting = append(tp.Waiting, a.Name())
			}
		}
		blocked[tp.Name] = tp.blocks || len(tp.Waiting) > 0
		p.Targets = append(p.Targets, tp)
	}
	p.hold()
	if err := ctx.Err(); err != nil {
		return Plan{}, fmt.Errorf("plan: %w", err)
	}
	return p, nil
}

func (t *Table[K, V]) plan(ctx context.Context, o Options) TargetPlan {
	p := TargetPlan{Name: t.name, Phase: t.opts.Phase}
	seen, err := t.observe(ctx, o.Timeout)
	p.Err = err
	if !seen.known {
		p.blocks = true
		return p
	}
	t.mu.Lock()
	applies, deletes := t.diff(seen)
	p.blocks = err != nil || len(applies) > 0 || !t.synced
	t.mu.Unlock()
	for _, c := range inOrder(applies, true) {
		p.Changes = append(p.Changes, Change{Op: c.op, Key: c.name, Text: t.text(c)})
	}
	held := o.surprising(len(deletes), len(seen.vals))
	for _, c := range inOrder(deletes, true) {
		p.Changes = append(p.Changes, Change{Op: c.op, Key: c.name, Text: t.text(c), Held: held})
	}
	return p
}

// text prints a change for people.
func (t *Table[K, V]) text(c change[K, V]) string {
	switch c.op {
	case Create:
		return t.opts.Format(c.key, c.desired)
	case Remove:
		return t.opts.Format(c.key, *c.observed)
	}
	return t.opts.Format(c.key, *c.observed) + " => " + t.opts.Format(c.key, c.desired)
}
