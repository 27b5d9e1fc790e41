package ipamtest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cnikit/cnikit/ipam"
)

func isFresh(l ipam.Lease) bool { return l.Fresh }

func checkFresh(ctx context.Context, a ipam.Allocator) error {
	first, err := a.Allocate(ctx, owner("a"), ipam.Options{})
	again, errAgain := a.Allocate(ctx, owner("a"), ipam.Options{})
	leases, errLeases := a.Leases(ctx, owner("a"))
	stale := func(l ipam.Lease) bool { return !l.Fresh }
	return errors.Join(err, errAgain, errLeases,
		expect(!slices.ContainsFunc(first, stale), "the leases of the first Allocate are not all fresh: %v", first),
		expect(!slices.ContainsFunc(again, isFresh), "leases of the second Allocate are fresh: %v", again),
		expect(!slices.ContainsFunc(leases, isFresh), "leases of Leases are fresh: %v", leases))
}

// checkUndo would run out of addresses if some stayed.
func checkUndo(ctx context.Context, a ipam.Allocator) error {
	for n := range 20 {
		o := owner(fmt.Sprint("undone", n))
		leases, err := a.Allocate(ctx, o, ipam.Options{})
		if err != nil {
			return fmt.Errorf("Allocate for %s: %w", o, err)
		}
		if err := errors.Join(a.Undo(ctx, leases), has(ctx, a, o), a.Undo(ctx, leases)); err != nil {
			return err
		}
	}
	return nil
}

func checkUndoOthers(ctx context.Context, a ipam.Allocator) error {
	leases, err := a.Allocate(ctx, owner("a"), ipam.Options{})
	if err := errors.Join(err, a.Undo(ctx, leases)); err != nil {
		return err
	}
	held, err := a.Allocate(ctx, owner("b"), ipam.Options{Requested: addressesOf(leases)[:1]})
	return errors.Join(err, a.Undo(ctx, leases), has(ctx, a, owner("b"), addressesOf(held)...))
}

func checkUndoNothing(ctx context.Context, a ipam.Allocator) error {
	held, err := allocate(ctx, a, owner("a"))
	again, errAgain := a.Allocate(ctx, owner("a"), ipam.Options{})
	return errors.Join(err, errAgain, a.Undo(ctx, again), a.Undo(ctx, nil), has(ctx, a, owner("a"), held...))
}
