package datapath_test

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/cnikit/cnikit/datapath"
)

// An XDP program that passes everything, and three hooks, of which one asks to run after another.
func Example() {
	returns := func(verdict int32) *ebpf.CollectionSpec {
		return &ebpf.CollectionSpec{Programs: map[string]*ebpf.ProgramSpec{"xdp": {
			Name: "xdp", Type: ebpf.XDP, License: "MIT",
			Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, verdict), asm.Return()},
		}}}
	}
	plan, err := datapath.NewPlan(returns(2), []datapath.Hook{
		{Owner: "acme", Name: "filter", Entrypoint: "xdp", Kind: datapath.Pre, Collection: returns(1), Program: "xdp", After: []string{"zeta"}},
		{Owner: "zeta", Name: "count", Entrypoint: "xdp", Kind: datapath.Pre, Collection: returns(-1), Program: "xdp"},
		{Owner: "zeta", Name: "trace", Entrypoint: "xdp", Kind: datapath.Observer, Collection: returns(0), Program: "xdp"},
	}, datapath.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(plan)
	// Output:
	// xdp (XDP)
	//   pre       zeta/count   pasted  small enough to paste (2 of 512 instructions)   PROCEED(-1) goes on, others end the run
	//   pre       acme/filter  pasted  small enough to paste (2 of 512 instructions)   PROCEED(-1) goes on, others end the run
	//   original  xdp          pasted  small enough to paste (2 of 4096 instructions)
	//   observer  zeta/trace   pasted  small enough to paste (2 of 512 instructions)   runs always; its verdict is ignored
}

// Hooks that contradict each other are an error that names them, and nobody else.
func ExampleCycleError() {
	code := &ebpf.CollectionSpec{Programs: map[string]*ebpf.ProgramSpec{"xdp": {
		Name: "xdp", Type: ebpf.XDP, License: "MIT",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, -1), asm.Return()},
	}}}
	hook := func(owner string, after ...string) datapath.Hook {
		return datapath.Hook{Owner: owner, Name: "a", Entrypoint: "xdp", Kind: datapath.Pre, Collection: code, Program: "xdp", After: after}
	}
	_, err := datapath.NewPlan(code, []datapath.Hook{hook("acme", "zeta"), hook("mid", "acme"), hook("zeta", "acme")}, datapath.Options{})
	var cycle *datapath.CycleError
	if errors.As(err, &cycle) {
		fmt.Println(cycle.Hooks, cycle.Constraints)
	}
	// Output: [acme/a zeta/a] [acme/a after zeta zeta/a after acme]
}
