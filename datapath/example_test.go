package datapath_test

import (
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/cnikit/cnikit/datapath"
)

// An XDP program that passes everything, and two hooks of which one asks to run after the other.
func Example() {
	program := func(verdict int32) *ebpf.CollectionSpec {
		return &ebpf.CollectionSpec{Programs: map[string]*ebpf.ProgramSpec{"entry": {
			Name: "entry", Type: ebpf.XDP, License: "MIT",
			Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, verdict), asm.Return()},
		}}}
	}
	plan, err := datapath.NewPlan(program(2), []datapath.Hook{
		{Owner: "acme", Name: "drop", Entrypoint: "entry", Kind: datapath.Pre, After: []string{"zeta"}, Collection: program(1), Program: "entry"},
		{Owner: "zeta", Name: "count", Entrypoint: "entry", Kind: datapath.Pre, Collection: program(-1), Program: "entry"},
	}, datapath.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(plan)
	// Output:
	// entry (XDP)
	//   pre zeta/count
	//   pre acme/drop
}
