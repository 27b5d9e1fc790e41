package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"slices"
)

// A change is what has to happen to one key.
type change[K comparable, V any] struct {
	op       Op
	key      K
	name     string // the key as text
	desired  V      // except for Remove
	observed *V     // except for Create
	looked   bool   // found by a full look, not by a change of the table
}

// compare returns the changes that the remembered observation calls for: of all keys, or of those changed or held back. An
// observation from before the first Replace says nothing about what that wants; the look that it asked for follows.
func (t *Table[K, V]) compare(all bool) (applies, deletes []change[K, V]) {
	t.mu.Lock()
	defer t.mu.Unlock()
	w := &t.work
	if t.synced != w.seen.synced {
		return nil, nil
	}
	if all {
		applies, deletes = t.diff(w.seen)
		return inOrder(applies, true), inOrder(deletes, true)
	}
	for key := range w.changed {
		applies, deletes = t.diffKey(w.seen, key, applies, deletes)
	}
	for key := range w.held {
		if _, ok := w.changed[key]; !ok {
			applies, deletes = t.diffKey(w.seen, key, applies, deletes)
		}
	}
	for key := range w.passed { // never in held, nor in changed: take sees to that
		applies, deletes = t.diffKey(w.seen, key, applies, deletes)
	}
	return inOrder(applies, false), inOrder(deletes, false)
}

// diff returns the changes of all keys, in no order. It is called with t.mu held.
func (t *Table[K, V]) diff(seen view[K, V]) (applies, deletes []change[K, V]) {
	for key := range t.desired {
		applies, deletes = t.diffKey(seen, key, applies, deletes)
	}
	for key := range seen.vals {
		if _, wanted := t.desired[key]; !wanted {
			applies, deletes = t.diffKey(seen, key, applies, deletes)
		}
	}
	return applies, deletes
}

// diffKey adds the change of one key, if it needs one. It is called with t.mu held.
func (t *Table[K, V]) diffKey(seen view[K, V], key K, applies, deletes []change[K, V]) (_, _ []change[K, V]) {
	want, wanted := t.desired[key]
	have, there := seen.vals[key]
	switch {
	case wanted && !there:
		applies = append(applies, change[K, V]{op: Create, key: key, desired: want})
	case seen.partial:
	case wanted && there && !t.opts.Equal(want, have):
		applies = append(applies, change[K, V]{op: Modify, key: key, desired: want, observed: clone(have)})
	case !wanted && there && t.synced:
		deletes = append(deletes, change[K, V]{op: Remove, key: key, observed: clone(have)})
	}
	return applies, deletes
}

// clone moves v to the heap, for a change that keeps it; the many keys that need none stay off it.
func clone[V any](v V) *V { return &v }

// inOrder sorts by the text of the keys, so that rounds and plans do not depend on map order.
func inOrder[K comparable, V any](cs []change[K, V], looked bool) []change[K, V] {
	for i := range cs {
		cs[i].name, cs[i].looked = fmt.Sprint(cs[i].key), looked
	}
	slices.SortFunc(cs, func(a, b change[K, V]) int { return cmp.Compare(a.name, b.name) })
	return cs
}

// apply carries out one creation or modification, with the value that is wanted by now.
func (t *Table[K, V]) apply(ctx context.Context, r *round, c change[K, V]) {
	want, wanted := t.want(c.key)
	if !wanted || t.resting(r, c) {
		return
	}
	err := call(ctx, r.opts.Timeout, func(ctx context.Context) error {
		return t.store.Apply(ctx, c.key, want, c.observed)
	})
	if t.record(ctx, r, c, err) {
		t.work.seen.vals[c.key] = want
		r.Applied++
	}
}

// delete carries out one deletion, unless the key is wanted again by now.
func (t *Table[K, V]) delete(ctx context.Context, r *round, c change[K, V]) {
	if _, wanted := t.want(c.key); wanted || t.resting(r, c) {
		return
	}
	err := call(ctx, r.opts.Timeout, func(ctx context.Context) error {
		return t.store.Delete(ctx, c.key, *c.observed)
	})
	if t.record(ctx, r, c, err) {
		delete(t.work.seen.vals, c.key)
		r.Deleted++
	}
}
