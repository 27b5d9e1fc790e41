package ipam

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/netip"
	"time"
)

// Status implements [Allocator]. It searches as Allocate does, and takes nothing.
func (p *Pool) Status(ctx context.Context) error {
	return p.store.View(ctx, func(tx ReadTx) error {
		var errs []error
		for i := range p.spaces {
			free, err := p.hasFree(ctx, tx, i)
			if err != nil {
				return fmt.Errorf("search range set %d: %w", i, err)
			}
			if !free {
				errs = append(errs, p.exhausted(tx, i, p.rested()))
			}
		}
		return errors.Join(errs...)
	})
}

// hasFree looks where the next address would come from, which is where the first
// free one is most of the time.
func (p *Pool) hasFree(ctx context.Context, tx ReadTx, set int) (bool, error) {
	last, err := tx.Last(set)
	if err != nil {
		return false, err
	}
	for addr, err := range free(ctx, tx, p.spaces[set].after(last), p.rested()) {
		if err != nil {
			return false, err
		}
		if _, taken, err := tx.Get(addr); err != nil || !taken {
			return err == nil, err
		}
	}
	return false, nil
}

// free yields, in order, the addresses of segments that the store takes for free.
// Whether they are is for its user to see.
func free(ctx context.Context, tx ReadTx, segments []segment, rested time.Time) iter.Seq2[netip.Addr, error] {
	return func(yield func(netip.Addr, error) bool) {
		for _, s := range segments {
			for next := s.first; s.contains(next); next = next.Next() {
				addr, err := tx.NextFree(next, s.last, rested)
				if err = errors.Join(ctx.Err(), err); err != nil {
					yield(netip.Addr{}, err)
					return
				}
				if !addr.IsValid() {
					break
				}
				if !yield(addr, nil) {
					return
				}
				next = addr
			}
		}
	}
}

// exhausted describes a set in which no free address was found.
func (p *Pool) exhausted(tx ReadTx, set int, rested time.Time) error {
	s := p.spaces[set]
	f, oldest, err := figures(tx, s.all(), rested)
	e := &ExhaustedError{Set: set, Ranges: s.RangeSet, Size: f.Size, KeptBack: s.keptBack()}
	if f.Resting > 0 {
		e.Resting, e.Next = f.Resting, oldest.Add(p.options.Quarantine)
	}
	return errors.Join(e, err)
}
