package datapath

import (
	"fmt"
	"maps"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
)

// SlotInfo describes a function of an instrumented program that waits to be replaced by a program extension.
type SlotInfo struct {
	Hook       Hook
	Entrypoint string // key of the program in the collection
	Function   string // name of the function to replace
	Type       ebpf.ProgramType
	AttachType ebpf.AttachType
	Proto      *btf.FuncProto // what the replacing function must look like
	Verdict    int32          // what the function returns while nothing replaces it
	Frags      bool           // the entrypoint handles XDP frags, so what replaces the function must too; the kernel does not look
}

// Slots returns the slots of all entrypoints, in the order in which they run.
func (p *Plan) Slots() []SlotInfo {
	var slots []SlotInfo
	for _, e := range p.entrypoints {
		for _, h := range e.hooks {
			if h.composition != Slot {
				continue
			}
			slots = append(slots, SlotInfo{
				Hook: h.clone(), Entrypoint: e.name, Function: h.symbol, Type: e.program.Type, AttachType: e.program.AttachType,
				Proto: e.proto(h.Kind), Verdict: h.empty, Frags: handlesFrags(e.program),
			})
		}
	}
	return slots
}

// checkSlot finds out what the slot returns while it is empty.
func (e *entrypoint) checkSlot(spec *ebpf.CollectionSpec, h *plannedHook, o Options) error {
	if !o.Features.Freplace {
		return &refusal{"is a slot, and the kernel has no program extensions", "set Features.Freplace if it has, or " + h.toLink()}
	}
	if array := arrayWith(spec, e.name); array != "" {
		return &refusal{fmt.Sprintf("is a slot of a program that the map %q holds for tail calls, and the kernel replaces no functions of such programs", array), h.toLink()}
	}
	for _, verdict := range h.Proceed {
		if e.typ.clamp.apply(verdict) != verdict {
			return &refusal{"proceeds with " + e.typ.verdict(verdict) + ", which no program extension of this type can return", "take it from Proceed"}
		}
	}
	if h.Kind != Observer && !o.SlotsFailOpen && e.typ.deny != e.typ.proceed && slices.Contains(h.Proceed, e.typ.deny) {
		return &refusal{"proceeds with " + e.typ.verdict(e.typ.deny) + ", which a slot returns to end the run while it is empty", "take it from Proceed, or set Options.SlotsFailOpen"}
	}
	h.empty = e.typ.deny
	if h.Kind == Observer || o.SlotsFailOpen || e.typ.deny == e.typ.proceed {
		h.empty = h.Proceed[0]
	}
	return nil
}

// toLink says how to have code linked in place of a slot.
func (h *plannedHook) toLink() string {
	if h.Collection != nil {
		return "leave Composition at Auto"
	}
	return "bring the hook's collection"
}

// arrayWith returns the PROG_ARRAY that holds a program. The kernel lets no such program be extended
// (kernel/bpf/arraymap.c, prog_fd_array_get_ptr; since 6.13, in 6.12.y and in late 6.1.y).
func arrayWith(spec *ebpf.CollectionSpec, program string) string {
	for _, name := range slices.Sorted(maps.Keys(spec.Maps)) {
		m := spec.Maps[name]
		if m.Type == ebpf.ProgramArray && slices.ContainsFunc(m.Contents, func(kv ebpf.MapKV) bool { return kv.Value == program }) {
			return name
		}
	}
	return ""
}

// stub is the function of an empty slot. Global functions are verified alone, so main sees an unknown number,
// whatever it returns. The call that is never reached makes it a function that changes packets; the kernel
// looks for that before it removes dead code.
func (e *entrypoint) stub(p *part) asm.Instructions {
	empty := p.hook.empty
	first := asm.Mov.Imm(asm.R0, empty).WithSymbol(p.symbol).WithSource(asm.Comment("slot of " + printable(p.hook.ID())))
	function := &btf.Func{Name: p.symbol, Linkage: btf.GlobalFunc, Type: e.proto(p.kind)}
	return asm.Instructions{
		btf.WithFuncMetadata(first, function),
		skip(asm.JEq.Imm(asm.R0, empty, ""), 2),
		asm.Mov.Imm(asm.R2, 0),
		e.typ.changer.Call(),
		asm.Return(),
	}
}
