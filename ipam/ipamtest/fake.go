package ipamtest

import (
	"context"
	"slices"
	"sync"

	"github.com/cnikit/cnikit/ipam"
)

// Fake is an allocator for tests of code that uses one: a pool in memory, with its
// real rules and errors, that fails on demand, remembers its calls and prints its
// leases. It is safe for concurrent use, as far as [ipam.Allocator] says.
type Fake struct {
	pool  *ipam.Pool
	store *ipam.Memory

	mu    sync.Mutex
	fails map[Op][]error
	calls []Call
}

// Op is a method of an allocator.
type Op string

// The methods of an allocator.
const (
	Allocate Op = "allocate"
	Undo     Op = "undo"
	Release  Op = "release"
	Leases   Op = "leases"
	Retain   Op = "retain"
	Status   Op = "status"
	Usage    Op = "usage"
)

// Call is one call of an allocator's method. Owner is zero where the method takes none.
type Call struct {
	Op    Op
	Owner ipam.Owner
}

// String renders "allocate web/eth0".
func (c Call) String() string {
	if c.Owner == (ipam.Owner{}) {
		return string(c.Op)
	}
	return string(c.Op) + " " + c.Owner.String()
}

var _ ipam.Allocator = (*Fake)(nil)

// NewFake returns a fake that hands out addresses as [ipam.NewPool] does.
func NewFake(o ipam.PoolOptions, sets ...ipam.RangeSet) (*Fake, error) {
	store := ipam.NewMemory(ipam.MemoryOptions{Rest: o.Quarantine})
	pool, err := ipam.NewPool(store, o, sets...)
	if err != nil {
		return nil, err
	}
	return &Fake{pool: pool, store: store, fails: map[Op][]error{}}, nil
}

// Fail lets the next calls of a method fail with these errors, one each, without doing
// anything; a nil error lets one succeed. They come after those of an earlier Fail.
func (f *Fake) Fail(op Op, errs ...error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fails[op] = append(f.fails[op], errs...)
}

// Calls returns the calls so far, those that failed included.
func (f *Fake) Calls() []Call {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

// String renders the leases, one a line, by ascending address.
func (f *Fake) String() string { return f.store.String() }

// begin notes a call and returns the error that it must fail with.
func (f *Fake) begin(op Op, o ipam.Owner) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, Call{op, o})
	if len(f.fails[op]) == 0 {
		return nil
	}
	err := f.fails[op][0]
	f.fails[op] = f.fails[op][1:]
	return err
}

// Allocate implements [ipam.Allocator].
func (f *Fake) Allocate(ctx context.Context, o ipam.Owner, opts ipam.Options) ([]ipam.Lease, error) {
	if err := f.begin(Allocate, o); err != nil {
		return nil, err
	}
	return f.pool.Allocate(ctx, o, opts)
}

// Undo implements [ipam.Allocator].
func (f *Fake) Undo(ctx context.Context, leases []ipam.Lease) error {
	if err := f.begin(Undo, ipam.Owner{}); err != nil {
		return err
	}
	return f.pool.Undo(ctx, leases)
}

// Release implements [ipam.Allocator].
func (f *Fake) Release(ctx context.Context, o ipam.Owner) error {
	if err := f.begin(Release, o); err != nil {
		return err
	}
	return f.pool.Release(ctx, o)
}

// Leases implements [ipam.Allocator].
func (f *Fake) Leases(ctx context.Context, o ipam.Owner) ([]ipam.Lease, error) {
	if err := f.begin(Leases, o); err != nil {
		return nil, err
	}
	return f.pool.Leases(ctx, o)
}

// Retain implements [ipam.Allocator].
func (f *Fake) Retain(ctx context.Context, valid []ipam.Owner) error {
	if err := f.begin(Retain, ipam.Owner{}); err != nil {
		return err
	}
	return f.pool.Retain(ctx, valid)
}

// Status implements [ipam.Allocator].
func (f *Fake) Status(ctx context.Context) error {
	if err := f.begin(Status, ipam.Owner{}); err != nil {
		return err
	}
	return f.pool.Status(ctx)
}

// Usage implements [ipam.Allocator].
func (f *Fake) Usage(ctx context.Context) (ipam.Usage, error) {
	if err := f.begin(Usage, ipam.Owner{}); err != nil {
		return ipam.Usage{}, err
	}
	return f.pool.Usage(ctx)
}
