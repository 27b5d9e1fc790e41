package bridge_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"sync"

	"github.com/cnikit/cnikit/cni"
)

// fakeIPAM gives out addresses of both families in turn and remembers who has them.
type fakeIPAM struct {
	mu     sync.Mutex
	next   int
	leases map[cni.Attachment][]netip.Prefix

	subnets []netip.Prefix       // each with its first address as gateway
	before  func(cni.Attachment) // an ADD, which waits for it
	answer  func(*cni.Result)    // edits what an ADD returns
	fail    error                // of every command
	full    error                // of ADD
	onDel   func()
}

func newFakeIPAM() *fakeIPAM {
	return &fakeIPAM{next: 1, leases: map[cni.Attachment][]netip.Prefix{},
		subnets: []netip.Prefix{netip.MustParsePrefix("10.1.0.0/24"), netip.MustParsePrefix("fd00:1::/64")}}
}

type fakeRequest = cni.Request[map[string]json.RawMessage]

func (f *fakeIPAM) plugin() cni.Plugin[map[string]json.RawMessage] {
	return cni.Plugin[map[string]json.RawMessage]{Type: "fake", Add: f.add, Del: f.del, Check: f.check, Status: f.status, GC: f.gc}
}

func owner(r *fakeRequest) cni.Attachment {
	return cni.Attachment{ContainerID: r.ContainerID, IfName: r.IfName}
}

func (f *fakeIPAM) add(_ context.Context, r *fakeRequest) (*cni.Result, error) {
	if f.before != nil {
		f.before(owner(r))
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := errors.Join(f.fail, f.full); err != nil {
		return nil, err
	}
	f.next++
	result := &cni.Result{}
	for _, subnet := range f.subnets {
		addr := subnet.Addr()
		for range f.next {
			addr = addr.Next()
		}
		result.IPs = append(result.IPs, cni.IP{Address: netip.PrefixFrom(addr, subnet.Bits()), Gateway: subnet.Addr().Next()})
		f.leases[owner(r)] = append(f.leases[owner(r)], netip.PrefixFrom(addr, subnet.Bits()))
	}
	if f.answer != nil {
		f.answer(result)
	}
	return result, nil
}

func (f *fakeIPAM) del(_ context.Context, r *fakeRequest) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.onDel != nil {
		f.onDel()
	}
	delete(f.leases, owner(r))
	return f.fail
}

func (f *fakeIPAM) check(_ context.Context, r *fakeRequest) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.leases[owner(r)]) == 0 {
		return cni.Errorf(101, "no lease for %v", owner(r))
	}
	return f.fail
}

func (f *fakeIPAM) status(context.Context, *fakeRequest) error { return f.fail }

func (f *fakeIPAM) gc(_ context.Context, r *fakeRequest) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	valid := map[cni.Attachment]bool{}
	for _, a := range r.Valid {
		valid[a] = true
	}
	for a := range f.leases {
		if !valid[a] {
			delete(f.leases, a)
		}
	}
	return f.fail
}

// held is the number of attachments with leases.
func (f *fakeIPAM) held() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.leases)
}
