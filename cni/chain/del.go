package chain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/cnikit/cnikit/cni"
)

// Del detaches a container from the network: every plugin in reverse order, each with the result of the ADD. It halts at the first error, or
// goes on if BestEffortDel says so; then the error joins all. The cached result is removed after success and kept after failure, for the next
// attempt. Deleting what is not attached runs the plugins and is no error.
//
// A cached result that is missing or damaged does not matter; the plugins get none then. Parameters that a leaves out come from the cache, but
// for a NetNS whose path may name another namespace by now: below /proc, or if another cached container has it.
func (r Runner) Del(ctx context.Context, l *List, a Attachment) error {
	c, err := newCall(l, a)
	if err != nil {
		return fmt.Errorf("delete attachment: %w", err)
	}
	x := r.run(l, c)
	cached := x.remembered()
	x.call = x.call.recall(cached)
	if c.netns == "" && x.doubtful() {
		x.call.netns = ""
	}
	return x.del(ctx, cached, r.BestEffortDel)
}

// doubtful reports whether the remembered namespace may be another's by now. A cache that cannot be read is a reason for doubt.
func (x run) doubtful() bool {
	if x.call.netns == "" {
		return false
	}
	entries, err := x.cache().list()
	if err != nil {
		x.Log.Warn("deleting without the namespace", "attachment", x.call, "error", err)
		return true
	}
	return holdersOf(entries).doubtful(x.call.netns)
}

// del runs DEL and forgets the attachment.
func (x run) del(ctx context.Context, cached *record, bestEffort bool) error {
	if err := joined(x.backward(ctx, len(x.list.Plugins), x.previous(cached), bestEffort)); err != nil {
		return err
	}
	if err := x.cache().remove(x.call.key); err != nil {
		return fmt.Errorf("delete attachment: %w", err)
	}
	return nil
}

// backward runs DEL from the n-th plugin back to the first.
func (x run) backward(ctx context.Context, n int, previous json.RawMessage, bestEffort bool) []*PluginError {
	p := parameters{command: cni.CommandDel, capabilities: x.call.capabilities}
	if atLeast(x.list.Version(), chainedDEL) {
		p.previous = previous
	}
	var failed []*PluginError
	for i := n - 1; i >= 0; i-- {
		_, err := x.plugin(ctx, i, p)
		var e *PluginError
		if !errors.As(err, &e) {
			continue
		}
		failed = append(failed, e)
		if !bestEffort {
			break
		}
	}
	return failed
}

// remembered returns the cached ADD, nil when there is none to be had.
func (x run) remembered() *record {
	r, err := x.cache().load(x.call.key)
	if err != nil && !errors.Is(err, ErrNotAttached) {
		x.Log.Warn("deleting without the cached result", "attachment", x.call, "error", err)
	}
	return r
}

// previous returns the cached result in the version of the list, nil when there is none that makes sense.
func (x run) previous(cached *record) json.RawMessage {
	if cached == nil {
		return nil
	}
	raw, err := cached.result(x.list.Version())
	if err != nil {
		x.Log.Warn("deleting without the cached result", "attachment", x.call, "error", err)
		return nil
	}
	return raw
}

// result returns the cached result as a document of the given version.
func (r *record) result(version string) (json.RawMessage, error) {
	raw := r.Result
	if r.CNIVersion != version {
		result, err := cni.ParseResult(raw, r.CNIVersion)
		if err != nil {
			return nil, fmt.Errorf("%w: result: %w", ErrDamaged, err)
		}
		if raw, err = result.Encode(version); err != nil {
			return nil, fmt.Errorf("convert cached result to %s: %w", version, err)
		}
		return raw, nil
	}
	if _, err := cni.ParseResult(raw, version); err != nil {
		return nil, fmt.Errorf("%w: result: %w", ErrDamaged, err)
	}
	return raw, nil
}

func joined(failed []*PluginError) error {
	errs := make([]error, len(failed))
	for i, e := range failed {
		errs[i] = e
	}
	return errors.Join(errs...)
}
