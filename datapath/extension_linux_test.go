package datapath_test

import (
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	ebpflink "github.com/cilium/ebpf/link"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/datapath"
	"github.com/cnikit/cnikit/datapath/datapathtest"
)

// slotsOf returns hooks as another process would bring them: without code.
func slotsOf(hooks []datapath.Hook) []datapath.Hook {
	for i := range hooks {
		hooks[i].Collection, hooks[i].Program, hooks[i].Composition = nil, "", datapath.Slot
	}
	return hooks
}

// dispatcher is a loaded collection with slots.
type dispatcher struct {
	plan    *datapath.Plan
	program *ebpf.Program   // the entrypoint
	links   []ebpflink.Link // what fills the slots
}

func loadDispatcher(t *testing.T, spec *ebpf.CollectionSpec, hooks []datapath.Hook, o datapath.Options) *dispatcher {
	t.Helper()
	o.Features.Freplace = true
	plan, err := datapath.NewPlan(spec, hooks, o)
	require.NoError(t, err)
	return &dispatcher{plan: plan, program: datapathtest.Load(t, plan.Build()).Programs["entry"]}
}

// extension is a program that replaces the slot's function. The function's own name does not matter.
func extension(target *ebpf.Program, s datapath.SlotInfo, code asm.Instructions) *ebpf.ProgramSpec {
	function := &btf.Func{Name: "anything", Linkage: btf.GlobalFunc, Type: s.Proto}
	code = append(asm.Instructions{btf.WithFuncMetadata(code[0].WithSymbol(function.Name), function)}, code[1:]...)
	return &ebpf.ProgramSpec{
		Name: "extension", Type: ebpf.Extension, AttachTarget: target, AttachTo: s.Function, License: "MIT", Instructions: code,
	}
}

// fill has the hook's code replace the function of each slot.
func (d *dispatcher) fill(t *testing.T, code func(s datapath.SlotInfo) asm.Instructions) {
	t.Helper()
	for _, s := range d.plan.Slots() {
		program, err := ebpf.NewProgram(extension(d.program, s, code(s)))
		require.NoError(t, err, "%s: %+v", s.Function, err)
		l, err := ebpflink.AttachFreplace(d.program, s.Function, program)
		require.NoError(t, err, s.Function)
		require.NoError(t, program.Close()) // the link keeps it
		t.Cleanup(func() { _ = l.Close() })
		d.links = append(d.links, l)
	}
}

// returning is code that does nothing but return a verdict.
func returning(verdict int32) asm.Instructions {
	return asm.Instructions{asm.Mov.Imm(asm.R0, verdict), asm.Return()}
}

// checkSlots is check with hooks in slots.
func (c chain) checkSlots(t *testing.T, o datapath.Options) {
	t.Helper()
	trace := datapathtest.NewTrace(t)
	c.compare(t, trace, c.loadSlots(t, trace, o).program)
}

// loadSlots builds and loads the chain with its hooks in slots, and fills them.
func (c chain) loadSlots(t *testing.T, trace *datapathtest.Trace, o datapath.Options) *dispatcher {
	t.Helper()
	d := loadDispatcher(t, c.entry(trace), slotsOf(c.hooks(trace, datapath.Slot)), o)
	d.fill(t, func(s datapath.SlotInfo) asm.Instructions {
		i := slices.IndexFunc(c.links, func(l link) bool { return l.name == s.Hook.Name })
		return c.links[i].code(trace, int32(i))
	})
	return d
}
