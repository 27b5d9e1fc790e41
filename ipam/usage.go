package ipam

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// Usage says how much of the range sets of an allocator is in use. It is a look at
// one moment.
type Usage struct {
	Sets []SetUsage
	// Outside are the leases by ascending address that lie where nothing is handed
	// out: in no range, on a gateway, in an exclusion. The configuration has changed
	// since they were reserved, or somebody else reserved them. They are kept until
	// their owners are released.
	Outside []Lease
}

// SetUsage is the use of one range set: the sums of its ranges.
type SetUsage struct {
	Figures
	Ranges []RangeUsage
}

// RangeUsage is the use of one range.
type RangeUsage struct {
	Figures
	Range Range
}

// Figures count addresses, each up to math.MaxUint64.
type Figures struct {
	Size    uint64 // that may be handed out
	Used    uint64 // of these, reserved ones
	Resting uint64 // of these, released ones in quarantine
}

// Free returns how many addresses can be had now. A Size of math.MaxUint64 stands for
// anything larger too, so Free is then a lower bound.
func (f Figures) Free() uint64 {
	return f.Size - min(f.Size, addSize(f.Used, f.Resting))
}

// String renders "12 of 253 used, 3 resting".
func (f Figures) String() string {
	size := fmt.Sprint(f.Size)
	if f.Size == math.MaxUint64 {
		size = "at least 2^64-1"
	}
	text := fmt.Sprintf("%d of %s used", f.Used, size)
	if f.Resting > 0 {
		text += fmt.Sprintf(", %d resting", f.Resting)
	}
	return text
}

func (f Figures) plus(o Figures) Figures {
	return Figures{Size: addSize(f.Size, o.Size), Used: addSize(f.Used, o.Used), Resting: addSize(f.Resting, o.Resting)}
}

// String renders a line for each range and for each lease outside.
func (u Usage) String() string {
	var b strings.Builder
	for i, s := range u.Sets {
		for _, r := range s.Ranges {
			fmt.Fprintf(&b, "set %d: %s: %s\n", i, r.Range, r.Figures)
		}
	}
	for _, l := range u.Outside {
		fmt.Fprintf(&b, "outside: %s\n", l)
	}
	return b.String()
}

// Usage implements [Allocator]. It asks the store for counts, and looks at every lease
// only when there are some outside of the ranges. Those whose record cannot be read are
// among them, as nobody's.
func (p *Pool) Usage(ctx context.Context) (Usage, error) {
	var u Usage
	err := p.store.View(ctx, func(tx ReadTx) error {
		for i := range p.spaces {
			set, err := p.setUsage(tx, i)
			if err != nil {
				return err
			}
			u.Sets = append(u.Sets, set)
		}
		more, err := anyOutside(tx, u.Sets)
		if err != nil || !more {
			return err
		}
		u.Outside, err = p.outside(tx)
		return err
	})
	return u, err
}

func (p *Pool) setUsage(tx ReadTx, set int) (u SetUsage, err error) {
	s := p.spaces[set]
	for i, r := range s.RangeSet {
		f, _, err := figures(tx, s.segments[i], p.rested())
		if err != nil {
			return u, fmt.Errorf("count leases of range set %d: %w", set, err)
		}
		u.Ranges = append(u.Ranges, RangeUsage{Figures: f, Range: r})
		u.Figures = u.plus(f)
	}
	return u, nil
}

// figures counts what segments hold. oldest is the time of the first release among
// the resting addresses.
func figures(tx ReadTx, segments []segment, rested time.Time) (f Figures, oldest time.Time, err error) {
	f.Size = sizeOf(segments)
	for _, s := range segments {
		used, err := tx.Count(s.first, s.last)
		if err != nil {
			return f, oldest, err
		}
		f.Used += used
		if rested.IsZero() {
			continue
		}
		resting, at, err := tx.Resting(s.first, s.last, rested)
		if err != nil {
			return f, oldest, err
		}
		f.Resting += resting
		if oldest.IsZero() || !at.IsZero() && at.Before(oldest) {
			oldest = at
		}
	}
	return f, oldest, nil
}

// anyOutside reports whether there are more reservations than the sets have.
func anyOutside(tx ReadTx, sets []SetUsage) (bool, error) {
	var inside uint64
	for _, s := range sets {
		inside += s.Used
	}
	v4, err4 := tx.Count(netip.IPv4Unspecified(), netip.AddrFrom4([4]byte{255, 255, 255, 255}))
	v6, err6 := tx.Count(netip.IPv6Unspecified(), lastAddr(netip.PrefixFrom(netip.IPv6Unspecified(), 0)))
	return v4+v6 != inside, errors.Join(err4, err6)
}

// outside returns the leases where nothing is handed out; those that cannot be read are
// nobody's. Its error is of records whose address is not known.
func (p *Pool) outside(tx ReadTx) ([]Lease, error) {
	var leases []Lease
	var errs []error
	for r, err := range tx.All() {
		if err != nil && !r.Address.IsValid() {
			errs = append(errs, err)
			continue
		}
		if slices.ContainsFunc(p.spaces, func(s space) bool { return s.holds(r.Address) }) {
			continue
		}
		_, taken, err := tx.Get(r.Address) // All has what nobody holds, too
		if errs = append(errs, err); taken {
			leases = append(leases, p.lease(r.Owner, r.Address))
		}
	}
	slices.SortFunc(leases, func(a, b Lease) int { return a.Address.Addr().Compare(b.Address.Addr()) })
	return leases, errors.Join(errs...)
}
