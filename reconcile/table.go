package reconcile

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"
)

// A Target is one table of an engine. Only [*Table] implements it.
type Target interface {
	Name() string

	check() error
	settings() settings
	join(e *Engine) error
	leave()
	trigger()
	due(holdFor time.Duration) time.Time
	applies(ctx context.Context, r *round)
	deletes(ctx context.Context, r *round)
	plan(ctx context.Context, o Options) TargetPlan
	converged() bool
	writes() uint64
	status() TargetStatus
}

var _ Target = (*Table[string, string])(nil)

// settings are what the engine orders targets by.
type settings struct {
	phase int
	after []Target
	depth int // length of the longest chain of After; a target has a greater depth than those it waits for
}

// TableOptions configure a [Table]. The zero value is usable.
type TableOptions[K comparable, V any] struct {
	// Phase orders targets: applied in ascending, deleted in descending phase. Deletes wait for held or failed ones of higher
	// phases, not of their own.
	Phase int
	// After names targets that must have converged, else this one waits as a whole, deletes included. Their phase must not be
	// higher. One key that cannot be applied keeps its target from converging, so wait for what is truly needed, such as a
	// device, rather than for a target with a key per peer.
	After []Target
	// Equal reports whether observed needs no change; default reflect.DeepEqual. It must be pure, and is called with the
	// table locked.
	Equal func(desired, observed V) bool
	// Format prints a key and its value in plans; default "key: value" by fmt.
	Format func(K, V) string
}

// A Table holds the wanted state of one [Store]. All methods are safe for concurrent use, return at once and wake the
// engine. Keys and values are kept, not copied: what they refer to must not be changed afterwards.
type Table[K comparable, V any] struct {
	name  string
	store Store[K, V]
	opts  TableOptions[K, V]
	depth int

	mu        sync.Mutex // guards what callers touch; never held while the store works
	engine    *Engine    // nil: not part of one yet
	desired   map[K]V
	changed   map[K]struct{} // since the engine last took them
	synced    bool
	triggered bool
	published TargetStatus

	work work[K, V] // belongs to whoever has the engine's turn
}

// NewTable returns an empty table that wants nothing and, until its first Replace, deletes nothing. The name must not be empty
// and the store not nil; [New] checks that.
func NewTable[K comparable, V any](name string, s Store[K, V], o TableOptions[K, V]) *Table[K, V] {
	if o.Equal == nil {
		o.Equal = func(a, b V) bool { return reflect.DeepEqual(a, b) }
	}
	if o.Format == nil {
		o.Format = func(k K, v V) string { return fmt.Sprintf("%v: %v", k, v) }
	}
	t := &Table[K, V]{name: name, store: s, opts: o, desired: map[K]V{}, work: newWork[K, V]()}
	for _, a := range o.After {
		if a != nil { // which New refuses
			t.depth = max(t.depth, a.settings().depth+1)
		}
	}
	return t
}

// Name returns the name given to NewTable.
func (t *Table[K, V]) Name() string { return t.name }

// Set wants key to be v. A value equal to the one already wanted changes nothing; another one makes a failing key be tried
// again at once.
func (t *Table[K, V]) Set(key K, v V) {
	t.mu.Lock()
	defer t.mu.Unlock()
	old, ok := t.desired[key]
	t.desired[key] = v
	if ok && t.opts.Equal(v, old) {
		return
	}
	t.touch(key)
	t.wake()
}

// Unset wants key to be absent.
func (t *Table[K, V]) Unset(key K) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.desired[key]; !ok {
		return
	}
	delete(t.desired, key)
	t.touch(key)
	t.wake()
}

// Replace gives the whole wanted state; keys not in desired are wanted absent. The map is copied. The first Replace marks
// the table as synced and is compared with an observation that begins after it, so a store may observe with the help of what
// its owner learned together with the first wanted state. Later ones reconcile the keys that changed.
func (t *Table[K, V]) Replace(desired map[K]V) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for k := range t.desired {
		if _, ok := desired[k]; !ok {
			t.touch(k)
		}
	}
	for k, v := range desired {
		if old, ok := t.desired[k]; !ok || !t.opts.Equal(v, old) {
			t.touch(k)
		}
	}
	t.desired = maps.Clone(desired)
	if t.desired == nil {
		t.desired = map[K]V{}
	}
	if !t.synced {
		t.synced, t.triggered = true, true
	}
	if t.triggered || len(t.changed) > 0 {
		t.wake()
	}
}

// Synced reports whether Replace has been called.
func (t *Table[K, V]) Synced() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.synced
}

// want returns what key should be now, false when it should be absent.
func (t *Table[K, V]) want(key K) (V, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	v, ok := t.desired[key]
	return v, ok
}

// check returns what is wrong with the table by itself.
func (t *Table[K, V]) check() error {
	switch {
	case t == nil:
		return errNilTarget
	case t.name == "":
		return fmt.Errorf("targets: a target has no name; give NewTable one")
	case t.store == nil:
		return fmt.Errorf("target %q: has no store; give NewTable one", t.name)
	case slices.Contains(t.opts.After, nil):
		return fmt.Errorf("target %q: waits for a target that is nil; leave it out of After", t.name)
	}
	return nil
}

func (t *Table[K, V]) settings() settings {
	if t == nil {
		return settings{}
	}
	return settings{phase: t.opts.Phase, after: t.opts.After, depth: t.depth}
}

func (t *Table[K, V]) join(e *Engine) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.engine != nil {
		return fmt.Errorf("target %q: belongs to another engine; make a table for each", t.name)
	}
	t.engine = e
	return nil
}

// leave takes back join.
func (t *Table[K, V]) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.engine = nil
}

func (t *Table[K, V]) trigger() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.triggered = true
	t.wake()
}

// touch is called with t.mu held.
func (t *Table[K, V]) touch(key K) {
	if t.changed == nil {
		t.changed = map[K]struct{}{}
	}
	t.changed[key] = struct{}{}
}

// wake is called with t.mu held.
func (t *Table[K, V]) wake() {
	if t.engine != nil {
		t.engine.wake()
	}
}
