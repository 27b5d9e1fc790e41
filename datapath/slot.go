package datapath

import (
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
)

// SlotInfo describes a function of an instrumented program that waits to be replaced.
type SlotInfo struct {
	Hook       Hook
	Entrypoint string
	Program    string // key of the program in the collection
	Function   string // name of the function to replace, which a program extension is attached to
	Type       ebpf.ProgramType
	AttachType ebpf.AttachType
	Proto      *btf.FuncProto // what the replacing function must look like
	Frags      bool           // the entrypoint handles XDP frags, so the replacing program must too
}

// Slots returns the slots of all entrypoints, in the order in which they run.
func (p *Plan) Slots() []SlotInfo { return nil }

// Maps returns, for a hook, what its maps are called in the instrumented collection, by their names in the hook's own.
func (p *Plan) Maps(entrypoint, owner, name string) map[string]string { return nil }
