package datapath

import (
	"maps"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
)

// leaveOut drops hooks that are programs of the collection and can be nothing else, so that it can be loaded.
func (p *Plan) leaveOut(spec *ebpf.CollectionSpec) {
	for _, e := range p.entrypoints {
		for _, h := range e.hooks {
			isEntrypoint := slices.ContainsFunc(p.entrypoints, func(e *entrypoint) bool { return e.name == h.Program })
			if h.Collection == spec && !isEntrypoint && onlyHook(spec.Programs[h.Program]) && arrayWith(spec, h.Program) == "" {
				delete(p.linked.Programs, h.Program)
			}
		}
	}
}

// onlyHook tells whether a program cannot be loaded by itself: it extends another one that nobody has named, or it
// takes a verdict.
func onlyHook(program *ebpf.ProgramSpec) bool {
	if program == nil || len(program.Instructions) == 0 {
		return false
	}
	if program.Type == ebpf.Extension {
		return program.AttachTarget == nil
	}
	f := btf.FuncMetadata(&program.Instructions[0])
	if f == nil {
		return false
	}
	proto, ok := f.Type.(*btf.FuncProto)
	return ok && len(proto.Params) > 1
}

// Build returns the instrumented collection. Each call returns a new one, which is the caller's to change and
// load. Programs without hooks are in it as they were, except for hooks from the collection itself that could
// not be loaded: Extensions without a target, and functions that take a verdict.
func (p *Plan) Build() *ebpf.CollectionSpec { return clone(p.linked) }

// clone copies a collection with the bytes that its maps begin with, which the library's copies share.
func clone(spec *ebpf.CollectionSpec) *ebpf.CollectionSpec {
	c := spec.Copy()
	for _, m := range c.Maps {
		m.Contents = cloneContents(m)
	}
	return c
}

// Ignored returns the constraints that have no effect because they name owners or hooks that are not there.
func (p *Plan) Ignored() []Constraint { return slices.Clone(p.ignored) }

// Maps returns, for a linked hook, what the maps that it reaches are called in the instrumented collection, by
// their names in the hook's own. Of a hook that is not in the plan, or a slot, it returns nil. Another plan has
// other names, though the hook is the same: to keep a map from one to the next, have it replace the one of the new
// name ([ebpf.CollectionOptions.MapReplacements]).
func (p *Plan) Maps(entrypoint, owner, name string) map[string]string {
	if h := p.hook(entrypoint, owner, name); h != nil {
		return maps.Clone(h.maps)
	}
	return nil
}

// Variables is the same for the global variables of the hook.
func (p *Plan) Variables(entrypoint, owner, name string) map[string]string {
	if h := p.hook(entrypoint, owner, name); h != nil {
		return maps.Clone(h.variables)
	}
	return nil
}

func (p *Plan) hook(entrypoint, owner, name string) *plannedHook {
	for _, e := range p.entrypoints {
		for _, h := range e.hooks {
			if e.name == entrypoint && h.Owner == owner && h.Name == name {
				return h
			}
		}
	}
	return nil
}
