package ipamtest

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/ipam"
)

// brokenAllocator is a sound allocator with some methods replaced.
type brokenAllocator struct {
	*ipam.Pool
	store    *ipam.Memory
	mu       sync.Mutex // of what a fault remembers
	allocate func(ctx context.Context, o ipam.Owner, opts ipam.Options) ([]ipam.Lease, error)
	undo     func(ctx context.Context, leases []ipam.Lease) error
	release  func(ctx context.Context, o ipam.Owner) error
	leases   func(ctx context.Context, o ipam.Owner) ([]ipam.Lease, error)
	retain   func(ctx context.Context, valid []ipam.Owner) error
	status   func(ctx context.Context) error
	usage    func(ctx context.Context) (ipam.Usage, error)
}

func newBroken(t *testing.T, sets []ipam.RangeSet) *brokenAllocator {
	t.Helper()
	store := ipam.NewMemory(ipam.MemoryOptions{})
	pool, err := ipam.NewPool(store, ipam.PoolOptions{}, sets...)
	require.NoError(t, err)
	return &brokenAllocator{Pool: pool, store: store,
		allocate: pool.Allocate, undo: pool.Undo, release: pool.Release, leases: pool.Leases, retain: pool.Retain, status: pool.Status, usage: pool.Usage}
}

func (a *brokenAllocator) Allocate(ctx context.Context, o ipam.Owner, opts ipam.Options) ([]ipam.Lease, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.allocate(ctx, o, opts)
}
func (a *brokenAllocator) Undo(ctx context.Context, leases []ipam.Lease) error {
	return a.undo(ctx, leases)
}
func (a *brokenAllocator) Release(ctx context.Context, o ipam.Owner) error { return a.release(ctx, o) }
func (a *brokenAllocator) Leases(ctx context.Context, o ipam.Owner) ([]ipam.Lease, error) {
	return a.leases(ctx, o)
}
func (a *brokenAllocator) Retain(ctx context.Context, valid []ipam.Owner) error {
	return a.retain(ctx, valid)
}
func (a *brokenAllocator) Status(ctx context.Context) error              { return a.status(ctx) }
func (a *brokenAllocator) Usage(ctx context.Context) (ipam.Usage, error) { return a.usage(ctx) }

// put reserves an address behind the pool's back.
func (a *brokenAllocator) put(text string, o ipam.Owner) {
	_ = a.store.Update(context.Background(), func(tx ipam.Tx) error {
		_, err := tx.Reserve(addr(text), o)
		return err
	})
}

// after runs fn when an Allocate has succeeded.
func (a *brokenAllocator) after(fn func(o ipam.Owner, opts ipam.Options, leases []ipam.Lease) ([]ipam.Lease, error)) {
	a.allocate = func(ctx context.Context, o ipam.Owner, opts ipam.Options) ([]ipam.Lease, error) {
		leases, err := a.Pool.Allocate(ctx, o, opts)
		if err != nil {
			return nil, err
		}
		return fn(o, opts, leases)
	}
}

// translate replaces an error that Allocate must match by another.
func (a *brokenAllocator) translate(from, to error) {
	a.allocate = func(ctx context.Context, o ipam.Owner, opts ipam.Options) ([]ipam.Lease, error) {
		leases, err := a.Pool.Allocate(ctx, o, opts)
		if errors.Is(err, from) {
			return nil, to
		}
		return leases, err
	}
}

// TestAllocatorCatchesEachFault: every rule finds an allocator that breaks it and
// keeps the others.
func TestAllocatorCatchesEachFault(t *testing.T) {
	boom := errors.New("boom")
	faults := map[string]func(a *brokenAllocator){
		"add/one address of every set, in their order": func(a *brokenAllocator) { // without gateways
			a.after(func(_ ipam.Owner, _ ipam.Options, leases []ipam.Lease) ([]ipam.Lease, error) {
				leases[0].Gateway = netip.Addr{}
				return leases, nil
			})
			a.leases = func(ctx context.Context, o ipam.Owner) ([]ipam.Lease, error) {
				leases, err := a.Pool.Leases(ctx, o)
				if len(leases) > 0 {
					leases[0].Gateway = netip.Addr{}
				}
				return leases, err
			}
		},
		"add/no address twice": func(a *brokenAllocator) { // the fifth owner gets what the first has
			n := map[ipam.Owner]bool{}
			var first []ipam.Lease
			a.after(func(o ipam.Owner, _ ipam.Options, leases []ipam.Lease) ([]ipam.Lease, error) {
				if n[o] = true; len(n) == 1 {
					first = slices.Clone(leases)
				}
				if o.ContainerID == "e" {
					return first, nil
				}
				return leases, nil
			})
		},
		"add/the same owner gets the same leases": func(a *brokenAllocator) { // others, after another owner
			var last ipam.Owner
			a.allocate = func(ctx context.Context, o ipam.Owner, opts ipam.Options) ([]ipam.Lease, error) {
				if last == owner("b") && o == owner("a") {
					_ = a.Pool.Release(ctx, o)
				}
				last = o
				return a.Pool.Allocate(ctx, o, opts)
			}
		},
		"add/interfaces of a container are owners of their own": func(a *brokenAllocator) { // DEL frees the container
			a.release = func(ctx context.Context, o ipam.Owner) error {
				return errors.Join(a.Pool.Release(ctx, o), a.Pool.Release(ctx, ipam.Owner{ContainerID: o.ContainerID, IfName: "net1"}))
			}
		},
		"add/an owner that cannot be recorded is refused": func(a *brokenAllocator) { a.translate(ipam.ErrInvalidOwner, boom) },
		"add/every address of the ranges, and no other": func(a *brokenAllocator) { // one is lost
			a.put("10.1.0.16", owner("nobody"))
			a.usage = func(context.Context) (ipam.Usage, error) {
				return ipam.Usage{Sets: []ipam.SetUsage{{Figures: ipam.Figures{Size: 7, Used: 2}, Ranges: []ipam.RangeUsage{
					{Figures: ipam.Figures{Size: 2, Used: 1}}, {Figures: ipam.Figures{Size: 1}}, {Figures: ipam.Figures{Size: 1}}, {Figures: ipam.Figures{Size: 3, Used: 1}},
				}}}}, nil
			}
		},
		"add/exhausted says which set": func(a *brokenAllocator) { a.translate(ipam.ErrExhausted, ipam.ErrExhausted) },
		"add/what a failed call took is free again": func(a *brokenAllocator) {
			a.allocate = func(ctx context.Context, o ipam.Owner, opts ipam.Options) ([]ipam.Lease, error) {
				leases, err := a.Pool.Allocate(ctx, o, opts)
				if errors.Is(err, ipam.ErrExhausted) {
					a.put("10.1.0.200", o)
				}
				return leases, err
			}
		},
		"add/a cancelled call leaves nothing that it does not report": func(a *brokenAllocator) {
			a.allocate = func(ctx context.Context, o ipam.Owner, opts ipam.Options) ([]ipam.Lease, error) {
				leases, err := a.Pool.Allocate(context.WithoutCancel(ctx), o, opts)
				return leases, errors.Join(err, ctx.Err())
			}
		},
		"add/many at once": func(a *brokenAllocator) { // all owners are taken for one
			a.allocate = func(ctx context.Context, o ipam.Owner, opts ipam.Options) ([]ipam.Lease, error) {
				if strings.HasPrefix(o.ContainerID, "once") {
					o.ContainerID = "one"
				}
				return a.Pool.Allocate(ctx, o, opts)
			}
		},
		"add/says what is fresh": func(a *brokenAllocator) { // Leases does so of who has asked twice
			asked := map[ipam.Owner]int{}
			a.after(func(o ipam.Owner, _ ipam.Options, leases []ipam.Lease) ([]ipam.Lease, error) {
				asked[o]++
				return leases, nil
			})
			a.leases = func(ctx context.Context, o ipam.Owner) ([]ipam.Lease, error) {
				leases, err := a.Pool.Leases(ctx, o)
				for i := range leases {
					leases[i].Fresh = asked[o] > 1
				}
				return leases, err
			}
		},
		"undo/frees what the call reserved": func(a *brokenAllocator) { // the first lease of it
			a.undo = func(ctx context.Context, leases []ipam.Lease) error {
				return a.Pool.Undo(ctx, leases[:min(1, len(leases))])
			}
		},
		"undo/keeps what the owner had": func(a *brokenAllocator) { // takes it for a release
			a.undo = func(ctx context.Context, leases []ipam.Lease) error {
				if len(leases) == 0 {
					return nil
				}
				return a.Pool.Release(ctx, leases[0].Owner)
			}
		},
		"undo/leaves alone what another has by now": func(a *brokenAllocator) { // frees the addresses, whoever has them
			a.undo = func(ctx context.Context, leases []ipam.Lease) error {
				return a.store.Update(ctx, func(tx ipam.Tx) error {
					var errs []error
					for _, l := range leases {
						if l.Fresh {
							holder, _, err := tx.Get(l.Address.Addr())
							errs = append(errs, err, tx.Release(l.Address.Addr(), holder))
						}
					}
					return errors.Join(errs...)
				})
			}
		},
		"requested/is what the owner gets": func(a *brokenAllocator) { // the first request counts
			a.allocate = func(ctx context.Context, o ipam.Owner, opts ipam.Options) ([]ipam.Lease, error) {
				if len(opts.Requested) == 2 && opts.Requested[0] == addr("fd00::77") {
					opts.Requested = opts.Requested[:1]
				}
				return a.Pool.Allocate(ctx, o, opts)
			}
		},
		"requested/in IPv6 notation, and twice": func(a *brokenAllocator) {
			a.allocate = func(ctx context.Context, o ipam.Owner, opts ipam.Options) ([]ipam.Lease, error) {
				if slices.ContainsFunc(opts.Requested, netip.Addr.Is4In6) {
					return nil, ipam.ErrNotAllocatable
				}
				return a.Pool.Allocate(ctx, o, opts)
			}
		},
		"requested/again": func(a *brokenAllocator) { // is taken, by itself
			a.allocate = func(ctx context.Context, o ipam.Owner, opts ipam.Options) ([]ipam.Lease, error) {
				held, _ := a.Pool.Leases(ctx, o)
				if len(opts.Requested) == 1 && slices.Contains(addressesOf(held), opts.Requested[0]) {
					return nil, ipam.ErrTaken
				}
				return a.Pool.Allocate(ctx, o, opts)
			}
		},
		"requested/taken is refused": func(a *brokenAllocator) { a.translate(ipam.ErrTaken, boom) },
		"requested/what is never handed out is refused": func(a *brokenAllocator) { // but the gateway is given
			a.allocate = func(ctx context.Context, o ipam.Owner, opts ipam.Options) ([]ipam.Lease, error) {
				if slices.Contains(opts.Requested, addr("10.1.0.1")) {
					a.put("10.1.0.1", o)
					return a.Pool.Leases(ctx, o)
				}
				return a.Pool.Allocate(ctx, o, opts)
			}
		},
		"requested/with a zone is refused": func(a *brokenAllocator) { // but without it, it is given
			a.allocate = func(ctx context.Context, o ipam.Owner, opts ipam.Options) ([]ipam.Lease, error) {
				for i, requested := range opts.Requested {
					opts.Requested[i] = requested.WithZone("")
				}
				return a.Pool.Allocate(ctx, o, opts)
			}
		},
		"requested/two addresses of one set are refused": func(a *brokenAllocator) { // but the first one is given
			a.allocate = func(ctx context.Context, o ipam.Owner, opts ipam.Options) ([]ipam.Lease, error) {
				if slices.Equal(opts.Requested, []netip.Addr{addr("10.1.0.8"), addr("10.1.0.9")}) {
					opts.Requested = opts.Requested[:1]
				}
				return a.Pool.Allocate(ctx, o, opts)
			}
		},
		"requested/another one than the owner has is refused, and costs nothing": func(a *brokenAllocator) { // frees what the owner had
			a.allocate = func(ctx context.Context, o ipam.Owner, opts ipam.Options) ([]ipam.Lease, error) {
				leases, err := a.Pool.Allocate(ctx, o, opts)
				if errors.Is(err, ipam.ErrHeld) {
					_ = a.Pool.Release(ctx, o)
				}
				return leases, err
			}
		},
		"del/frees every lease": func(a *brokenAllocator) { // the sixth time not
			n := 0
			a.release = func(ctx context.Context, o ipam.Owner) error {
				if n++; n > 5 {
					return nil
				}
				return a.Pool.Release(ctx, o)
			}
		},
		"del/of an owner without leases is nil": func(a *brokenAllocator) {
			a.release = func(ctx context.Context, o ipam.Owner) error {
				if held, _ := a.Pool.Leases(ctx, o); len(held) == 0 {
					return boom
				}
				return a.Pool.Release(ctx, o)
			}
		},
		"del/leaves others alone": func(a *brokenAllocator) { // compares the beginning of the name
			a.release = func(ctx context.Context, o ipam.Owner) error {
				return errors.Join(a.Pool.Release(ctx, o), a.Pool.Release(ctx, owner(o.ContainerID+"a")))
			}
		},
		"leases/by ascending address, with their subnets": func(a *brokenAllocator) { // as host addresses
			a.leases = func(ctx context.Context, o ipam.Owner) ([]ipam.Lease, error) {
				leases, err := a.Pool.Leases(ctx, o)
				for i, l := range leases {
					leases[i].Address = netip.PrefixFrom(l.Address.Addr(), l.Address.Addr().BitLen())
				}
				return leases, err
			}
		},
		"leases/of an owner without any is no error": func(a *brokenAllocator) {
			allocated := false
			a.allocate = func(ctx context.Context, o ipam.Owner, opts ipam.Options) ([]ipam.Lease, error) {
				allocated = true
				return a.Pool.Allocate(ctx, o, opts)
			}
			a.leases = func(ctx context.Context, o ipam.Owner) ([]ipam.Lease, error) {
				if !allocated {
					return nil, boom
				}
				return a.Pool.Leases(ctx, o)
			}
		},
		"gc/keeps what is valid and frees the rest": func(a *brokenAllocator) { // keeps all of a valid container
			a.retain = func(ctx context.Context, valid []ipam.Owner) error {
				for _, o := range valid {
					valid = append(valid, ipam.Owner{ContainerID: o.ContainerID, IfName: "net1"})
				}
				return a.Pool.Retain(ctx, valid)
			}
		},
		"gc/an empty list frees everything": func(a *brokenAllocator) {
			a.retain = func(ctx context.Context, valid []ipam.Owner) error {
				if len(valid) == 0 {
					return nil
				}
				return a.Pool.Retain(ctx, valid)
			}
		},
		"status/nil while every set has an address": func(a *brokenAllocator) { // one too early
			a.status = func(ctx context.Context) error {
				u, err := a.Pool.Usage(ctx)
				if len(u.Sets) == 2 && u.Sets[1].Free() == 1 && u.Sets[0].Used == 2 {
					if leases, _ := a.Pool.Leases(ctx, owner("c")); len(leases) == 0 {
						return ipam.ErrExhausted
					}
				}
				return errors.Join(err, a.Pool.Status(ctx))
			}
		},
		"status/exhausted before an ADD fails": func(a *brokenAllocator) { a.status = func(context.Context) error { return nil } },
		"usage/counts by set and range": func(a *brokenAllocator) { // the last range in the first
			a.usage = func(ctx context.Context) (ipam.Usage, error) {
				u, err := a.Pool.Usage(ctx)
				u.Sets[0].Ranges[0].Used, u.Sets[0].Ranges[len(u.Sets[0].Ranges)-1].Used = u.Sets[0].Used, 0
				return u, err
			}
		},
		"usage/changes nothing": func(a *brokenAllocator) { // frees what the first owner has
			a.usage = func(ctx context.Context) (ipam.Usage, error) {
				u, err := a.Pool.Usage(ctx)
				return u, errors.Join(err, a.Pool.Release(ctx, owner("a")))
			}
		},
	}
	rules := allocatorRules()
	for _, r := range rules {
		require.Contains(t, faults, r.name, "a rule without an allocator that breaks it")
	}
	require.Len(t, faults, len(rules))
	for name, breakIt := range faults {
		t.Run(name, func(t *testing.T) {
			var caught []string
			for _, r := range rules {
				a := newBroken(t, r.sets)
				breakIt(a)
				if err := r.check(t.Context(), a); err != nil {
					caught = append(caught, r.name)
				}
			}
			assert.Equal(t, []string{name}, caught)
		})
	}
}
