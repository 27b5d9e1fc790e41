package ipamtest

import (
	"context"
	"errors"
	"time"

	"github.com/cnikit/cnikit/ipam"
)

func restRules() []storeRule {
	return []storeRule{
		{name: "rest/next passes over what was released since", rest: time.Hour, check: checkRestNext},
		{name: "rest/next leaves out nothing before that", rest: time.Hour, check: checkRestEnds},
		{name: "rest/the zero time leaves out nothing", rest: time.Hour, check: checkRestZero},
		{name: "rest/what is reserved again does not rest", rest: time.Hour, check: checkRestReserved},
		{name: "rest/what the same update reserved does not rest", rest: time.Hour, check: checkRestFresh},
		{name: "rest/goes on after a reservation in vain", rest: time.Hour, check: checkRestKept},
		{name: "rest/counts, and tells the first release", rest: time.Hour, check: checkResting},
		{name: "rest/lasts from the last release", rest: time.Hour, check: checkRestAgain},
		{name: "rest/says that times are kept", rest: time.Hour, check: checkRestSaid},
		{name: "rest/says nothing that is not kept", check: checkRestTrue},
	}
}

// used reserves addresses and releases them in an update after that.
func used(ctx context.Context, s ipam.Store, texts ...string) error {
	var errs []error
	for _, text := range texts {
		errs = append(errs, reserve(ctx, s, text, owner("a")))
	}
	errs = append(errs, s.Update(ctx, func(tx ipam.Tx) error {
		var errs []error
		for _, text := range texts {
			errs = append(errs, tx.Release(addr(text), owner("a")))
		}
		return errors.Join(errs...)
	}))
	return errors.Join(errs...)
}

func checkRestSaid(_ context.Context, s ipam.Store) error {
	return expect(s.Rest() >= time.Hour, "a store that was told to keep times of release for 1h0m0s says that it keeps them for %s", s.Rest())
}

// checkRestTrue gets a store that need not keep times of release, but may.
func checkRestTrue(ctx context.Context, s ipam.Store) error {
	if s.Rest() < time.Hour {
		return expect(s.Rest() >= 0, "times of release are kept for %s, want 0s if they are not", s.Rest())
	}
	return errors.Join(used(ctx, s, "10.1.0.2"), s.View(ctx, func(tx ipam.ReadTx) error {
		n, _, err := tx.Resting(addr("10.1.0.2"), addr("10.1.0.9"), longAgo())
		return errors.Join(err, expect(n == 1, "times of release are said to be kept for %s, and the one of a moment ago is not", s.Rest()))
	}))
}

// Times of this long ago and from now stand for before and after everything that the
// rules do, whatever the precision of the store.
func longAgo() time.Time { return time.Now().Add(-30 * time.Minute) }
func later() time.Time   { return time.Now().Add(30 * time.Minute) }

func checkRestNext(ctx context.Context, s ipam.Store) error {
	err := errors.Join(used(ctx, s, "10.1.0.2", "10.1.0.3"), reserve(ctx, s, "10.1.0.4", owner("b")))
	return errors.Join(err, s.View(ctx, func(tx ipam.ReadTx) error {
		return errors.Join(nextSince(tx, "10.1.0.2", "10.1.0.9", longAgo(), "10.1.0.5"), nextSince(tx, "10.1.0.2", "10.1.0.3", longAgo(), ""))
	}))
}

func checkRestEnds(ctx context.Context, s ipam.Store) error {
	return errors.Join(used(ctx, s, "10.1.0.2", "10.1.0.3"), reserve(ctx, s, "10.1.0.2", owner("b")), s.View(ctx, func(tx ipam.ReadTx) error {
		return nextSince(tx, "10.1.0.2", "10.1.0.9", later(), "10.1.0.3")
	}))
}

func checkRestZero(ctx context.Context, s ipam.Store) error {
	return errors.Join(used(ctx, s, "10.1.0.2"), s.View(ctx, func(tx ipam.ReadTx) error {
		return nextIs(tx, "10.1.0.2", "10.1.0.9", "10.1.0.2")
	}))
}

func checkRestReserved(ctx context.Context, s ipam.Store) error {
	err := errors.Join(used(ctx, s, "10.1.0.2", "10.1.0.3"), reserve(ctx, s, "10.1.0.2", owner("b")))
	return errors.Join(err, s.View(ctx, func(tx ipam.ReadTx) error {
		n, _, err := tx.Resting(addr("10.1.0.2"), addr("10.1.0.9"), longAgo())
		return errors.Join(err, expect(n == 1, "resting addresses: got %d, want 1: the other one is reserved", n))
	}))
}

func checkRestFresh(ctx context.Context, s ipam.Store) error {
	return s.Update(ctx, func(tx ipam.Tx) error {
		return errors.Join(reserveIn(tx, "10.1.0.2", owner("a")), tx.Release(addr("10.1.0.2"), owner("a")),
			nextSince(tx, "10.1.0.2", "10.1.0.9", longAgo(), "10.1.0.2"))
	})
}

func checkRestKept(ctx context.Context, s ipam.Store) error {
	return errors.Join(used(ctx, s, "10.1.0.2"), s.Update(ctx, func(tx ipam.Tx) error {
		return errors.Join(reserveIn(tx, "10.1.0.2", owner("b")), tx.Release(addr("10.1.0.2"), owner("b")),
			nextSince(tx, "10.1.0.2", "10.1.0.9", longAgo(), "10.1.0.3"))
	}))
}

func checkResting(ctx context.Context, s ipam.Store) error {
	before := time.Now()
	err := used(ctx, s, "10.1.0.2", "10.1.0.3", "fd00::2")
	after := time.Now()
	err = errors.Join(err, used(ctx, s, "10.1.0.200"))
	return errors.Join(err, s.View(ctx, func(tx ipam.ReadTx) error {
		n, oldest, err := tx.Resting(addr("10.1.0.0"), addr("10.1.0.255"), longAgo())
		none, zero, errNone := tx.Resting(addr("10.1.0.0"), addr("10.1.0.255"), later())
		part, _, errPart := tx.Resting(addr("10.1.0.3"), addr("10.1.0.9"), longAgo())
		const slack = time.Second // of stores that keep coarser times
		return errors.Join(err, errNone, errPart,
			expect(n == 3 && part == 1 && none == 0, "resting addresses: got %d, %d in a part and %d after their rest, want 3, 1 and 0", n, part, none),
			expect(zero.IsZero(), "time of the first release where nothing rests: got %s, want the zero time", zero),
			expect(!oldest.Before(before.Add(-slack)) && !oldest.After(after.Add(slack)), "time of the first release: got %s, want one from %s to %s", oldest, before, after))
	}))
}

// checkRestAgain works with times that the store may have rounded, so it looks at the
// order only.
func checkRestAgain(ctx context.Context, s ipam.Store) error {
	first := func(tx ipam.ReadTx) (time.Time, error) {
		n, at, err := tx.Resting(addr("10.1.0.2"), addr("10.1.0.2"), longAgo())
		return at, errors.Join(err, expect(n == 1, "resting addresses: got %d, want 1", n))
	}
	var once, twice time.Time
	err := errors.Join(used(ctx, s, "10.1.0.2"), s.View(ctx, func(tx ipam.ReadTx) (err error) { once, err = first(tx); return err }))
	for start := time.Now(); time.Since(start) < time.Millisecond; {
		err = errors.Join(err, used(ctx, s, "10.1.0.2"))
	}
	err = errors.Join(err, s.View(ctx, func(tx ipam.ReadTx) (err error) { twice, err = first(tx); return err }))
	return errors.Join(err, expect(twice.After(once), "the first release noted is %s, and after another one it is %s", once, twice))
}
