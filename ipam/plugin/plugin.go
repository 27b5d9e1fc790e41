package plugin

import (
	"context"
	"errors"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/ipam"
	"github.com/cnikit/cnikit/ipam/hostlocal"
)

// Type is the type of the plugin that [Plugin] returns.
const Type = "cnikit-ipam"

// CodeLeaseLost is the code with which CHECK answers when an address is no longer
// held.
const CodeLeaseLost cni.Code = 100

// Open returns the allocator that serves a request. It does not take part in
// validation: sets is empty for DEL and GC, and may be for CHECK and STATUS.
type Open func(r *cni.Request[Config], sets []ipam.RangeSet) (ipam.Allocator, error)

// Plugin returns the plugin "cnikit-ipam", which keeps its leases in the directory
// of the reference plugin, see package ipam/hostlocal.
func Plugin() cni.Plugin[Config] { return Over(Type, openHostLocal) }

// Over returns a plugin of the given type that serves the allocators of open.
func Over(typ string, open Open) cni.Plugin[Config] {
	s := server{open}
	return cni.Plugin[Config]{
		Type:   typ,
		About:  "cnikit IPAM plugin " + typ + ": gives out addresses of configured ranges",
		Add:    s.add,
		Del:    s.del,
		Check:  s.check,
		Status: s.status,
		GC:     s.gc,

		AllowHostNetNS: true, // no namespace is ever entered
	}
}

func openHostLocal(r *cni.Request[Config], sets []ipam.RangeSet) (ipam.Allocator, error) {
	store, err := r.Config.Store(r.Network)
	if err != nil {
		return nil, cni.Errorf(cni.CodeInvalidConfig, "%w", err)
	}
	opts, _ := r.Config.PoolOptions() // Validate has refused a bad one, unless this cleans up
	pool, err := ipam.NewPool(store, opts, sets...)
	if err != nil {
		return nil, err
	}
	return onDisk{pool, store}, nil
}

// onDisk is an allocator that can give out nothing when its directory is read-only.
type onDisk struct {
	ipam.Allocator
	store *hostlocal.Store
}

// Status implements [ipam.Allocator].
func (d onDisk) Status(ctx context.Context) error {
	if err := d.store.Writable(); err != nil {
		return err
	}
	return d.Allocator.Status(ctx)
}

// report gives an allocator's error the code it has in the protocol.
func report(err error) error {
	switch {
	case errors.Is(err, ipam.ErrExhausted):
		return cni.Errorf(cni.CodeNotAvailable, "%w", err)
	case errors.Is(err, ipam.ErrTaken): // until its owner is deleted
		return cni.Errorf(cni.CodeTryAgain, "%w", err)
	case errors.Is(err, ipam.ErrNotAllocatable), errors.Is(err, ipam.ErrHeld):
		return cni.Errorf(cni.CodeInvalidConfig, "%w", err)
	}
	return err
}

// server has the functions of a plugin over an allocator.
type server struct{ open Open }

// del frees what the owner holds, whatever is configured. Only then does it report what
// host-local refuses to do anything for.
func (s server) del(ctx context.Context, r *cni.Request[Config]) error {
	a, err := s.open(r, nil)
	if err != nil {
		return err
	}
	if err := a.Release(ctx, owner(r)); err != nil {
		return err
	}
	if sets, err := r.Config.RangeSets(); err == nil { // bad ranges are no reason to fail
		return checkFamilies(r, sets)
	}
	return nil
}

func (s server) gc(ctx context.Context, r *cni.Request[Config]) error {
	a, err := s.open(r, nil)
	if err != nil {
		return err
	}
	valid := make([]ipam.Owner, 0, len(r.Valid))
	for _, v := range r.Valid {
		valid = append(valid, ipam.Owner{ContainerID: v.ContainerID, IfName: v.IfName})
	}
	return a.Retain(ctx, valid)
}

// status gives the code for "not available" to whatever would keep an ADD from an address:
// nothing free, or a directory that cannot be read or written.
func (s server) status(ctx context.Context, r *cni.Request[Config]) error {
	a, _, err := s.openWithRanges(r)
	if err != nil {
		return err
	}
	if err = a.Status(ctx); err != nil && ctx.Err() == nil {
		return cni.Errorf(cni.CodeNotAvailable, "%w", err)
	}
	return err
}

// check compares what the owner holds with the addresses of the previous result
// that lie in our ranges. Addresses outside them came from elsewhere, or from
// ranges that are no longer configured.
func (s server) check(ctx context.Context, r *cni.Request[Config]) error {
	a, sets, err := s.openWithRanges(r)
	if err != nil {
		return err
	}
	leases, err := a.Leases(ctx, owner(r))
	if err != nil {
		return err
	}
	if len(leases) == 0 {
		return cni.Errorf(CodeLeaseLost, "%s holds no address of network %q any more; attach it again", owner(r), r.Network)
	}
	if r.PrevResult == nil {
		return nil
	}
	for _, ip := range r.PrevResult.IPs {
		if inSets(sets, ip) && !holds(leases, ip) {
			return cni.Errorf(CodeLeaseLost, "%s has %s, which it does not hold any more; attach it again", owner(r), ip.Address)
		}
	}
	return nil
}

func (s server) openWithRanges(r *cni.Request[Config]) (ipam.Allocator, []ipam.RangeSet, error) {
	sets, err := r.Config.RangeSets()
	if err != nil {
		return nil, nil, err
	}
	a, err := s.open(r, sets)
	return a, sets, err
}

func inSets(sets []ipam.RangeSet, ip cni.IP) bool {
	for _, s := range sets {
		if s.Contains(ip.Address.Addr()) {
			return true
		}
	}
	return false
}

func holds(leases []ipam.Lease, ip cni.IP) bool {
	for _, l := range leases {
		if l.Address.Addr() == ip.Address.Addr() {
			return true
		}
	}
	return false
}

func owner(r *cni.Request[Config]) ipam.Owner {
	return ipam.Owner{ContainerID: r.ContainerID, IfName: r.IfName}
}
