package chain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/cnikit/cnikit/cni"
)

// GC cleans up what belongs to no attachment in valid, which must list every attachment of the network that is in use, on this host and by any
// runtime: an empty or nil list says that none is.
//
// First the cached attachments that are not valid are deleted, each with the configuration it was made with and on a best-effort basis. Then,
// from version 1.1.0 on, every plugin gets GC. Nothing stops at an error; the error joins all. Nothing runs when the configuration says
// disableGC.
//
// The deletions leave out the namespace when its path may name another one by now: below /proc, or if another cached container has it.
func (r Runner) GC(ctx context.Context, l *List, valid []cni.Attachment) error {
	if err := checkList(l); err != nil {
		return fmt.Errorf("collect garbage: %w", err)
	}
	encoded, err := encodeValid(valid)
	if err != nil {
		return fmt.Errorf("collect garbage: %w", err)
	}
	if l.DisableGC {
		return nil
	}
	return errors.Join(r.deleteStale(ctx, l, valid), r.collect(ctx, l, encoded))
}

// collect sends GC to every plugin.
func (r Runner) collect(ctx context.Context, l *List, valid json.RawMessage) error {
	if !atLeast(l.Version(), statusAndGC) {
		return nil
	}
	x := r.run(l, call{key: key{network: l.Name}})
	var errs []error
	for i := range l.Plugins {
		_, err := x.plugin(ctx, i, parameters{command: cni.CommandGC, valid: valid})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// deleteStale deletes the cached attachments of the network that are not valid.
func (r Runner) deleteStale(ctx context.Context, l *List, valid []cni.Attachment) error {
	entries, err := r.cache().list()
	if err != nil {
		return fmt.Errorf("collect garbage: %w", err)
	}
	keep := make(map[key]bool, len(valid))
	for _, a := range valid {
		keep[key{l.Name, a.ContainerID, a.IfName}] = true
	}
	held := holdersOf(entries)
	var errs []error
	for _, e := range entries {
		if e.key.network == "" {
			r.logger().Warn("cache file is damaged and its name tells no attachment", "file", e.file, "error", e.err)
		}
		if e.key.network != l.Name || keep[e.key] {
			continue
		}
		if err := r.deleteCached(ctx, l, e, held); err != nil {
			errs = append(errs, fmt.Errorf("collect garbage: delete stale %s: %w", e.key, err))
		}
	}
	return errors.Join(append(errs, r.cache().sweep())...)
}

// deleteCached runs DEL for a cached attachment as it was added.
func (r Runner) deleteCached(ctx context.Context, l *List, e entry, held holders) error {
	x := r.run(l, call{key: e.key}.recall(e.record))
	if held.doubtful(x.call.netns) {
		x.call.netns = ""
	}
	if e.err != nil {
		x.Log.Warn("deleting without the cached result", "attachment", x.call, "error", e.err)
		return x.del(ctx, nil, true)
	}
	switch then, err := Parse(e.record.Config); {
	case err != nil:
		x.Log.Warn("deleting with today's configuration", "attachment", x.call, "error", err)
	case then.Name == l.Name:
		x.list = then
	}
	return x.del(ctx, e.record, true)
}

// holders tells which containers were attached with a namespace path.
type holders map[string]map[string]bool

func holdersOf(entries []entry) holders {
	held := make(holders)
	for _, e := range entries {
		if e.record == nil {
			continue
		}
		if held[e.record.NetNS] == nil {
			held[e.record.NetNS] = make(map[string]bool)
		}
		held[e.record.NetNS][e.record.ContainerID] = true
	}
	return held
}

// doubtful reports whether the namespace of another container may stand at path by now. Plugins get none then.
func (h holders) doubtful(path string) bool { return recycled(path) || len(h[path]) > 1 }
