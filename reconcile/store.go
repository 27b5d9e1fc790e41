package reconcile

import (
	"context"
	"errors"
)

var (
	// ErrPartial marks an observation that may have missed something, such as an interrupted dump.
	ErrPartial = errors.New("observation is partial")

	// ErrContested is the error of a key that was applied without an error and yet found different by the next looks:
	// another party changes it back, or the store reports it in another form than it was given.
	ErrContested = errors.New("does not stay as applied")
)

// A Store is the outside state of one kind of object: it says what is there and changes it key by key.
//
// The engine calls the methods of one store one at a time, never concurrently, and gives each call a context that ends after
// [Options].Timeout or with Run. A panic is taken as an error of the call.
type Store[K comparable, V any] interface {
	// Observe returns everything that is there and is ours to manage, and nothing else: what it returns and the table
	// does not want is deleted. The engine keeps the map; Observe must not touch it afterwards.
	//
	// With an error that matches [ErrPartial] the map is used for additions only, and the store is observed again soon.
	// After any other error the target is left alone until an observation, retried with back-off, succeeds.
	Observe(ctx context.Context) (map[K]V, error)

	// Apply makes key as desired. observed is what was there at the last look, nil when nothing was seen; it may be out of
	// date, so creating what exists already must work like changing it.
	Apply(ctx context.Context, key K, desired V, observed *V) error

	// Delete removes key. Deleting what is gone already is nil.
	Delete(ctx context.Context, key K, observed V) error
}
