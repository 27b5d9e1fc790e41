// Command meta-plugin is a CNI plugin that attaches a container to several networks by
// delegating to other plugins, executables all of them:
//
//	{"type": "meta-plugin", "networks": [
//	  {"name": "front", "type": "cnikit-bridge", "bridge": "br0", "ipam": {…}},
//	  {"name": "back", "type": "macvlan", "master": "eth1"}]}
//
// The first network gets the interface name that the runtime asked for, the others net1,
// net2 and so on. The runtime sees one result; CHECK, DEL and GC reach each delegate with
// its own part.
package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/cni/netif"
)

func main() {
	cni.Main(cni.Plugin[config]{
		Type:   "meta-plugin",
		About:  "CNI plugin that attaches a container to several networks",
		Add:    add,
		Del:    func(ctx context.Context, r *request) error { return networks(r).Del(ctx) },
		Check:  func(ctx context.Context, r *request) error { return networks(r).Check(ctx) },
		Status: func(ctx context.Context, r *request) error { return networks(r).Status(ctx) },
		GC:     func(ctx context.Context, r *request) error { return networks(r).GC(ctx) },
	}.Handler())
}

type request = cni.Request[config]

type config struct {
	Networks []json.RawMessage `json:"networks"` // plugin objects
}

// Validate runs before ADD, CHECK and STATUS.
func (c config) Validate() error {
	if len(c.Networks) == 0 {
		return &cni.FieldError{Key: "networks", Value: c.Networks, Reason: "is empty", Fix: "name a network"}
	}
	return nil
}

// add makes sure that undoing a failure takes away nothing that was there before.
func add(ctx context.Context, r *request) (*cni.Result, error) {
	all := networks(r)
	if err := netif.CheckVacant(r.NetNS.Path, all.IfNames()...); err != nil {
		return nil, cni.Errorf(cni.CodeInvalidEnvironment, "CNI_IFNAME=%q cannot be used: %w", r.IfName, err)
	}
	return all.Add(ctx)
}

// networks are the delegates of a request, in the order of the configuration.
func networks(r *request) (all cni.Delegates) {
	for i, network := range r.Config.Networks {
		o := cni.DelegateOptions{Config: network} // with the interface name of the request
		if i > 0 {
			o.IfName = fmt.Sprint("net", i)
		}
		all = append(all, r.DelegateWith("", o))
	}
	return all
}
