package ipamtest

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/cnikit/cnikit/ipam"
)

// Store checks that a store keeps the contract of [ipam.Store], in a subtest for each
// rule. fresh returns a new and empty store, which keeps times of release for as long
// as rest says; 0: it need not keep any. It may stop the test, and clean up after it.
func Store(t *testing.T, fresh func(t *testing.T, rest time.Duration) ipam.Store) {
	t.Helper()
	for _, r := range storeRules() {
		t.Run(r.name, func(t *testing.T) {
			if err := r.check(t.Context(), fresh(t, r.rest)); err != nil {
				t.Error(err)
			}
		})
	}
}

// storeRule is one rule of the contract. check gets a store of its own.
type storeRule struct {
	name  string
	rest  time.Duration
	check func(ctx context.Context, s ipam.Store) error
}

func storeRules() []storeRule {
	return slices.Concat(reservationRules(), lookupRules(), lockRules(), restRules())
}

// update runs a function inside the store's lock that returns no value.
func update(fn func(tx ipam.Tx) error) func(context.Context, ipam.Store) error {
	return func(ctx context.Context, s ipam.Store) error { return s.Update(ctx, fn) }
}

func reservationRules() []storeRule {
	return []storeRule{
		{name: "reserve/takes what is free", check: checkReserve},
		{name: "reserve/refuses what is taken", check: checkReserveTaken},
		{name: "release/frees what the owner holds", check: checkRelease},
		{name: "release/leaves alone what another holds", check: checkReleaseOther},
		{name: "release/absent is nil", check: update(func(tx ipam.Tx) error { return tx.Release(addr("10.1.0.5"), owner("a")) })},
		{name: "last/is what was noted, for each set", check: checkLast},
		{name: "empty/reads as empty", check: checkEmpty},
	}
}

func checkReserve(ctx context.Context, s ipam.Store) error {
	var errs []error
	for _, text := range []string{"10.1.0.5", "fd00::5"} {
		errs = append(errs, reserve(ctx, s, text, owner("a")), holds(ctx, s, text, owner("a")))
	}
	return errors.Join(errs...)
}

func checkReserveTaken(ctx context.Context, s ipam.Store) error {
	if err := reserve(ctx, s, "10.1.0.5", owner("a")); err != nil {
		return err
	}
	err := s.Update(ctx, func(tx ipam.Tx) error {
		for _, o := range []ipam.Owner{owner("b"), owner("a")} {
			ok, err := tx.Reserve(addr("10.1.0.5"), o)
			if err := errors.Join(err, expect(!ok, "a taken address was reserved again, for %s", o)); err != nil {
				return err
			}
		}
		return nil
	})
	return errors.Join(err, holds(ctx, s, "10.1.0.5", owner("a")))
}

func checkRelease(ctx context.Context, s ipam.Store) error {
	err := errors.Join(
		reserve(ctx, s, "10.1.0.5", owner("a")),
		reserve(ctx, s, "10.1.0.6", owner("a")),
		s.Update(ctx, func(tx ipam.Tx) error { return tx.Release(addr("10.1.0.5"), owner("a")) }),
		holds(ctx, s, "10.1.0.6", owner("a")),
		isFree(ctx, s, "10.1.0.5"))
	if err != nil {
		return err
	}
	return reserve(ctx, s, "10.1.0.5", owner("b"))
}

func checkReleaseOther(ctx context.Context, s ipam.Store) error {
	err := reserve(ctx, s, "10.1.0.5", owner("a"))
	for _, o := range []ipam.Owner{owner("b"), {ContainerID: "a", IfName: "net1"}, {ContainerID: "a"}} {
		err = errors.Join(err,
			s.Update(ctx, func(tx ipam.Tx) error { return tx.Release(addr("10.1.0.5"), o) }),
			holds(ctx, s, "10.1.0.5", owner("a")))
	}
	return err
}

func checkLast(ctx context.Context, s ipam.Store) error {
	err := s.Update(ctx, func(tx ipam.Tx) error {
		return errors.Join(tx.SetLast(0, addr("10.1.0.9")), tx.SetLast(2, addr("fd00::9")), tx.SetLast(0, addr("10.1.0.8")))
	})
	return errors.Join(err, s.View(ctx, func(tx ipam.ReadTx) error {
		var got []netip.Addr
		for set := range 3 {
			last, err := tx.Last(set)
			if err != nil {
				return err
			}
			got = append(got, last)
		}
		return same("last of sets 0 to 2", got, []netip.Addr{addr("10.1.0.8"), {}, addr("fd00::9")})
	}))
}

func checkEmpty(ctx context.Context, s ipam.Store) error {
	return s.View(ctx, func(tx ipam.ReadTx) error {
		_, taken, errGet := tx.Get(addr("10.1.0.5"))
		owned, errOwned := tx.Owned(owner("a"))
		last, errLast := tx.Last(0)
		n, errCount := tx.Count(addr("0.0.0.0"), addr("255.255.255.255"))
		next, errNext := tx.NextFree(addr("10.1.0.2"), addr("10.1.0.6"), time.Time{})
		all, errAll := collect(tx)
		return errors.Join(errGet, errOwned, errLast, errCount, errNext, errAll,
			expect(!taken && len(owned) == 0 && !last.IsValid() && n == 0 && len(all) == 0, "an empty store has something"),
			expect(next == addr("10.1.0.2"), "next free address of an empty store: got %s, want 10.1.0.2", next))
	})
}

// reserve takes an address that must be free.
func reserve(ctx context.Context, s ipam.Store, text string, o ipam.Owner) error {
	return s.Update(ctx, func(tx ipam.Tx) error { return reserveIn(tx, text, o) })
}

func reserveIn(tx ipam.Tx, text string, o ipam.Owner) error {
	ok, err := tx.Reserve(addr(text), o)
	return errors.Join(err, expect(ok || err != nil, "%s is free and was not reserved", text))
}

// holds checks in a View of its own who has an address.
func holds(ctx context.Context, s ipam.Store, text string, want ipam.Owner) error {
	return s.View(ctx, func(tx ipam.ReadTx) error {
		o, taken, err := tx.Get(addr(text))
		return errors.Join(err, expect(taken && o == want, "%s: held by %s (taken: %t), want %s", text, o, taken, want))
	})
}

func isFree(ctx context.Context, s ipam.Store, text string) error {
	return s.View(ctx, func(tx ipam.ReadTx) error {
		o, taken, err := tx.Get(addr(text))
		return errors.Join(err, expect(!taken, "%s: held by %s, want it free", text, o))
	})
}

// collect returns every reservation by ascending address.
func collect(tx ipam.ReadTx) ([]ipam.Reservation, error) {
	var all []ipam.Reservation
	var errs []error
	for r, err := range tx.All() {
		if err != nil {
			errs = append(errs, fmt.Errorf("record of %s: %w", r.Address, err))
			continue
		}
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b ipam.Reservation) int { return a.Address.Compare(b.Address) })
	return all, errors.Join(errs...)
}
