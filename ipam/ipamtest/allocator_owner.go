package ipamtest

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/cnikit/cnikit/ipam"
)

func ownerRules() []allocatorRule {
	return []allocatorRule{
		{"del/frees every lease", small(), checkDel},
		{"del/of an owner without leases is nil", dual(), checkDelUnknown},
		{"del/leaves others alone", dual(), checkDelOthers},
		{"leases/by ascending address, with their subnets", dual(), checkLeases},
		{"leases/of an owner without any is no error", dual(), func(ctx context.Context, a ipam.Allocator) error { return has(ctx, a, owner("a")) }},
		{"gc/keeps what is valid and frees the rest", dual(), checkRetain},
		{"gc/an empty list frees everything", dual(), checkRetainNone},
	}
}

// checkDel would run out of addresses if some stayed.
func checkDel(ctx context.Context, a ipam.Allocator) error {
	for n := range 20 {
		o := owner(fmt.Sprint("a", n))
		if _, err := allocate(ctx, a, o); err != nil {
			return err
		}
		if err := errors.Join(a.Release(ctx, o), has(ctx, a, o)); err != nil {
			return err
		}
	}
	return nil
}

func checkDelUnknown(ctx context.Context, a ipam.Allocator) error {
	_, err := allocate(ctx, a, owner("a"))
	return errors.Join(err, a.Release(ctx, owner("a")), a.Release(ctx, owner("a")), a.Release(ctx, owner("never seen")))
}

func checkDelOthers(ctx context.Context, a ipam.Allocator) error {
	_, err := allocate(ctx, a, owner("a"))
	held, errOther := allocate(ctx, a, owner("aa"))
	return errors.Join(err, errOther, a.Release(ctx, owner("a")), has(ctx, a, owner("aa"), held...))
}

func checkLeases(ctx context.Context, a ipam.Allocator) error {
	want, err := a.Allocate(ctx, owner("a"), ipam.Options{})
	got, errLeases := a.Leases(ctx, owner("a"))
	slices.SortFunc(want, func(a, b ipam.Lease) int { return a.Address.Addr().Compare(b.Address.Addr()) })
	for i := range want {
		want[i].Fresh = false // of an Allocate alone
	}
	return errors.Join(err, errLeases, same("Leases", got, want))
}

func checkRetain(ctx context.Context, a ipam.Allocator) error {
	held, err := allocate(ctx, a, owner("a"))
	_, errB := allocate(ctx, a, owner("b"))
	net1 := ipam.Owner{ContainerID: "a", IfName: "net1"}
	_, errNet1 := allocate(ctx, a, net1)
	return errors.Join(err, errB, errNet1, a.Retain(ctx, []ipam.Owner{owner("a"), owner("unknown")}),
		has(ctx, a, owner("a"), held...), has(ctx, a, owner("b")), has(ctx, a, net1))
}

func checkRetainNone(ctx context.Context, a ipam.Allocator) error {
	_, err := allocate(ctx, a, owner("a"))
	_, errB := allocate(ctx, a, owner("b"))
	return errors.Join(err, errB, a.Retain(ctx, nil), has(ctx, a, owner("a")), has(ctx, a, owner("b")))
}
