package ipamtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/cnikit/cnikit/ipam"
)

// OracleOptions say what [Oracle] does.
type OracleOptions struct {
	// Seed makes the random operations; equal seeds make equal operations.
	Seed uint64
	// Steps is the number of operations; default 1000.
	Steps int
	// Quarantine is that of the pools; the store must keep times of release as long.
	// The oracle then sleeps between its steps, and knows the time to the nanosecond:
	// it must run inside a bubble of testing/synctest. Default: off, and no sleeping.
	Quarantine time.Duration
}

// Oracle drives random operations through pools over an empty store that nobody else
// uses: Allocate with and without requests, Release, Retain, changes of the ranges,
// reservations that no pool made. It compares every answer with that of a model, and
// stops the test at the first difference with the operations that led to it.
func Oracle(t testing.TB, s ipam.Store, o OracleOptions) {
	t.Helper()
	w := &walk{
		ctx: t.Context(), store: s, rnd: rand.New(rand.NewPCG(o.Seed, 5)),
		model: newModel(o.Quarantine), layouts: layouts(),
	}
	for _, l := range w.layouts {
		pool, err := ipam.NewPool(s, ipam.PoolOptions{Quarantine: o.Quarantine}, l...)
		if err != nil {
			t.Fatal(err)
		}
		w.pools = append(w.pools, pool)
	}
	steps := o.Steps
	if steps == 0 {
		steps = 1000
	}
	for n := range steps {
		if err := w.step(n); err != nil {
			t.Fatalf("seed %d, step %d: %v\nthe operations before:\n%s", o.Seed, n, err, strings.Join(w.log, "\n"))
		}
	}
}

// layouts are the configurations among which the oracle changes. They overlap, shrink
// and move; each is small, so that it is exhausted most of the time.
func layouts() []sets {
	v4, v6 := netip.MustParsePrefix("10.1.0.0/28"), netip.MustParsePrefix("fd00::/125")
	out := []sets{
		{
			{{Subnet: v4, Exclude: []netip.Prefix{netip.MustParsePrefix("10.1.0.8/31"), netip.MustParsePrefix("10.1.0.12/32")}}},
			{{Subnet: v6}},
		},
		{
			{{Subnet: v4, Start: addr("10.1.0.9"), End: addr("10.1.0.15"), Gateway: addr("10.1.0.4")}, {Subnet: v4, End: addr("10.1.0.6"), Gateway: addr("10.1.0.11")}},
			{{Subnet: netip.MustParsePrefix("fd00::/127")}, {Subnet: netip.MustParsePrefix("fd00::2/128")}, {Subnet: v6, Start: addr("fd00::5"), Gateway: addr("fd00::6")}},
		},
		{{{Subnet: netip.MustParsePrefix("10.1.0.2/31"), Gateway: addr("10.1.0.3")}, {Subnet: netip.MustParsePrefix("10.1.0.8/29")}}},
	}
	for i := range out {
		out[i], _ = ipam.NormalizeSets(out[i])
	}
	return out
}

// walk is one run of the oracle.
type walk struct {
	ctx     context.Context
	store   ipam.Store
	rnd     *rand.Rand
	model   *model
	layouts []sets
	pools   []*ipam.Pool
	current int
	log     []string // the last operations
}

func (w *walk) note(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf(format, args...))
	if len(w.log) > 30 {
		w.log = w.log[1:]
	}
}

func (w *walk) step(n int) error {
	if w.model.quarantine > 0 && w.rnd.IntN(3) == 0 {
		d := time.Duration(w.rnd.Int64N(int64(w.model.quarantine / 4)))
		w.note("sleep %s", d)
		time.Sleep(d)
	}
	if w.rnd.IntN(100) == 0 {
		w.current = w.rnd.IntN(len(w.layouts))
		w.note("change to %v", w.layouts[w.current])
	}
	o := w.owner()
	err := w.act(o)
	if err == nil {
		err = w.compareLeases(o)
	}
	if err == nil {
		err = w.compareStore(o, n%50 == 0)
	}
	return err
}

func (w *walk) owner() ipam.Owner {
	o := owner(string(rune('a' + w.rnd.IntN(14))))
	if w.rnd.IntN(8) == 0 {
		o.IfName = "net1"
	}
	return o
}

// address is one that matters to some layout.
func (w *walk) address() netip.Addr {
	if w.rnd.IntN(3) == 0 {
		return netip.AddrFrom16([16]byte{0: 0xfd, 15: byte(w.rnd.IntN(9))})
	}
	return netip.AddrFrom4([4]byte{10, 1, 0, byte(w.rnd.IntN(18))})
}

func (w *walk) act(o ipam.Owner) error {
	switch n := w.rnd.IntN(100); {
	case n < 50:
		return w.allocate(o)
	case n < 78:
		return w.release(o)
	case n < 80:
		return w.retain()
	case n < 85:
		return w.foreignReserve(o)
	case n < 90:
		return w.foreignRelease(o)
	case n < 95:
		return w.status()
	default:
		return w.usage()
	}
}

func (w *walk) allocate(o ipam.Owner) error {
	var opts ipam.Options
	for w.rnd.IntN(4) == 0 {
		opts.Requested = append(opts.Requested, w.address())
	}
	w.note("allocate %s %v", o, opts.Requested)
	want, wantErr := w.model.allocate(w.layouts[w.current], o, opts.Requested)
	got, err := w.pools[w.current].Allocate(w.ctx, o, opts)
	if wantErr != nil {
		return failsWith("Allocate", err, wantErr)
	}
	return errors.Join(err, same("Allocate", addressesOf(got), want))
}

func (w *walk) release(o ipam.Owner) error {
	w.note("release %s", o)
	for _, a := range w.model.owned(o) {
		w.model.release(a)
	}
	return w.pools[w.current].Release(w.ctx, o)
}

func (w *walk) retain() error {
	var valid []ipam.Owner
	for range 20 {
		valid = append(valid, w.owner())
	}
	w.note("retain %v", valid)
	w.model.retain(valid)
	return w.pools[w.current].Retain(w.ctx, valid)
}

// foreignReserve reserves without a pool, as another program does.
func (w *walk) foreignReserve(o ipam.Owner) error {
	a := w.address()
	if w.rnd.IntN(3) == 0 {
		o.IfName = ""
	}
	w.note("reserve %s for %s", a, o)
	want := !w.model.taken(a)
	if want {
		w.model.reserve(a, o)
	}
	return w.store.Update(w.ctx, func(tx ipam.Tx) error {
		ok, err := tx.Reserve(a, o)
		return errors.Join(err, expect(ok == want, "Reserve: got %t, want %t", ok, want))
	})
}

func (w *walk) foreignRelease(o ipam.Owner) error {
	a := w.address()
	if holder, taken := w.model.held[a]; taken && w.rnd.IntN(2) == 0 {
		o = holder
	}
	w.note("release %s of %s", a, o)
	if w.model.taken(a) && w.model.held[a] == o {
		w.model.release(a)
	}
	return w.store.Update(w.ctx, func(tx ipam.Tx) error { return tx.Release(a, o) })
}

func (w *walk) status() error {
	w.note("status")
	s := w.layouts[w.current]
	full := false
	for set := range s {
		_, err := w.model.choose(s, set, netip.Addr{})
		full = full || err != nil
	}
	err := w.pools[w.current].Status(w.ctx)
	if full {
		return failsWith("Status", err, ipam.ErrExhausted)
	}
	return err
}

func (w *walk) usage() error {
	w.note("usage")
	u, err := w.pools[w.current].Usage(w.ctx)
	figures, outside := w.model.usage(w.layouts[w.current])
	errs := []error{err, same("Usage outside", addressesOf(u.Outside), outside), expect(len(u.Sets) == len(figures), "Usage has %d sets", len(u.Sets))}
	for i, set := range u.Sets {
		var got []ipam.Figures
		var sum ipam.Figures
		for _, r := range set.Ranges {
			got = append(got, r.Figures)
			sum = ipam.Figures{Size: sum.Size + r.Size, Used: sum.Used + r.Used, Resting: sum.Resting + r.Resting}
		}
		errs = append(errs, same("Usage of a set's ranges", got, figures[i]), expect(set.Figures == sum, "Usage of a set: got %s, want %s", set.Figures, sum))
	}
	return errors.Join(errs...)
}

func (w *walk) compareLeases(o ipam.Owner) error {
	got, err := w.pools[w.current].Leases(w.ctx, o)
	return errors.Join(err, same("Leases of "+o.String(), addressesOf(got), w.model.owned(o)))
}

// compareStore asks the store itself, and now and then for everything.
func (w *walk) compareStore(o ipam.Owner, all bool) error {
	a, b := w.address(), w.address()
	if a.Is4() != b.Is4() {
		b = a
	}
	since := time.Now().Add(-w.model.quarantine)
	if w.model.quarantine == 0 || w.rnd.IntN(2) == 0 {
		since = time.Time{}
	}
	return w.store.View(w.ctx, func(tx ipam.ReadTx) error {
		holder, taken, errGet := tx.Get(a)
		count, errCount := tx.Count(a, b)
		next, errNext := tx.NextFree(a, b, since)
		wantCount, wantNext := w.model.look(a, b, !since.IsZero())
		errs := []error{errGet, errCount, errNext,
			expect(holder == w.model.held[a] && taken == w.model.taken(a), "%s is held by %s, want %s", a, holder, w.model.held[a]),
			expect(count == wantCount, "Count from %s to %s: got %d, want %d", a, b, count, wantCount),
			expect(next == wantNext, "NextFree from %s to %s: got %s, want %s", a, b, next, wantNext)}
		if all {
			got, errAll := collect(tx)
			owned, errOwned := tx.Owned(o)
			errs = append(errs, errAll, errOwned, same("All", got, w.model.records()), same("Owned", owned, w.model.recordsOf(o)))
		}
		return errors.Join(errs...)
	})
}
