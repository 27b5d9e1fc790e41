package chain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/cnikit/cnikit/cni"
)

// Add attaches a container to the network: every plugin in order, each with the result of the one before. The result of the last is kept for
// CHECK and DEL, on disk before Add returns, and is returned in the version [List.Version].
//
// When a plugin fails, or the result cannot be kept, what ran is undone by DELs from the failed plugin back to the first, on a context that
// outlives ctx; a [RollbackError] tells what could not be undone. The specification still wants a DEL after a failed ADD: run one.
//
// An attachment that the cache knows already is refused with [ErrAttached]: a failing second ADD would tear the first one down.
func (r Runner) Add(ctx context.Context, l *List, a Attachment) (*cni.Result, error) {
	c, err := newCall(l, a)
	if err == nil {
		err = c.complete()
	}
	if err != nil {
		return nil, fmt.Errorf("add attachment: %w", err)
	}
	if err := r.cache().admit(c.key); err != nil {
		return nil, fmt.Errorf("add attachment: %w", err)
	}
	x := r.run(l, c)
	raw, ran, err := x.add(ctx)
	if err != nil {
		return nil, x.rollback(ctx, ran, raw, err)
	}
	result, err := x.keep(raw)
	if err != nil {
		return nil, x.rollback(ctx, ran, raw, fmt.Errorf("add attachment: %w", err))
	}
	return result, nil
}

// admit makes the cache ready for k and refuses an attachment that exists.
func (c cache) admit(k key) error {
	if err := c.open(); err != nil {
		return err
	}
	switch _, err := c.load(k); {
	case err == nil:
		return fmt.Errorf("%s: %w; DEL it first", k, ErrAttached)
	case errors.Is(err, ErrDamaged):
		return fmt.Errorf("%w: %w; DEL it first", ErrAttached, err)
	case !errors.Is(err, ErrNotAttached):
		return err
	}
	return nil
}

// add runs ADD. It returns the last good result and how many plugins may have made something.
func (x run) add(ctx context.Context) (result json.RawMessage, ran int, err error) {
	p := parameters{command: cni.CommandAdd, capabilities: x.call.capabilities}
	for i := range x.list.Plugins {
		p.previous = result
		out, err := x.plugin(ctx, i, p)
		if err != nil {
			return result, i + 1, err
		}
		next, err := normalise(out, x.list.Version())
		if err != nil {
			plugin := x.list.Plugins[i].Type
			return result, i + 1, &PluginError{Command: p.command, Network: x.list.Name, Plugin: plugin, Index: i, Err: fmt.Errorf("unusable result: %w", err)}
		}
		result = next
	}
	return result, len(x.list.Plugins), nil
}

// keep stores the result of the last plugin.
func (x run) keep(raw json.RawMessage) (*cni.Result, error) {
	result, err := cni.ParseResult(raw, x.list.Version())
	if err != nil {
		return nil, fmt.Errorf("read result: %w", err)
	}
	return result, x.cache().save(x.call.key, record{
		NetNS:        x.call.netns,
		Capabilities: x.call.capabilities,
		CNIVersion:   x.list.Version(),
		Config:       x.list.source.encode(),
		Result:       raw,
		args:         x.call.args,
	})
}

// rollback undoes the first ran plugins after cause and returns the error for the caller of Add.
func (x run) rollback(ctx context.Context, ran int, previous json.RawMessage, cause error) error {
	x.Log.Warn("ADD failed, rolling back", "attachment", x.call, "plugins", ran, "error", cause)
	failed := x.backward(context.WithoutCancel(ctx), ran, previous, true)
	if err := x.cache().remove(x.call.key); err != nil {
		cause = fmt.Errorf("%w; %w", cause, err)
	}
	var remain []*PluginError
	for _, e := range failed {
		// What is not installed has made nothing either. A plugin that ran and missed its delegate does not match.
		if errors.Is(e, cni.ErrPluginNotFound) && e.Index == ran-1 && errors.Is(cause, cni.ErrPluginNotFound) {
			continue
		}
		remain = append(remain, e)
	}
	if len(remain) > 0 {
		return &RollbackError{Err: cause, Remain: remain}
	}
	return cause
}

// normalise checks what a plugin printed for ADD and returns it as a document of the given version: the very text if it is one, so that keys
// nobody here knows and the spelling of numbers survive, and a conversion otherwise.
func normalise(out []byte, version string) (json.RawMessage, error) {
	result, err := cni.ParseResult(out, version)
	if err != nil {
		return nil, err
	}
	if o, err := parseDocument(out); err == nil {
		if named, err := stringKey(o, "cniVersion"); err == nil && (named == version || named == "") {
			return o.with("cniVersion", quote(version)).encode(), nil
		}
	}
	return result.Encode(version)
}
