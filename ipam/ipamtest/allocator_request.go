package ipamtest

import (
	"context"
	"errors"
	"net/netip"

	"github.com/cnikit/cnikit/ipam"
)

func requestRules() []allocatorRule {
	return []allocatorRule{
		{"requested/is what the owner gets", dual(), checkRequested},
		{"requested/in IPv6 notation, and twice", dual(), checkRequestedMapped},
		{"requested/again", dual(), checkRequestedAgain},
		{"requested/taken is refused", dual(), checkRequestedTaken},
		{"requested/what is never handed out is refused", requestable(), checkRequestedNever},
		{"requested/with a zone is refused", dual(), checkRequestedZone},
		{"requested/two addresses of one set are refused", dual(), checkRequestedTwo},
		{"requested/another one than the owner has is refused, and costs nothing", dual(), checkRequestedOther},
	}
}

func checkRequested(ctx context.Context, a ipam.Allocator) error {
	got, err := allocate(ctx, a, owner("a"), "fd00::77", "10.1.0.9")
	return errors.Join(err, same("Allocate", got, []netip.Addr{addr("10.1.0.9"), addr("fd00::77")}), has(ctx, a, owner("a"), got...))
}

func checkRequestedMapped(ctx context.Context, a ipam.Allocator) error {
	got, err := allocate(ctx, a, owner("a"), "::ffff:10.1.0.9", "10.1.0.9")
	if err != nil {
		return err
	}
	return expect(got[0] == addr("10.1.0.9"), "first address: got %s, want 10.1.0.9", got[0])
}

func checkRequestedAgain(ctx context.Context, a ipam.Allocator) error {
	first, err := allocate(ctx, a, owner("a"), "10.1.0.9")
	again, errAgain := allocate(ctx, a, owner("a"), "10.1.0.9")
	without, errWithout := allocate(ctx, a, owner("a"))
	return errors.Join(err, errAgain, errWithout, same("second Allocate", again, first), same("Allocate without a request", without, first))
}

func checkRequestedTaken(ctx context.Context, a ipam.Allocator) error {
	held, err := allocate(ctx, a, owner("a"), "10.1.0.9")
	if err != nil {
		return err
	}
	_, err = a.Allocate(ctx, owner("b"), ipam.Options{Requested: []netip.Addr{addr("fd00::9"), addr("10.1.0.9")}})
	return errors.Join(failsWith("Allocate with a request for a taken address", err, ipam.ErrTaken),
		has(ctx, a, owner("a"), held...), has(ctx, a, owner("b")))
}

// requestable has one of each that cannot be requested: .0, .255, .1, .8 to .15.
func requestable() []ipam.RangeSet {
	return []ipam.RangeSet{{{
		Subnet: netip.MustParsePrefix("10.1.0.0/24"), Start: addr("10.1.0.0"), End: addr("10.1.0.255"),
		Exclude: []netip.Prefix{netip.MustParsePrefix("10.1.0.8/29")},
	}}}
}

func checkRequestedNever(ctx context.Context, a ipam.Allocator) error {
	var errs []error
	for _, text := range []string{"10.1.0.0", "10.1.0.255", "10.1.0.1", "10.1.0.8", "10.1.0.15", "10.2.0.5", "fd00::5"} {
		_, err := a.Allocate(ctx, owner("a"), ipam.Options{Requested: []netip.Addr{addr(text)}})
		errs = append(errs, failsWith("Allocate with a request for "+text, err, ipam.ErrNotAllocatable), has(ctx, a, owner("a")))
	}
	return errors.Join(errs...)
}

func checkRequestedZone(ctx context.Context, a ipam.Allocator) error {
	_, err := a.Allocate(ctx, owner("a"), ipam.Options{Requested: []netip.Addr{addr("fd00::9%eth0")}})
	return errors.Join(failsWith("Allocate with a request for fd00::9%eth0", err, ipam.ErrNotAllocatable), has(ctx, a, owner("a")))
}

func checkRequestedTwo(ctx context.Context, a ipam.Allocator) error {
	_, err := a.Allocate(ctx, owner("a"), ipam.Options{Requested: []netip.Addr{addr("10.1.0.8"), addr("10.1.0.9")}})
	return errors.Join(failsWith("Allocate with two requests for one set", err, ipam.ErrNotAllocatable), has(ctx, a, owner("a")))
}

func checkRequestedOther(ctx context.Context, a ipam.Allocator) error {
	held, err := allocate(ctx, a, owner("a"), "10.1.0.9", "fd00::9")
	if err != nil {
		return err
	}
	_, err = a.Allocate(ctx, owner("a"), ipam.Options{Requested: []netip.Addr{addr("fd00::10")}})
	return errors.Join(failsWith("Allocate with a request for another address", err, ipam.ErrHeld), has(ctx, a, owner("a"), held...))
}
