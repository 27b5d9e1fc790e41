package ipamtest

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/cnikit/cnikit/ipam"
)

// Allocator checks that an allocator keeps the contract of [ipam.Allocator], in a
// subtest for each rule. fresh returns a new one without leases that hands out the
// addresses of sets at once, without a quarantine, and gives an owner that asks again
// what it has. It may stop the test, and clean up after it.
func Allocator(t *testing.T, fresh func(t *testing.T, sets ...ipam.RangeSet) ipam.Allocator) {
	t.Helper()
	for _, r := range allocatorRules() {
		t.Run(r.name, func(t *testing.T) {
			if err := r.check(t.Context(), fresh(t, r.sets...)); err != nil {
				t.Error(err)
			}
		})
	}
}

// allocatorRule is one rule of the contract. check gets an allocator of its own, over
// these range sets.
type allocatorRule struct {
	name  string
	sets  []ipam.RangeSet
	check func(ctx context.Context, a ipam.Allocator) error
}

func allocatorRules() []allocatorRule {
	return slices.Concat(addRules(), requestRules(), ownerRules(), figureRules())
}

// set is a range set of whole subnets.
func set(subnets ...string) (s ipam.RangeSet) {
	for _, subnet := range subnets {
		s = append(s, ipam.Range{Subnet: netip.MustParsePrefix(subnet)})
	}
	return s
}

// dual has room for 13 owners.
func dual() []ipam.RangeSet {
	return []ipam.RangeSet{set("10.1.0.0/28"), set("fd00::/64")}
}

// small is exhausted after 3 owners: the second set has 10.2.0.2 to 10.2.0.4.
func small() []ipam.RangeSet {
	return []ipam.RangeSet{set("10.1.0.0/24"), {{Subnet: netip.MustParsePrefix("10.2.0.0/24"), End: addr("10.2.0.4")}}}
}

func addRules() []allocatorRule {
	return []allocatorRule{
		{"add/one address of every set, in their order", dual(), checkAdd},
		{"add/no address twice", dual(), checkAddOthers},
		{"add/the same owner gets the same leases", dual(), checkAddAgain},
		{"add/interfaces of a container are owners of their own", dual(), checkAddInterfaces},
		{"add/an owner that cannot be recorded is refused", dual(), checkAddInvalid},
		{"add/every address of the ranges, and no other", everyKind(), checkAddAll},
		{"add/exhausted says which set", small(), checkAddExhausted},
		{"add/what a failed call took is free again", small(), checkAddGivesBack},
		{"add/a cancelled call leaves nothing that it does not report", dual(), checkAddCancelled},
		{"add/many at once", small(), checkAddAtOnce},
		{"add/says what is fresh", dual(), checkFresh},
		{"undo/frees what the call reserved", small(), checkUndo},
		{"undo/keeps what the owner had", dual(), checkUndoNothing},
		{"undo/leaves alone what another has by now", dual(), checkUndoOthers},
	}
}

// allocate returns the addresses of an owner.
func allocate(ctx context.Context, a ipam.Allocator, o ipam.Owner, requested ...string) ([]netip.Addr, error) {
	var opts ipam.Options
	for _, text := range requested {
		opts.Requested = append(opts.Requested, addr(text))
	}
	leases, err := a.Allocate(ctx, o, opts)
	if err != nil {
		return nil, fmt.Errorf("Allocate for %s: %w", o, err)
	}
	return addressesOf(leases), nil
}

// has checks which addresses an owner holds.
func has(ctx context.Context, a ipam.Allocator, o ipam.Owner, want ...netip.Addr) error {
	leases, err := a.Leases(ctx, o)
	return errors.Join(err, same("Leases of "+o.String(), addressesOf(leases), want))
}

func checkAdd(ctx context.Context, a ipam.Allocator) error {
	leases, err := a.Allocate(ctx, owner("a"), ipam.Options{})
	if err != nil || len(leases) != 2 {
		return errors.Join(err, fmt.Errorf("got the leases %v, want one of each set", leases))
	}
	v4, v6 := leases[0], leases[1]
	return errors.Join(
		expect(v4.Address.Masked() == netip.MustParsePrefix("10.1.0.0/28"), "first address: got %s, want one of 10.1.0.0/28 with its prefix length", v4.Address),
		expect(v6.Address.Masked() == netip.MustParsePrefix("fd00::/64"), "second address: got %s, want one of fd00::/64 with its prefix length", v6.Address),
		expect(v4.Gateway == addr("10.1.0.1") && v6.Gateway == addr("fd00::1"), "gateways: got %s and %s, want 10.1.0.1 and fd00::1", v4.Gateway, v6.Gateway),
		expect(v4.Owner == owner("a") && v6.Owner == owner("a"), "owners: got %s and %s, want a/eth0", v4.Owner, v6.Owner))
}

func checkAddOthers(ctx context.Context, a ipam.Allocator) error {
	seen := map[netip.Addr]string{}
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		got, err := allocate(ctx, a, owner(id))
		if err != nil {
			return err
		}
		for _, address := range got {
			if other, ok := seen[address]; ok {
				return fmt.Errorf("%s was given to %s and to %s", address, other, id)
			}
			seen[address] = id
		}
	}
	return nil
}

func checkAddAgain(ctx context.Context, a ipam.Allocator) error {
	first, err := allocate(ctx, a, owner("a"))
	_, errOther := allocate(ctx, a, owner("b"))
	again, errAgain := allocate(ctx, a, owner("a"))
	return errors.Join(err, errOther, errAgain, same("second Allocate", again, first), has(ctx, a, owner("a"), first...))
}

func checkAddInterfaces(ctx context.Context, a ipam.Allocator) error {
	net1 := ipam.Owner{ContainerID: "a", IfName: "net1"}
	first, err := allocate(ctx, a, owner("a"))
	second, errSecond := allocate(ctx, a, net1)
	return errors.Join(err, errSecond, has(ctx, a, owner("a"), first...), has(ctx, a, net1, second...),
		expect(!slices.Equal(first, second), "both interfaces of a got %v", first),
		a.Release(ctx, owner("a")), has(ctx, a, net1, second...))
}

func checkAddInvalid(ctx context.Context, a ipam.Allocator) error {
	var errs []error
	for _, o := range []ipam.Owner{{}, {ContainerID: "a"}, {IfName: "eth0"}, {ContainerID: "a\nb", IfName: "eth0"}, {ContainerID: "a", IfName: "eth 0"}} {
		_, err := a.Allocate(ctx, o, ipam.Options{})
		errs = append(errs, failsWith(fmt.Sprintf("Allocate for %q/%q", o.ContainerID, o.IfName), err, ipam.ErrInvalidOwner))
	}
	return errors.Join(errs...)
}

// everyKind is one set of ranges with all that is kept back, and pairs and single
// addresses, which have none to keep back but their gateway.
func everyKind() []ipam.RangeSet {
	return []ipam.RangeSet{{
		{Subnet: netip.MustParsePrefix("10.1.0.0/29"), Start: addr("10.1.0.0"), End: addr("10.1.0.7"), Exclude: []netip.Prefix{netip.MustParsePrefix("10.1.0.4/31")}},
		{Subnet: netip.MustParsePrefix("10.1.0.8/31")},
		{Subnet: netip.MustParsePrefix("10.1.0.16/32")},
		{Subnet: netip.MustParsePrefix("10.1.0.0/24"), Start: addr("10.1.0.32"), End: addr("10.1.0.34"), Gateway: addr("10.1.0.2")},
	}}
}

func checkAddAll(ctx context.Context, a ipam.Allocator) error {
	var got []netip.Addr
	for n := 0; ; n++ {
		address, err := allocate(ctx, a, owner(fmt.Sprint("a", n)))
		if errors.Is(err, ipam.ErrExhausted) {
			break
		}
		if err != nil || n == 100 {
			return errors.Join(err, fmt.Errorf("got %d addresses and no exhaustion", len(got)))
		}
		got = append(got, address...)
	}
	slices.SortFunc(got, netip.Addr.Compare)
	var want []netip.Addr
	for _, text := range []string{"10.1.0.3", "10.1.0.6", "10.1.0.9", "10.1.0.16", "10.1.0.32", "10.1.0.33", "10.1.0.34"} {
		want = append(want, addr(text))
	}
	return same("all addresses that are handed out", got, want)
}

// fill makes the second set of small exhausted.
func fill(ctx context.Context, a ipam.Allocator) error {
	var errs []error
	for _, id := range []string{"a", "b", "c"} {
		_, err := allocate(ctx, a, owner(id))
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func checkAddExhausted(ctx context.Context, a ipam.Allocator) error {
	if err := fill(ctx, a); err != nil {
		return err
	}
	_, err := a.Allocate(ctx, owner("d"), ipam.Options{})
	if err := failsWith("Allocate from an exhausted set", err, ipam.ErrExhausted); err != nil {
		return err
	}
	var full *ipam.ExhaustedError
	return expect(errors.As(err, &full) && full.Set == 1 && full.Size == 3, "the error says %v, want the figures of set 1, which has 3 addresses", err)
}

func checkAddGivesBack(ctx context.Context, a ipam.Allocator) error {
	if err := fill(ctx, a); err != nil {
		return err
	}
	for range 300 { // more than the first set has
		if _, err := a.Allocate(ctx, owner("d"), ipam.Options{}); err == nil {
			return errors.New("an exhausted set gave an address")
		}
		if err := has(ctx, a, owner("d")); err != nil {
			return err
		}
	}
	if err := a.Release(ctx, owner("b")); err != nil {
		return err
	}
	_, err := allocate(ctx, a, owner("d"))
	return err
}

func checkAddCancelled(ctx context.Context, a ipam.Allocator) error {
	done, cancel := context.WithCancel(ctx)
	cancel()
	leases, err := a.Allocate(done, owner("a"), ipam.Options{})
	return errors.Join(expect(err == nil || len(leases) == 0, "got an error and leases: %v", leases), has(ctx, a, owner("a"), addressesOf(leases)...))
}

// checkAddAtOnce lets more owners than there are addresses ask at once.
func checkAddAtOnce(ctx context.Context, a ipam.Allocator) error {
	const n = 12
	got := make([][]netip.Addr, n)
	err := runAtOnce(n, func(i int) error {
		addresses, err := allocate(ctx, a, owner(fmt.Sprint("once", i)))
		if got[i] = addresses; errors.Is(err, ipam.ErrExhausted) {
			return nil
		}
		return err
	})
	all := slices.Concat(got...)
	slices.SortFunc(all, netip.Addr.Compare)
	return errors.Join(err, expect(len(slices.Compact(slices.Clone(all))) == len(all), "addresses were given twice: %v", all),
		expect(len(all) == 6, "%d addresses were given, want 3 of each set", len(all)))
}
