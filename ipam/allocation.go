package ipam

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
)

// allocation is one Allocate call inside the store's lock.
type allocation struct {
	tx    Tx
	owner Owner
	taken []netip.Addr // what this call reserved, for roll back
}

// run takes one address of every set, those of wanted where valid, and gives
// back all it took when it fails.
func (a *allocation) run(ctx context.Context, sets []RangeSet, wanted []netip.Addr) ([]Lease, error) {
	leases, err := a.take(ctx, sets, wanted)
	if err == nil {
		return leases, nil
	}
	errs := []error{err}
	for _, addr := range a.taken {
		if err := a.tx.Release(addr, a.owner); err != nil {
			errs = append(errs, fmt.Errorf("give back %s: %w", addr, err))
		}
	}
	return nil, errors.Join(errs...)
}

func (a *allocation) take(ctx context.Context, sets []RangeSet, wanted []netip.Addr) ([]Lease, error) {
	held, err := a.tx.Owned(a.owner)
	if err != nil {
		return nil, err
	}
	held = preferExact(held, a.owner)
	leases := make([]Lease, len(sets))
	fresh := make(map[int]netip.Addr, len(sets))
	for i, s := range sets {
		if leases[i], err = a.held(held, s, wanted[i]); err != nil {
			return nil, err
		}
		if leases[i].Address.IsValid() {
			continue
		}
		if leases[i], err = a.reserve(ctx, i, s, wanted[i]); err != nil {
			return nil, err
		}
		fresh[i] = leases[i].Address.Addr()
	}
	for i, addr := range fresh {
		if err := a.tx.SetLast(i, addr); err != nil {
			return nil, err
		}
	}
	return leases, nil
}

// held returns the lease the owner has in a set already; the zero Lease when it
// has none.
func (a *allocation) held(held []Reservation, s RangeSet, wanted netip.Addr) (Lease, error) {
	i := slices.IndexFunc(held, func(r Reservation) bool { return r.Address == wanted && r.Owner == a.owner })
	if i < 0 {
		i = slices.IndexFunc(held, func(r Reservation) bool { return s.Contains(r.Address) })
	}
	if i < 0 {
		return Lease{}, nil
	}
	r := held[i]
	switch {
	case r.Owner != a.owner:
		return Lease{}, fmt.Errorf("%w: %s is recorded for container %s without an interface name; delete its attachment first",
			ErrHeld, r.Address, r.Owner.ContainerID)
	case wanted.IsValid() && r.Address != wanted:
		return Lease{}, fmt.Errorf("%w: %s has %s and requests %s; delete its attachment first or request what it has",
			ErrHeld, a.owner, r.Address, wanted)
	}
	return s[s.index(r.Address)].lease(a.owner, r.Address), nil
}

// reserve takes the wanted address of a set, or the next free one.
func (a *allocation) reserve(ctx context.Context, set int, s RangeSet, wanted netip.Addr) (Lease, error) {
	if wanted.IsValid() {
		return a.reserveWanted(s, wanted)
	}
	last, err := a.tx.Last(set)
	if err != nil {
		return Lease{}, err
	}
	for addr, r := range s.after(last) {
		if err := ctx.Err(); err != nil {
			return Lease{}, fmt.Errorf("search range set %d: %w", set, err)
		}
		ok, err := a.try(addr)
		if err != nil {
			return Lease{}, err
		}
		if ok {
			return r.lease(a.owner, addr), nil
		}
	}
	return Lease{}, &ExhaustedError{Set: set, Ranges: s, Size: s.Size()}
}

func (a *allocation) reserveWanted(s RangeSet, wanted netip.Addr) (Lease, error) {
	ok, err := a.try(wanted)
	if err != nil {
		return Lease{}, err
	}
	if !ok {
		holder, _, err := a.tx.Get(wanted)
		return Lease{}, errors.Join(fmt.Errorf("%w: requested %s belongs to %s; request another address or delete that attachment",
			ErrTaken, wanted, holder), err)
	}
	return s[s.index(wanted)].lease(a.owner, wanted), nil
}

func (a *allocation) try(addr netip.Addr) (bool, error) {
	ok, err := a.tx.Reserve(addr, a.owner)
	if ok {
		a.taken = append(a.taken, addr)
	}
	return ok, err
}

func (r Range) lease(o Owner, addr netip.Addr) Lease {
	return Lease{Owner: o, Address: netip.PrefixFrom(addr, r.Subnet.Bits()), Gateway: r.Gateway}
}
