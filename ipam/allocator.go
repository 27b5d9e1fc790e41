package ipam

import (
	"context"
	"net/netip"
)

// Allocator hands out addresses. Implementations are safe for concurrent use,
// but calls for one owner must not overlap; CNI runtimes see to that.
type Allocator interface {
	// Allocate returns the leases of an owner, one per range set in their order,
	// and reserves those that are missing, which are [Lease.Fresh]. When it fails,
	// it has released what this call reserved, and nothing else.
	//
	// Errors match [ErrExhausted], [ErrTaken], [ErrNotAllocatable], [ErrHeld] or
	// [ErrInvalidOwner], or come from the store.
	Allocate(ctx context.Context, o Owner, opts Options) ([]Lease, error)
	// Undo frees those of leases, which an Allocate call returned, that this call
	// reserved, as far as their owner still holds them. It is for whoever cannot
	// use them after all: what the owner had before stays.
	Undo(ctx context.Context, leases []Lease) error
	// Release frees every lease of an owner, whatever the ranges are by now. An
	// owner without leases is no error.
	Release(ctx context.Context, o Owner) error
	// Leases returns the leases of an owner by ascending address; none is no
	// error.
	Leases(ctx context.Context, o Owner) ([]Lease, error)
	// Retain frees every lease whose owner is not in valid; an empty list frees
	// all of them. It goes on after an error and returns all errors joined. No
	// Allocate may be in flight whose owner is not in valid.
	Retain(ctx context.Context, valid []Owner) error
	// Status returns nil when every range set has a free address. An error matches
	// [ErrExhausted], or comes from the store.
	Status(ctx context.Context) error
	// Usage returns how much of each range set is in use, and the leases outside
	// of them.
	Usage(ctx context.Context) (Usage, error)
}

// Options are the wishes of one Allocate call. The zero value has none.
type Options struct {
	// Requested are addresses that the owner must get, at most one per range
	// set. If one of them cannot be had the call fails. Duplicates are ignored.
	Requested []netip.Addr
}
