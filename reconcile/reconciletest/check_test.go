package reconciletest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/reconcile"
	"github.com/cnikit/cnikit/reconcile/reconciletest"
)

func sample() reconciletest.Sample[string, int] {
	return reconciletest.Sample[string, int]{Key: "sample", First: 1, Second: 2}
}

func TestCheckStoreAcceptsTheFake(t *testing.T) {
	f := reconciletest.NewFake(map[string]int{"other": 7})
	require.NoError(t, reconciletest.CheckStore(t.Context(), f, sample()))
	require.Equal(t, map[string]int{"other": 7}, f.Vals())
}

// broken is a correct store with one method replaced.
type broken struct {
	*reconciletest.Fake[string, int]
	observe func() (map[string]int, error)
	apply   func(key string, desired int, observed *int) error
	delete  func(key string, observed int) error
}

func (b broken) Observe(ctx context.Context) (map[string]int, error) {
	if b.observe != nil {
		return b.observe()
	}
	return b.Fake.Observe(ctx)
}

func (b broken) Apply(ctx context.Context, key string, desired int, observed *int) error {
	if b.apply != nil {
		return b.apply(key, desired, observed)
	}
	return b.Fake.Apply(ctx, key, desired, observed)
}

func (b broken) Delete(ctx context.Context, key string, observed int) error {
	if b.delete != nil {
		return b.delete(key, observed)
	}
	return b.Fake.Delete(ctx, key, observed)
}

func TestCheckStoreNamesTheBrokenRule(t *testing.T) {
	exists := errors.New("exists")
	for _, tc := range []struct {
		rule    string
		breakIt func(b *broken)
	}{
		{"observe/absent", func(b *broken) { b.Put("sample", 1) }},
		{"observe/returns a map of its own", func(b *broken) {
			shared := map[string]int{}
			b.observe = func() (map[string]int, error) { return shared, nil }
			b.apply = func(k string, v int, _ *int) error { shared[k] = v; return nil }
			b.delete = func(k string, _ int) error { delete(shared, k); return nil }
		}},
		{"apply/creates", func(b *broken) { b.apply = func(string, int, *int) error { return nil } }},
		{"apply/changes", func(b *broken) {
			b.apply = func(k string, v int, observed *int) error {
				if observed == nil {
					b.Put(k, v)
				}
				return nil
			}
		}},
		{"apply/changes what it was not told of", func(b *broken) {
			b.apply = func(k string, v int, observed *int) error {
				if _, there := b.Vals()[k]; there && observed == nil {
					return exists
				}
				b.Put(k, v)
				return nil
			}
		}},
		{"apply/creates again in spite of a stale observation", func(b *broken) {
			b.apply = func(k string, v int, observed *int) error {
				if _, there := b.Vals()[k]; !there && observed != nil {
					return errors.New("no such key")
				}
				b.Put(k, v)
				return nil
			}
		}},
		{"delete/absent is nil", func(b *broken) {
			b.delete = func(k string, _ int) error {
				if _, there := b.Vals()[k]; !there {
					return errors.New("no such key")
				}
				b.Remove(k)
				return nil
			}
		}},
		{"delete/removes", func(b *broken) { b.delete = func(string, int) error { return nil } }},
		{"delete/removes what changed meanwhile", func(b *broken) {
			b.delete = func(k string, observed int) error {
				if b.Vals()[k] == observed {
					b.Remove(k)
				}
				return nil
			}
		}},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			b := broken{Fake: reconciletest.NewFake[string, int](nil)}
			tc.breakIt(&b)
			var s reconcile.Store[string, int] = b
			require.ErrorContains(t, reconciletest.CheckStore(t.Context(), s, sample()), tc.rule+": ")
		})
	}
}
