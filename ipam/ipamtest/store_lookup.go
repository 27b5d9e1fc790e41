package ipamtest

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"github.com/cnikit/cnikit/ipam"
)

func lookupRules() []storeRule {
	return []storeRule{
		{name: "owned/by ascending address, of the interface alone", check: checkOwned},
		{name: "owned/with the records of the whole container", check: checkOwnedWhole},
		{name: "all/yields every reservation once", check: checkAll},
		{name: "all/ends when its user does", check: checkAllEnds},
		{name: "count/from the first to the last", check: checkCount},
		{name: "next/the lowest free address", check: checkNext},
		{name: "next/none is the zero address", check: checkNextNone},
		{name: "next/at the ends of the families", check: checkNextEnds},
		{name: "next/in huge ranges", check: checkNextHuge},
		{name: "next/sees what the same update did", check: checkNextInUpdate},
	}
}

func checkOwned(ctx context.Context, s ipam.Store) error {
	net1 := ipam.Owner{ContainerID: "a", IfName: "net1"}
	err := errors.Join(
		reserve(ctx, s, "fd00::1", owner("a")), reserve(ctx, s, "10.1.0.10", owner("a")), reserve(ctx, s, "10.1.0.9", owner("a")),
		reserve(ctx, s, "10.1.0.11", net1), reserve(ctx, s, "10.1.0.12", owner("b")))
	return errors.Join(err, s.View(ctx, func(tx ipam.ReadTx) error {
		return errors.Join(
			ownedIs(tx, owner("a"), record("10.1.0.9", owner("a")), record("10.1.0.10", owner("a")), record("fd00::1", owner("a"))),
			ownedIs(tx, net1, record("10.1.0.11", net1)),
			ownedIs(tx, owner("unknown")))
	}))
}

func checkOwnedWhole(ctx context.Context, s ipam.Store) error {
	whole := ipam.Owner{ContainerID: "a"}
	err := errors.Join(reserve(ctx, s, "10.1.0.10", whole), reserve(ctx, s, "10.1.0.9", owner("a")))
	return errors.Join(err, s.View(ctx, func(tx ipam.ReadTx) error {
		return errors.Join(
			ownedIs(tx, owner("a"), record("10.1.0.9", owner("a")), record("10.1.0.10", whole)),
			ownedIs(tx, ipam.Owner{ContainerID: "a", IfName: "net1"}, record("10.1.0.10", whole)),
			ownedIs(tx, owner("b")))
	}))
}

func record(text string, o ipam.Owner) ipam.Reservation {
	return ipam.Reservation{Address: addr(text), Owner: o}
}

func ownedIs(tx ipam.ReadTx, o ipam.Owner, want ...ipam.Reservation) error {
	got, err := tx.Owned(o)
	return errors.Join(err, same("owned by "+o.String(), got, want))
}

func checkAll(ctx context.Context, s ipam.Store) error {
	want := []ipam.Reservation{record("10.1.0.9", owner("a")), record("10.1.0.10", owner("b")), record("fd00::1", owner("a"))}
	var errs []error
	for _, r := range want {
		errs = append(errs, reserve(ctx, s, r.Address.String(), r.Owner))
	}
	errs = append(errs, s.View(ctx, func(tx ipam.ReadTx) error {
		got, err := collect(tx)
		return errors.Join(err, same("all", got, want))
	}))
	return errors.Join(errs...)
}

func checkAllEnds(ctx context.Context, s ipam.Store) error {
	err := errors.Join(reserve(ctx, s, "10.1.0.9", owner("a")), reserve(ctx, s, "10.1.0.10", owner("b")))
	return errors.Join(err, s.View(ctx, func(tx ipam.ReadTx) error {
		calls := 0
		tx.All()(func(ipam.Reservation, error) bool { calls++; return false })
		return expect(calls == 1, "All called its user %d times, who wanted no more after the first", calls)
	}))
}

// scattered takes some addresses of both families.
func scattered(ctx context.Context, s ipam.Store) error {
	return s.Update(ctx, func(tx ipam.Tx) error {
		var errs []error
		for _, text := range []string{"10.1.0.2", "10.1.0.3", "10.1.0.5", "10.1.15.255", "10.1.16.0", "10.200.0.1", "fd00::2", "fd00::ffff:0:0:2"} {
			errs = append(errs, reserveIn(tx, text, owner(text)))
		}
		return errors.Join(errs...)
	})
}

func checkCount(ctx context.Context, s ipam.Store) error {
	return errors.Join(scattered(ctx, s), s.View(ctx, func(tx ipam.ReadTx) error {
		return errors.Join(
			countIs(tx, "10.1.0.2", "10.1.0.5", 3), countIs(tx, "10.1.0.3", "10.1.0.4", 1), countIs(tx, "10.1.0.4", "10.1.0.4", 0),
			countIs(tx, "10.1.0.5", "10.1.0.2", 0), countIs(tx, "10.1.0.0", "10.1.16.0", 5), countIs(tx, "10.1.16.0", "10.255.255.255", 2),
			countIs(tx, "0.0.0.0", "255.255.255.255", 6), countIs(tx, "fd00::", "fd00::ffff:ffff:ffff:ffff", 2),
			countIs(tx, "::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", 2), countIs(tx, "fd00::3", "fd00::ffff:0:0:1", 0))
	}))
}

func countIs(tx ipam.ReadTx, first, last string, want uint64) error {
	n, err := tx.Count(addr(first), addr(last))
	return errors.Join(err, expect(n == want, "count from %s to %s: got %d, want %d", first, last, n, want))
}

func checkNext(ctx context.Context, s ipam.Store) error {
	return errors.Join(scattered(ctx, s), s.View(ctx, func(tx ipam.ReadTx) error {
		return errors.Join(
			nextIs(tx, "10.1.0.1", "10.1.0.9", "10.1.0.1"), nextIs(tx, "10.1.0.2", "10.1.0.9", "10.1.0.4"),
			nextIs(tx, "10.1.0.5", "10.1.0.9", "10.1.0.6"), nextIs(tx, "10.1.0.2", "10.1.0.4", "10.1.0.4"),
			nextIs(tx, "10.1.15.255", "10.1.20.0", "10.1.16.1"), nextIs(tx, "fd00::2", "fd00::9", "fd00::3"))
	}))
}

func checkNextNone(ctx context.Context, s ipam.Store) error {
	return errors.Join(scattered(ctx, s), s.View(ctx, func(tx ipam.ReadTx) error {
		return errors.Join(nextIs(tx, "10.1.0.2", "10.1.0.3", ""), nextIs(tx, "10.1.0.5", "10.1.0.5", ""),
			nextIs(tx, "10.1.15.255", "10.1.16.0", ""), nextIs(tx, "fd00::2", "fd00::2", ""), nextIs(tx, "10.1.0.9", "10.1.0.8", ""))
	}))
}

func checkNextEnds(ctx context.Context, s ipam.Store) error {
	const last4, last6 = "255.255.255.255", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"
	err := errors.Join(reserve(ctx, s, last4, owner("a")), reserve(ctx, s, last6, owner("a")), reserve(ctx, s, "0.0.0.0", owner("a")))
	return errors.Join(err, s.View(ctx, func(tx ipam.ReadTx) error {
		return errors.Join(nextIs(tx, last4, last4, ""), nextIs(tx, last6, last6, ""), nextIs(tx, "0.0.0.0", last4, "0.0.0.1"),
			nextIs(tx, "255.255.255.254", last4, "255.255.255.254"), countIs(tx, last4, last4, 1), countIs(tx, "::", last6, 1))
	}))
}

func checkNextHuge(ctx context.Context, s ipam.Store) error {
	return errors.Join(scattered(ctx, s), s.View(ctx, func(tx ipam.ReadTx) error {
		return errors.Join(nextIs(tx, "fd00::2", "fdff:ffff::", "fd00::3"),
			nextIs(tx, "fd00::ffff:0:0:2", "fdff:ffff::", "fd00::ffff:0:0:3"), nextIs(tx, "::", "fdff::", "::"))
	}))
}

func checkNextInUpdate(ctx context.Context, s ipam.Store) error {
	return s.Update(ctx, func(tx ipam.Tx) error {
		err := errors.Join(reserveIn(tx, "10.1.0.2", owner("a")), reserveIn(tx, "10.1.0.3", owner("a")), nextIs(tx, "10.1.0.2", "10.1.0.9", "10.1.0.4"))
		if err != nil {
			return err
		}
		return errors.Join(tx.Release(addr("10.1.0.2"), owner("a")), nextIs(tx, "10.1.0.2", "10.1.0.9", "10.1.0.2"), countIs(tx, "10.1.0.2", "10.1.0.9", 1))
	})
}

func nextIs(tx ipam.ReadTx, first, last, want string) error {
	return nextSince(tx, first, last, time.Time{}, want)
}

func nextSince(tx ipam.ReadTx, first, last string, rested time.Time, want string) error {
	var wanted netip.Addr
	if want != "" {
		wanted = addr(want)
	}
	got, err := tx.NextFree(addr(first), addr(last), rested)
	return errors.Join(err, expect(got == wanted, "next free address from %s to %s: got %s, want %s", first, last, got, wanted))
}
