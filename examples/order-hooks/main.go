// Command order-hooks puts hooks of two teams around an XDP program, prints in which order they run and how,
// and runs the result on packets of two lengths. It attaches nothing; loading takes root.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"github.com/cnikit/cnikit/datapath"
)

func main() {
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "order-hooks:", err)
		os.Exit(1)
	}
}

func run(out io.Writer) error {
	release, err := os.ReadFile("/proc/sys/kernel/osrelease") // as uname -r prints it
	if err != nil {
		return err
	}
	features, err := datapath.KernelFeatures(string(release)) // newer kernels have more stack for hooks; without Features a plan suits 6.1
	if err != nil {
		return err
	}
	plan, err := datapath.NewPlan(returns(2), []datapath.Hook{ // the original passes everything
		{Owner: "firewall", Name: "jumbo", Entrypoint: "xdp", Kind: datapath.Pre, Collection: dropLong(), Program: "xdp", After: []string{"meter"}},
		{Owner: "meter", Name: "admit", Entrypoint: "xdp", Kind: datapath.Pre, Collection: returns(-1), Program: "xdp"},
		{Owner: "firewall", Name: "reflect", Entrypoint: "xdp", Kind: datapath.Post, Collection: returns(3), Program: "xdp"},
		{Owner: "meter", Name: "account", Entrypoint: "xdp", Kind: datapath.Observer, Collection: returns(0), Program: "xdp"},
	}, datapath.Options{Features: features})
	if err != nil {
		return err
	}
	fmt.Fprint(out, plan)
	collection, err := ebpf.NewCollection(plan.Build())
	if err != nil {
		return fmt.Errorf("load dispatcher: %w", err)
	}
	defer collection.Close()
	for _, length := range []int{64, 1500} {
		verdict, _, err := collection.Programs["xdp"].Test(make([]byte, length))
		if err != nil {
			return fmt.Errorf("run dispatcher: %w", err)
		}
		fmt.Fprintf(out, "%d bytes: verdict %d\n", length, verdict)
	}
	return nil
}

// returns is a program that does nothing but return a verdict.
func returns(verdict int32) *ebpf.CollectionSpec {
	return program(asm.Mov.Imm(asm.R0, verdict), asm.Return())
}

// dropLong drops packets of 1000 bytes and more, and lets others go on.
func dropLong() *ebpf.CollectionSpec {
	return program(
		asm.LoadMem(asm.R2, asm.R1, 0, asm.Word), asm.LoadMem(asm.R3, asm.R1, 4, asm.Word), // where the packet begins and ends
		asm.Mov.Imm(asm.R0, -1), asm.Add.Imm(asm.R2, 1000), asm.JGT.Reg(asm.R2, asm.R3, "out"),
		asm.Mov.Imm(asm.R0, 1), asm.Return().WithSymbol("out"),
	)
}

func program(code ...asm.Instruction) *ebpf.CollectionSpec {
	return &ebpf.CollectionSpec{Programs: map[string]*ebpf.ProgramSpec{"xdp": {Name: "xdp", Type: ebpf.XDP, License: "MIT", Instructions: code}}}
}
