package ipam

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Pool allocates round robin: the next address of a range set is the first free
// one behind the address reserved last, so that a released address rests as
// long as possible. Leases that a changed configuration has no place for stay until
// they are released; Usage reports them. It is safe for concurrent use as far as
// [Allocator] says.
type Pool struct {
	store   Store
	options PoolOptions
	spaces  []space
}

// PoolOptions are the options of a [Pool]. The zero value is the default.
type PoolOptions struct {
	// Quarantine is how long an address rests after its release before it is
	// handed out again; default 0: it does not rest. The store must be told to keep
	// the times of release that long (Rest in [MemoryOptions] and hostlocal.Options),
	// otherwise NewPool fails. A requested address is given even if it rests.
	Quarantine time.Duration
	// RefuseHeld lets Allocate fail with [ErrHeld] when the owner has an address
	// of every range set already; default: it gets the same leases again.
	RefuseHeld bool
}

var _ Allocator = (*Pool)(nil)

// NewPool returns a pool over a store. The range sets are normalized; errors about them
// are of type [*RangeError]. A quarantine that is longer than the store keeps times of
// release is an error, too. A pool without range sets cannot allocate, but it can
// release, list and retain: cleaning up needs no ranges.
func NewPool(store Store, o PoolOptions, sets ...RangeSet) (*Pool, error) {
	sets, err := NormalizeSets(sets)
	if err != nil {
		return nil, err
	}
	if kept := store.Rest(); o.Quarantine > kept {
		return nil, fmt.Errorf("quarantine %s: the store keeps times of release for %s only; "+
			"set Rest in its options (hostlocal.Options, ipam.MemoryOptions) to at least %[1]s", o.Quarantine, kept)
	}
	return &Pool{store: store, options: o, spaces: spaces(sets)}, nil
}

// Allocate implements [Allocator].
func (p *Pool) Allocate(ctx context.Context, o Owner, opts Options) ([]Lease, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if len(p.spaces) == 0 {
		return nil, fmt.Errorf("%w: the pool has no range set", ErrNotAllocatable)
	}
	wanted, err := p.assign(opts.Requested)
	if err != nil {
		return nil, err
	}
	var leases []Lease
	err = p.store.Update(ctx, func(tx Tx) error {
		a := allocation{Pool: p, tx: tx, owner: o, wanted: wanted, rested: p.rested()}
		leases, err = a.run(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return leases, nil
}

// rested is the time since which a release still keeps an address back.
func (p *Pool) rested() time.Time {
	if p.options.Quarantine <= 0 {
		return time.Time{}
	}
	return time.Now().Add(-p.options.Quarantine)
}

// assign gives each requested address to the range set that contains it; the
// zero Addr means that nothing is requested of a set.
func (p *Pool) assign(requested []netip.Addr) ([]netip.Addr, error) {
	wanted := make([]netip.Addr, len(p.spaces))
	for _, addr := range requested {
		if addr = addr.Unmap(); addr.Zone() != "" {
			return nil, fmt.Errorf("%w: %s has a zone; request %s", ErrNotAllocatable, addr, addr.WithZone(""))
		}
		set := slices.IndexFunc(p.spaces, func(s space) bool { return s.Contains(addr) })
		if set < 0 {
			return nil, fmt.Errorf("%w: %s lies in no range; request an address of %s", ErrNotAllocatable, addr, p.ranges())
		}
		if wanted[set].IsValid() && wanted[set] != addr {
			return nil, fmt.Errorf("%w: %s and %s are both requested of range set %d, which gives one address; request one of them",
				ErrNotAllocatable, wanted[set], addr, set)
		}
		wanted[set] = addr
	}
	return wanted, nil
}

func (p *Pool) ranges() string {
	sets := make([]string, len(p.spaces))
	for i, s := range p.spaces {
		sets[i] = s.String()
	}
	return strings.Join(sets, " or ")
}

// refuse returns why an address that a set contains is never handed out; nil when
// it may be.
func (p *Pool) refuse(s space, addr netip.Addr) error {
	if !addr.IsValid() || s.holds(addr) {
		return nil
	}
	for _, other := range p.spaces {
		for _, r := range other.RangeSet {
			if r.Gateway == addr {
				return fmt.Errorf("%w: %s is the gateway of %s; request another address", ErrNotAllocatable, addr, r.Subnet)
			}
		}
	}
	r := s.RangeSet[s.index(addr)]
	for _, x := range r.Exclude {
		if x.Contains(addr) {
			return fmt.Errorf("%w: %s is excluded from %s by %s; request another address", ErrNotAllocatable, addr, r.Subnet, x)
		}
	}
	return fmt.Errorf("%w: %s is the network or broadcast address of %s; request another address", ErrNotAllocatable, addr, r.Subnet)
}

// Undo implements [Allocator]. Nothing is written when nothing is fresh.
func (p *Pool) Undo(ctx context.Context, leases []Lease) error {
	if !slices.ContainsFunc(leases, func(l Lease) bool { return l.Fresh }) {
		return nil
	}
	return p.store.Update(ctx, func(tx Tx) error {
		var errs []error
		for _, l := range leases {
			if !l.Fresh {
				continue
			}
			if err := tx.Release(l.Address.Addr(), l.Owner); err != nil {
				errs = append(errs, fmt.Errorf("give back %s of %s: %w", l.Address.Addr(), l.Owner, err))
			}
		}
		return errors.Join(errs...)
	})
}

// Release implements [Allocator]. Nothing is written when there is nothing to
// release.
func (p *Pool) Release(ctx context.Context, o Owner) error {
	held, err := p.held(ctx, o)
	if err != nil || len(held) == 0 {
		return err
	}
	return p.store.Update(ctx, func(tx Tx) error {
		var errs []error
		for _, r := range held {
			if err := tx.Release(r.Address, r.Owner); err != nil {
				errs = append(errs, fmt.Errorf("release %s of %s: %w", r.Address, o, err))
			}
		}
		return errors.Join(errs...)
	})
}

// Leases implements [Allocator].
func (p *Pool) Leases(ctx context.Context, o Owner) ([]Lease, error) {
	held, err := p.held(ctx, o)
	if err != nil {
		return nil, err
	}
	var leases []Lease
	for _, r := range held {
		leases = append(leases, p.lease(o, r.Address))
	}
	return leases, nil
}

func (p *Pool) held(ctx context.Context, o Owner) (held []Reservation, err error) {
	if o.ContainerID == "" {
		return nil, fmt.Errorf("%w: containerID is empty; name the attachment", ErrInvalidOwner)
	}
	err = p.store.View(ctx, func(tx ReadTx) error {
		held, err = tx.Owned(o)
		return err
	})
	return preferExact(held, o), err
}

// preferExact drops the records without an interface name when there are others:
// they belong to another interface of the container then.
func preferExact(held []Reservation, o Owner) []Reservation {
	exact := slices.DeleteFunc(slices.Clone(held), func(r Reservation) bool { return r.Owner != o })
	if len(exact) > 0 {
		return exact
	}
	return held
}

func (p *Pool) lease(o Owner, addr netip.Addr) Lease {
	for _, s := range p.spaces {
		if s.Contains(addr) {
			return s.lease(o, addr)
		}
	}
	return Lease{Owner: o, Address: netip.PrefixFrom(addr, addr.BitLen())}
}

// Retain implements [Allocator].
func (p *Pool) Retain(ctx context.Context, valid []Owner) error {
	keep := make(map[Owner]bool, 2*len(valid))
	for _, o := range valid {
		keep[o] = true
		keep[Owner{ContainerID: o.ContainerID}] = true
	}
	stale, err := p.stale(ctx, keep)
	if len(stale) == 0 {
		return err
	}
	errs := []error{err}
	errs = append(errs, p.store.Update(ctx, func(tx Tx) error {
		var errs []error
		for _, r := range stale {
			if err := tx.Release(r.Address, r.Owner); err != nil {
				errs = append(errs, fmt.Errorf("release stale %s of %s: %w", r.Address, r.Owner, err))
			}
		}
		return errors.Join(errs...)
	}))
	return errors.Join(errs...)
}

// stale returns the reservations of owners that are not kept, as far as they can
// be read, and the errors of the rest.
func (p *Pool) stale(ctx context.Context, keep map[Owner]bool) ([]Reservation, error) {
	var stale []Reservation
	err := p.store.View(ctx, func(tx ReadTx) error {
		var errs []error
		for r, err := range tx.All() {
			switch {
			case err != nil:
				errs = append(errs, err)
			case !keep[r.Owner]:
				stale = append(stale, r)
			}
		}
		return errors.Join(errs...)
	})
	return stale, err
}
