package cni

import (
	"context"
	"slices"
)

// Delegates are the delegates of a request that attach one container to several
// networks, each with its own configuration and interface name: what a meta plugin
// is made of. All commands must be given the same delegates in the same order.
//
//	func networks(r *cni.Request[config]) (all cni.Delegates) {
//		for i, network := range r.Config.Networks {
//			ifName := r.IfName
//			if i > 0 {
//				ifName = fmt.Sprint("net", i)
//			}
//			all = append(all, r.DelegateWith("", cni.DelegateOptions{Config: network, IfName: ifName}))
//		}
//		return all
//	}
//
// For GC and STATUS the request has no interface name, so one that is derived from it,
// like the first here, stays that of each attachment: leave IfName empty for it.
type Delegates []*Delegate

// IfNames returns the names of the interfaces that the delegates are about.
func (ds Delegates) IfNames() []string {
	names := make([]string, len(ds))
	for i, d := range ds {
		names[i] = d.ifName
	}
	return names
}

// Add runs ADD forward and returns the results as [MergeResults] joins them, behind the
// prevResult of the request if none of the delegates got that itself: all have a Config.
// When one fails, its DEL has run, and those before it are registered with
// [Request.Undo]. Two delegates with one interface name are refused before any runs.
//
// A delegate that fails because the container has an interface of that name already
// gets its DEL, too, which would take that interface away. The caller must know that
// there is none, by netif.CheckVacant for instance.
func (ds Delegates) Add(ctx context.Context) (*Result, error) {
	for i, d := range ds {
		if slices.ContainsFunc(ds[:i], func(other *Delegate) bool { return other.ifName == d.ifName }) {
			return nil, Errorf(CodeInvalidConfig, "delegate to plugin %q: the interface name %q is that of another network of the container; give each its own", d.plugin, d.ifName)
		}
	}
	var results []*Result
	if len(ds) > 0 && !slices.ContainsFunc(ds, func(d *Delegate) bool { return d.config == nil }) {
		results = append(results, ds[0].prev)
	}
	for _, d := range ds {
		result, err := d.Add(ctx)
		if err != nil {
			return nil, err
		}
		results = append(results, result)
	}
	return MergeResults(results...), nil
}

// Del runs DEL backward and completely, each with its part of prevResult, and joins
// the errors.
func (ds Delegates) Del(ctx context.Context) error {
	calls := ds.calls(CommandDel)
	slices.Reverse(calls)
	return ds.all(ctx, calls)
}

// Check runs CHECK forward and completely, each with its part of prevResult, and joins
// the errors.
func (ds Delegates) Check(ctx context.Context) error { return ds.all(ctx, ds.calls(CommandCheck)) }

// Status runs STATUS forward and completely, and joins the errors.
func (ds Delegates) Status(ctx context.Context) error { return ds.all(ctx, ds.calls(CommandStatus)) }

// GC runs GC forward and completely, and joins the errors. Each delegate gets the
// valid attachments of all that have a network with the same name.
func (ds Delegates) GC(ctx context.Context) error {
	valid := map[string][]Attachment{}
	for _, d := range ds {
		for _, a := range d.validAttachments() {
			if !slices.Contains(valid[d.network], a) {
				valid[d.network] = append(valid[d.network], a)
			}
		}
	}
	calls := ds.calls(CommandGC)
	for i, d := range ds {
		calls[i].request.valid, calls[i].request.derived = valid[d.network], true
	}
	return ds.all(ctx, calls)
}

// ownCall is a call with the delegate that it is for.
type ownCall struct {
	*Delegate
	request delegateCall
}

// calls derives a command of each delegate, with its part of the request's prevResult.
func (ds Delegates) calls(command Command) []ownCall {
	names := ds.IfNames()
	calls := make([]ownCall, len(ds))
	for i, d := range ds {
		c := d.call(command)
		if d.wantsPart(command) {
			c.prev = d.prev.Split(names...)[i]
		}
		calls[i] = ownCall{d, c}
	}
	return calls
}

func (ds Delegates) all(ctx context.Context, calls []ownCall) error {
	var errs []error
	for _, c := range calls {
		_, err := c.run(ctx, c.request)
		errs = append(errs, err)
	}
	return joinErrors(errs...)
}
