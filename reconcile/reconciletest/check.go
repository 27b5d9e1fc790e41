package reconciletest

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/cnikit/cnikit/reconcile"
)

// A Sample is what [CheckStore] works with: a key that is not there, and two values for it.
type Sample[K comparable, V any] struct {
	Key           K
	First, Second V
	Equal         func(desired, observed V) bool // default reflect.DeepEqual
}

// CheckStore checks that a store keeps the contract of [reconcile.Store] and returns everything it found, each named by the
// rule. It creates, changes and deletes the sample's key and leaves the rest alone.
func CheckStore[K comparable, V any](ctx context.Context, s reconcile.Store[K, V], sample Sample[K, V]) error {
	if sample.Equal == nil {
		sample.Equal = func(a, b V) bool { return reflect.DeepEqual(a, b) }
	}
	c := &checker[K, V]{ctx: ctx, store: s, Sample: sample}
	c.gone("observe/absent")
	c.ok("delete/absent is nil", s.Delete(ctx, c.Key, c.First))
	c.ok("apply/creates", s.Apply(ctx, c.Key, c.First, nil))
	c.is("apply/creates", c.First)
	c.ok("apply/is idempotent", s.Apply(ctx, c.Key, c.First, &c.First))
	c.is("apply/is idempotent", c.First)
	c.ok("apply/changes", s.Apply(ctx, c.Key, c.Second, &c.First))
	c.is("apply/changes", c.Second)
	c.ok("apply/changes what it was not told of", s.Apply(ctx, c.Key, c.First, nil))
	c.is("apply/changes what it was not told of", c.First)
	c.fresh()
	c.ok("delete/removes what changed meanwhile", s.Delete(ctx, c.Key, c.Second))
	c.gone("delete/removes what changed meanwhile")
	c.ok("apply/creates again in spite of a stale observation", s.Apply(ctx, c.Key, c.First, &c.First))
	c.is("apply/creates again in spite of a stale observation", c.First)
	c.ok("delete/removes", s.Delete(ctx, c.Key, c.First))
	c.gone("delete/removes")
	return errors.Join(c.errs...)
}

type checker[K comparable, V any] struct {
	Sample[K, V]
	ctx   context.Context
	store reconcile.Store[K, V]
	errs  []error
}

func (c *checker[K, V]) fail(rule, format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf("%s: %w", rule, fmt.Errorf(format, args...)))
}

func (c *checker[K, V]) ok(rule string, err error) {
	if err != nil {
		c.fail(rule, "%w", err)
	}
}

func (c *checker[K, V]) is(rule string, want V) {
	got, there := c.observe(rule)
	switch {
	case !there:
		c.fail(rule, "%v is not observed", c.Key)
	case !c.Equal(want, got):
		c.fail(rule, "%v is observed as %v, not %v", c.Key, got, want)
	}
}

func (c *checker[K, V]) gone(rule string) {
	if got, there := c.observe(rule); there {
		c.fail(rule, "%v is observed as %v, but should be absent", c.Key, got)
	}
}

func (c *checker[K, V]) observe(rule string) (V, bool) {
	vals, err := c.store.Observe(c.ctx)
	c.ok(rule, err)
	v, ok := vals[c.Key]
	return v, ok
}

// fresh checks that the caller may keep and change what Observe returned.
func (c *checker[K, V]) fresh() {
	const rule = "observe/returns a map of its own"
	vals, err := c.store.Observe(c.ctx)
	c.ok(rule, err)
	clear(vals)
	if _, there := c.observe(rule); !there {
		c.fail(rule, "a change of the returned map changed the store")
	}
}
