package datapath

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
)

// check looks at what a hook says, by itself.
func check(spec *ebpf.CollectionSpec, h *Hook) error {
	program := spec.Programs[h.Entrypoint]
	switch {
	case h.Owner == "" || h.Name == "":
		return &refusal{"lacks an owner or a name", "set Owner and Name"}
	case strings.Contains(h.Owner, "/"):
		return &refusal{"has an owner with a slash, which separates owner and name in constraints", "name the owner without one"}
	case program == nil:
		return &refusal{"is for an entrypoint that the collection does not have", "set Entrypoint to " + oneOf(spec)}
	case h.Kind < Pre || h.Kind > Observer:
		return &refusal{"has no kind", "set Kind to Pre, Post or Observer"}
	case h.Composition < Auto || h.Composition > Slot:
		return &refusal{"has an unknown composition", "set Composition to Auto, Pasted, Called or Slot"}
	case h.Collection != nil && nilEntry(h.Collection) != "":
		return &refusal{"has a collection whose " + nilEntry(h.Collection) + " is nil", "set it, or delete it from the collection"}
	case h.Collection == nil && (h.Composition == Pasted || h.Composition == Called):
		return &refusal{"is to be " + h.Composition.String() + ", but brings no collection", "set Collection, or ask for a Slot"}
	case h.Kind == Observer && len(h.Proceed) > 0:
		return &refusal{"is an observer, whose verdict is ignored, and has a Proceed", "leave Proceed out, or make it a Post hook"}
	case h.Kind != Post && h.AfterTermination:
		return &refusal{"has AfterTermination, which is for post hooks", "leave it out: pre hooks never run then, observers always do"}
	}
	for _, target := range slices.Concat(h.Before, h.After) {
		if owner, name, isHook := strings.Cut(target, "/"); owner == "" || isHook && name == "" {
			return &refusal{fmt.Sprintf("has the constraint %q, which names no hook", target), `write "owner" or "owner/name"`}
		}
	}
	if _, ok := typeOf(program); !ok {
		return &refusal{
			fmt.Sprintf("is for a program of type %s and attach type %s, for which there are no dispatchers", program.Type, program.AttachType),
			"hook an XDP, TC, cgroup_skb, cgroup sock or sock_addr, sock_ops or sk_lookup program",
		}
	}
	return nil
}

// checkCode compares the hook's program with the entrypoint's: the type decides what the context is.
func (e *entrypoint) checkCode(h *plannedHook) error {
	program := h.Collection.Programs[h.Program]
	if program == nil {
		return &refusal{fmt.Sprintf("has a collection without the program %q", h.Program), "set Program to " + oneOf(h.Collection)}
	}
	switch {
	case program.Type == ebpf.Extension || program.Type == ebpf.UnspecifiedProgram:
		return e.checkProto(h.Kind, program)
	case !sameType(program, e.program):
		return &refusal{fmt.Sprintf("has a program of type %s, and the entrypoint is of type %s", program.Type, e.program.Type), "write the hook for the entrypoint's type, or as an Extension"}
	case e.typ.exact && program.AttachType != ebpf.AttachNone && program.AttachType != e.program.AttachType:
		return &refusal{
			fmt.Sprintf("has a program for attach type %s, and the entrypoint is for %s, whose context has other fields", program.AttachType, e.program.AttachType),
			"write the hook for the entrypoint's attach type",
		}
	case program.AttachType == ebpf.AttachXDPDevMap && e.program.AttachType != ebpf.AttachXDPDevMap:
		// xdp_is_valid_access in net/core/filter.c: the interface that a packet leaves by is a field for these
		// alone.
		return &refusal{
			fmt.Sprintf("has a program for attach type %s, and the entrypoint is for %s, whose context has fewer fields", program.AttachType, e.program.AttachType),
			"write the hook for the entrypoint's attach type",
		}
	case program.Ifindex != 0 && program.Ifindex != e.program.Ifindex:
		return &refusal{fmt.Sprintf("has a program for interface %d alone, and the entrypoint is for interface %d", program.Ifindex, e.program.Ifindex), "leave Ifindex out"}
	}
	return e.checkProto(h.Kind, program)
}

// checkProto compares what BTF says about the hook's function, if it does, with what it is given. An argument
// that it is not given can hold anything that ran before has left there, without a word of the verifier's.
func (e *entrypoint) checkProto(kind Kind, program *ebpf.ProgramSpec) error {
	want := len(e.proto(kind).Params)
	if len(program.Instructions) == 0 {
		return nil // the linker says so
	}
	f := btf.FuncMetadata(&program.Instructions[0])
	if f == nil {
		return nil
	}
	proto, ok := f.Type.(*btf.FuncProto)
	if !ok || len(proto.Params) == 0 {
		return nil
	}
	if have := len(proto.Params); have > want {
		fix := "declare no more"
		if kind == Pre {
			fix += ", or make it a Post hook or an Observer"
		}
		return &refusal{fmt.Sprintf("takes %d arguments, and %s hooks get %d", have, kind, want), fix}
	}
	if context := contextOf(proto); context != "" && context != e.typ.context && program.Type == ebpf.Extension {
		return &refusal{fmt.Sprintf("takes a %s, and the entrypoint's context is a %s", context, e.typ.context), "write the hook for the entrypoint's type"}
	}
	return nil
}

// contextOf returns the name of the struct that the first argument points to.
func contextOf(proto *btf.FuncProto) string {
	pointer, ok := btf.UnderlyingType(proto.Params[0].Type).(*btf.Pointer)
	if !ok {
		return ""
	}
	target, ok := btf.UnderlyingType(pointer.Target).(*btf.Struct)
	if !ok {
		return ""
	}
	return target.Name
}

// oneOf says which programs there are to choose from.
func oneOf(spec *ebpf.CollectionSpec) string {
	names := slices.Sorted(maps.Keys(spec.Programs))
	for i, name := range names {
		names[i] = printable(name)
	}
	switch len(names) {
	case 0:
		return "a program: the collection has none"
	case 1:
		return names[0]
	default:
		return "one of " + strings.Join(names, ", ")
	}
}

// nilEntry names a program, map or variable of the collection that is nil, or returns the empty string.
func nilEntry(spec *ebpf.CollectionSpec) string {
	for _, name := range slices.Sorted(maps.Keys(spec.Programs)) {
		if spec.Programs[name] == nil {
			return fmt.Sprintf("program %q", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(spec.Maps)) {
		if spec.Maps[name] == nil {
			return fmt.Sprintf("map %q", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(spec.Variables)) {
		if spec.Variables[name] == nil {
			return fmt.Sprintf("variable %q", name)
		}
	}
	return ""
}

// sameType takes the two types of TC, which have the same context and verdicts, for one.
func sameType(a, b *ebpf.ProgramSpec) bool {
	isTC := func(p *ebpf.ProgramSpec) bool { return p.Type == ebpf.SchedCLS || p.Type == ebpf.SchedACT }
	return a.Type == b.Type || isTC(a) && isTC(b)
}

// hookError names the hook in an error that does not yet.
func hookError(h *Hook, err error) error {
	var r *refusal
	if !errors.As(err, &r) {
		return fmt.Errorf("hook %q at entrypoint %q: %w", h.ID(), h.Entrypoint, err)
	}
	return &HookError{Entrypoint: h.Entrypoint, Owner: h.Owner, Hook: h.Name, Reason: r.reason, Fix: r.fix}
}

// error names the entrypoint in an error about its original.
func (e *entrypoint) error(err error) error {
	return hookError(&Hook{Entrypoint: e.name}, err)
}

// partError names a part in an error.
func (e *entrypoint) partError(p *part, reason, fix string) error {
	if h := p.hook; h != nil {
		return hookError(&h.Hook, &refusal{reason, fix})
	}
	return e.error(&refusal{reason, fix})
}
