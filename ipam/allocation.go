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

// allocation is one Allocate call inside the store's lock.
type allocation struct {
	*Pool
	tx     Tx
	owner  Owner
	wanted []netip.Addr // of each set; the zero Addr: any
	rested time.Time    // what was released since still rests; zero: nothing does
	taken  []netip.Addr // what this call reserved, for roll back
}

// run takes one address of every set, and gives back all it took when it fails.
func (a *allocation) run(ctx context.Context) ([]Lease, error) {
	leases, err := a.take(ctx)
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

func (a *allocation) take(ctx context.Context) ([]Lease, error) {
	leases, err := a.present()
	if err != nil {
		return nil, err
	}
	var fresh []int // sets that give an address
	for i := range leases {
		if leases[i].Address.IsValid() {
			continue
		}
		if leases[i], err = a.reserve(ctx, i); err != nil {
			return nil, err
		}
		fresh = append(fresh, i)
	}
	for _, i := range fresh {
		leases[i].Fresh = true
		if err := a.tx.SetLast(i, leases[i].Address.Addr()); err != nil {
			return nil, err
		}
	}
	return leases, nil
}

// present returns what the owner has in each set already, the zero Lease where it
// has nothing, and refuses what cannot be reserved whatever is free. Nothing is
// written so far.
func (a *allocation) present() ([]Lease, error) {
	held, err := a.tx.Owned(a.owner)
	if err != nil {
		return nil, err
	}
	held = preferExact(held, a.owner)
	leases := make([]Lease, len(a.spaces))
	missing := 0
	for i, s := range a.spaces {
		if leases[i], err = a.held(held, s.RangeSet, a.wanted[i]); err != nil {
			return nil, err
		}
		if leases[i].Address.IsValid() {
			continue
		}
		missing++
		if err := a.refuse(s, a.wanted[i]); err != nil {
			return nil, err
		}
	}
	if missing == 0 && a.options.RefuseHeld {
		return nil, fmt.Errorf("%w: %s has %s; delete its attachment first", ErrHeld, a.owner, addresses(leases))
	}
	return leases, nil
}

func addresses(leases []Lease) string {
	var b strings.Builder
	for i, l := range leases {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(l.Address.Addr().String())
	}
	return b.String()
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
	return s.lease(a.owner, r.Address), nil
}

// reserve takes the wanted address of a set, or the next free one.
func (a *allocation) reserve(ctx context.Context, set int) (Lease, error) {
	s := a.spaces[set]
	if wanted := a.wanted[set]; wanted.IsValid() {
		return a.reserveWanted(s.RangeSet, wanted)
	}
	last, err := a.tx.Last(set)
	if err != nil {
		return Lease{}, err
	}
	for addr, err := range free(ctx, a.tx, s.after(last), a.rested) {
		if err != nil {
			return Lease{}, fmt.Errorf("search range set %d: %w", set, err)
		}
		ok, err := a.try(addr)
		if err != nil {
			return Lease{}, err
		}
		if ok {
			return s.lease(a.owner, addr), nil
		}
	}
	return Lease{}, a.exhausted(a.tx, set, a.rested)
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
	return s.lease(a.owner, wanted), nil
}

func (a *allocation) try(addr netip.Addr) (bool, error) {
	ok, err := a.tx.Reserve(addr, a.owner)
	if ok {
		a.taken = append(a.taken, addr)
	}
	return ok, err
}

// lease returns the lease of an address that the set contains.
func (s RangeSet) lease(o Owner, addr netip.Addr) Lease {
	r := s[s.index(addr)]
	return Lease{Owner: o, Address: netip.PrefixFrom(addr, r.Subnet.Bits()), Gateway: r.Gateway}
}
