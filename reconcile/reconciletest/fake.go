package reconciletest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/cnikit/cnikit/reconcile"
)

// A Fake is a [reconcile.Store] in memory. It keeps real state, which tests may change behind the engine's back (Put,
// Remove), and fails on demand (Fail, Hide, Before). All methods are safe for concurrent use; calls by the engine that
// overlap, which the contract forbids, panic.
type Fake[K comparable, V any] struct {
	mu     sync.Mutex
	before func(ctx context.Context, c Call[K]) error
	busy   bool
	vals   map[K]V
	fails  map[K]error
	hidden map[K]bool
	calls  []Call[K]
}

var _ reconcile.Store[string, string] = (*Fake[string, string])(nil)

// A Call is one call of a store's method.
type Call[K comparable] struct {
	Op  string // "observe", "apply" or "delete"
	Key K      // zero for observe
}

// NewFake returns a store that holds a copy of vals.
func NewFake[K comparable, V any](vals map[K]V) *Fake[K, V] {
	f := &Fake[K, V]{vals: map[K]V{}, fails: map[K]error{}, hidden: map[K]bool{}}
	maps.Copy(f.vals, vals)
	return f
}

// Observe implements [reconcile.Store].
func (f *Fake[K, V]) Observe(ctx context.Context) (map[K]V, error) {
	c := Call[K]{Op: "observe"}
	f.begin(c)
	defer f.end()
	if err := f.fault(ctx, c); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	seen := maps.Clone(f.vals)
	maps.DeleteFunc(seen, func(k K, _ V) bool { return f.hidden[k] })
	if len(f.hidden) > 0 {
		return seen, fmt.Errorf("observe: %w", reconcile.ErrPartial)
	}
	return seen, nil
}

// Apply implements [reconcile.Store].
func (f *Fake[K, V]) Apply(ctx context.Context, key K, desired V, _ *V) error {
	c := Call[K]{Op: "apply", Key: key}
	f.begin(c)
	defer f.end()
	if err := f.fault(ctx, c); err != nil {
		return err
	}
	f.Put(key, desired)
	return nil
}

// Delete implements [reconcile.Store].
func (f *Fake[K, V]) Delete(ctx context.Context, key K, _ V) error {
	c := Call[K]{Op: "delete", Key: key}
	f.begin(c)
	defer f.end()
	if err := f.fault(ctx, c); err != nil {
		return err
	}
	f.Remove(key)
	return nil
}

// begin notes a call, and that it is under way.
func (f *Fake[K, V]) begin(c Call[K]) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.busy {
		panic("reconciletest: calls of one store overlap")
	}
	f.busy = true
	f.calls = append(f.calls, c)
}

// fault returns the error that a call is to fail with.
func (f *Fake[K, V]) fault(ctx context.Context, c Call[K]) error {
	f.mu.Lock()
	before := f.before
	f.mu.Unlock()
	if before != nil {
		if err := before(ctx, c); err != nil {
			return err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.fails[c.Key]; err != nil && c.Op != "observe" {
		return err
	}
	return ctx.Err()
}

func (f *Fake[K, V]) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.busy = false
}

// Put makes key v, as another party would.
func (f *Fake[K, V]) Put(key K, v V) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.vals[key] = v
}

// Remove removes key, as another party would.
func (f *Fake[K, V]) Remove(key K) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.vals, key)
}

// Fail makes Apply and Delete of key fail with err; nil ends it.
func (f *Fake[K, V]) Fail(key K, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fails[key] = err
}

// Before makes fn run at the start of each call by the engine; nil ends it. It may return an error for the call, block or
// panic, and may use the fake.
func (f *Fake[K, V]) Before(fn func(ctx context.Context, c Call[K]) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before = fn
}

// Hide makes observations miss the keys and carry [reconcile.ErrPartial]; with no keys it ends.
func (f *Fake[K, V]) Hide(keys ...K) {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.hidden)
	for _, k := range keys {
		f.hidden[k] = true
	}
}

// Vals returns a copy of what the store holds.
func (f *Fake[K, V]) Vals() map[K]V {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.vals)
}

// Calls returns the calls since the last one of Calls, in order.
func (f *Fake[K, V]) Calls() []Call[K] {
	f.mu.Lock()
	defer f.mu.Unlock()
	calls := f.calls
	f.calls = nil
	return calls
}

// String prints what the store holds, one "key: value" a line, sorted.
func (f *Fake[K, V]) String() string {
	var lines []string
	for k, v := range f.Vals() {
		lines = append(lines, fmt.Sprintf("%v: %v\n", k, v))
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}
