package datapath

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// facts are what the kernel's rules ask about a program.
type facts struct {
	entrySize int // of the main function, in units of 8 bytes, as the kernel counts

	// frame is how much stack the main function uses, in bytes. It is what the kernel finds, or more.
	frame int

	tailCalls      bool   // in any function
	gplOnly        string // a helper or kernel function that only GPL-compatible programs may call, as the kernel calls it; empty if there is none
	throws         bool   // it can end the whole program from anywhere
	packetLoads    bool   // in any function, of the kind LD_ABS or LD_IND
	unwritten      bool   // its main function reads stack that it may not have written
	dynptrs        bool   // in any function it makes dynptrs that nothing destroys
	kconfig        bool   // it reads variables of the kernel's configuration
	unpastable     string // why its main function must stay a function; empty if it need not
	savedRegisters int    // how many of r6 to r9 the main function uses

	graph []node // of the functions; the main function is the first
}

// node is a function in the call graph.
type node struct {
	name     string
	frame    int
	tailCall bool
	calls    []int // also functions that helpers call back
}

// inspect reads a program. The error says what no kernel accepts.
func inspect(p *ebpf.ProgramSpec) (facts, error) {
	functions, err := split(p.Instructions)
	if err != nil {
		return facts{}, err
	}
	return inspectFunctions(functions, measureStack(functions[0]))
}

// inspectFunctions is for code whose main function's stack is known.
func inspectFunctions(functions []*function, main stackUse) (facts, error) {
	var f facts
	for n, fn := range functions {
		s := main
		if n > 0 {
			s = measureStack(fn)
		}
		f.graph = append(f.graph, node{name: fn.name, frame: s.frame})
		for i := range fn.code {
			f.look(n, fn, i)
		}
		if n == 0 {
			f.entrySize, f.frame, f.unwritten = sizeOf(fn), s.frame, s.unwritten
			f.savedRegisters = len(savedRegisters(fn.code))
			f.unpastable = unpastable(fn, s)
		}
	}
	switch {
	case f.unpastable != "":
	case f.tailCalls:
		f.unpastable = "a program that it tail-calls would end the whole run"
	case f.packetLoads:
		f.unpastable = "the verifier loses track of what functions with loads of the kind LD_ABS return" // Linux 6.18: EFAULT when it looks back through one
	case f.dynptrs:
		f.unpastable = "its dynptrs would stay on the stack, where the verifier lets no helper write over them" // check_stack_range_initialized
	}
	return f, checkGraph(f.graph)
}

// look takes notice of an instruction of function n.
func (f *facts) look(n int, fn *function, i int) {
	ins := &fn.code[i]
	if callee := fn.calls[i]; callee >= 0 && !callsBackLater(fn, i) {
		f.graph[n].calls = append(f.graph[n].calls, callee)
	}
	switch {
	case isPacketLoad(ins):
		f.packetLoads = true
	case ins.IsBuiltinCall():
		f.lookHelper(n, asm.BuiltinFunc(ins.Constant))
	case ins.IsKfuncCall():
		f.throws = f.throws || isThrow(ins)
		f.dynptrs = f.dynptrs || strings.HasPrefix(ins.Reference(), "bpf_dynptr_from_") || ins.Reference() == "bpf_dynptr_clone"
		f.gplOnly = cmp.Or(f.gplOnly, ins.Reference()) // all kernel functions are
	case ins.IsLoadFromMap():
		f.kconfig = f.kconfig || isKconfig(ins)
	}
}

func (f *facts) lookHelper(n int, helper asm.BuiltinFunc) {
	if helper == asm.FnTailCall {
		f.tailCalls = true
		f.graph[n].tailCall = true
	}
	f.dynptrs = f.dynptrs || helper == asm.FnDynptrFromMem
	if gplOnlyHelper(helper) {
		f.gplOnly = cmp.Or(f.gplOnly, helperName(helper))
	}
}

// sizeOf returns the size of a function in units of 8 bytes.
func sizeOf(fn *function) int { return int(fn.code.Size() / asm.InstructionSize) }

// isKconfig recognizes the load of a kconfig variable, which the ELF loader leaves without a reference: its map exists
// only while a program is loaded.
func isKconfig(ins *asm.Instruction) bool {
	return ins.Src == asm.PseudoMapValue && ins.Reference() == "" && ins.Map() == nil && int32(ins.Constant) == 0
}

// callsBackLater says of a function pointer that it is given to something that calls it after the program is gone: such a
// function has a stack of its own (kernel/bpf/verifier.c, is_async_cb).
func callsBackLater(fn *function, i int) bool {
	if !fn.code[i].IsLoadOfFunctionPointer() {
		return false
	}
	for j := i + 1; j < len(fn.code); j++ {
		switch ins := &fn.code[j]; {
		case ins.IsBuiltinCall():
			return asm.BuiltinFunc(ins.Constant) == asm.FnTimerSetCallback
		case ins.IsKfuncCall():
			return ins.Reference() == "bpf_wq_set_callback_impl" || ins.Reference() == "bpf_wq_set_callback"
		}
	}
	return false
}

// unpastable returns why the code cannot run inside another function.
func unpastable(fn *function, s stackUse) string {
	for i := range fn.code {
		switch ins := &fn.code[i]; {
		case isPacketLoad(ins):
			return "its loads of the kind LD_ABS would end the whole run when they fail"
		case ins.OpCode.JumpOp() == asm.JCOND:
			return "its may_goto would count against a budget that belongs to a function"
		case usesFrameAsValue(ins):
			return "it uses the frame pointer other than to reach its stack"
		case storesFrame(ins):
			if _, ok := scratch(fn, i); !ok {
				return "it stores the frame pointer when no register is free"
			}
		}
	}
	if s.unwritten {
		return "it reads stack that it may not have written, where the verifier would find the pointers of other code"
	}
	if s.vague {
		return "how much stack it uses cannot be told from its code"
	}
	if size := sizeOf(fn); size > maxPasted {
		return fmt.Sprintf("its %d instructions are too many for jumps over them", size)
	}
	return ""
}

// maxPasted leaves a conditional jump over several pasted bodies within its range of 32767 instructions.
const maxPasted = 8192

// isPacketLoad recognizes the load from a packet that ends its function when the packet is too short.
func isPacketLoad(ins *asm.Instruction) bool {
	return ins.OpCode.Class() == asm.LdClass && (ins.OpCode.Mode() == asm.AbsMode || ins.OpCode.Mode() == asm.IndMode)
}

// checkGraph refuses recursion, which no kernel accepts (check_cfg), in the main function's call graph.
func checkGraph(graph []node) error {
	const unseen, open, done = 0, 1, 2
	state := make([]int, len(graph))
	var visit func(n int) error
	visit = func(n int) error {
		state[n] = open
		for _, callee := range graph[n].calls {
			switch state[callee] {
			case open:
				return &refusal{fmt.Sprintf("calls itself through the function %q", graph[callee].name), "replace the recursion by a loop"}
			case unseen:
				if err := visit(callee); err != nil {
					return err
				}
			}
		}
		state[n] = done
		return nil
	}
	for n := range graph {
		if state[n] == unseen {
			if err := visit(n); err != nil {
				return err
			}
		}
	}
	return nil
}

// savedRegisters returns which of the registers that survive calls the code uses, in ascending order.
func savedRegisters(code asm.Instructions) []asm.Register {
	var used []asm.Register
	for i := range code {
		for _, r := range registers(&code[i]) {
			if r >= asm.R6 && r <= asm.R9 && !slices.Contains(used, r) {
				used = append(used, r)
			}
		}
	}
	slices.Sort(used)
	return used
}

// registers returns what of the instruction's two register fields names a register. The other uses are marks (what kind of
// constant or call it is), or none.
func registers(ins *asm.Instruction) []asm.Register {
	fields := [2]asm.Register{ins.Dst, ins.Src}
	switch class := ins.OpCode.Class(); {
	case class == asm.LdXClass, class == asm.StXClass:
		return fields[:]
	case class == asm.LdClass, class == asm.StClass:
		return fields[:1]
	case class.IsALU():
		if ins.OpCode.Source() == asm.RegSource {
			return fields[:]
		}
		return fields[:1]
	}
	switch op := ins.OpCode.JumpOp(); {
	case op == asm.InvalidJumpOp, op == asm.Call, op == asm.Exit, op == asm.Ja, op == asm.JCOND:
		return nil
	case ins.OpCode.Source() == asm.RegSource:
		return fields[:]
	}
	return fields[:1]
}
