package ipamtest

import (
	"context"
	"errors"

	"github.com/cnikit/cnikit/ipam"
)

func figureRules() []allocatorRule {
	return []allocatorRule{
		{"status/nil while every set has an address", small(), checkStatusFree},
		{"status/exhausted before an ADD fails", small(), checkStatusExhausted},
		{"usage/counts by set and range", everyKind(), checkUsage},
		{"usage/changes nothing", dual(), checkUsageReads},
	}
}

func checkStatusFree(ctx context.Context, a ipam.Allocator) error {
	errs := []error{a.Status(ctx)}
	for _, id := range []string{"a", "b"} {
		_, err := allocate(ctx, a, owner(id))
		errs = append(errs, err, a.Status(ctx))
	}
	return errors.Join(errs...)
}

func checkStatusExhausted(ctx context.Context, a ipam.Allocator) error {
	if err := fill(ctx, a); err != nil {
		return err
	}
	err := failsWith("Status of an exhausted set", a.Status(ctx), ipam.ErrExhausted)
	return errors.Join(err, a.Release(ctx, owner("a")), a.Status(ctx))
}

func checkUsage(ctx context.Context, a ipam.Allocator) error {
	_, err := allocate(ctx, a, owner("a"), "10.1.0.6")
	_, errB := allocate(ctx, a, owner("b"), "10.1.0.33")
	u, errUsage := a.Usage(ctx)
	if err := errors.Join(err, errB, errUsage, expect(len(u.Sets) == 1, "Usage has %d sets, want 1", len(u.Sets))); err != nil {
		return err
	}
	var got []ipam.Figures
	for _, r := range u.Sets[0].Ranges {
		got = append(got, r.Figures)
	}
	want := []ipam.Figures{{Size: 2, Used: 1}, {Size: 1}, {Size: 1}, {Size: 3, Used: 1}}
	return errors.Join(same("Usage of the ranges", got, want),
		expect(u.Sets[0].Figures == ipam.Figures{Size: 7, Used: 2}, "Usage of the set: got %s, want 2 of 7 used", u.Sets[0].Figures),
		expect(len(u.Outside) == 0, "Usage tells of leases outside the ranges: %v", u.Outside))
}

func checkUsageReads(ctx context.Context, a ipam.Allocator) error {
	held, err := allocate(ctx, a, owner("a"))
	_, errUsage := a.Usage(ctx)
	return errors.Join(err, errUsage, a.Status(ctx), has(ctx, a, owner("a"), held...))
}
