package datapath

import (
	"fmt"
	"slices"

	"github.com/cilium/ebpf/asm"
)

// refusal says why code cannot become part of another program, and what to do about it. It becomes a [HookError] where the
// hook is known.
type refusal struct{ reason, fix string }

func (r *refusal) Error() string { return r.reason + ": " + r.fix }

// function is a function of a program, as the kernel sees it: it begins at the program's first instruction or where a call or
// a function pointer leads, and ends where the next begins (kernel/bpf/verifier.c, add_subprog_and_kfunc). Jumps and calls are resolved to
// indexes, whether they were written with a label or with an offset.
type function struct {
	name    string           // its symbol, empty if it has none
	code    asm.Instructions // the program's own: read only
	targets []int            // by instruction: the index it jumps to, or -1
	calls   []int            // by instruction: the number of the function it calls or points to, or -1
}

// split takes a program apart. The main function comes first.
func split(program asm.Instructions) ([]*function, error) {
	if len(program) == 0 {
		return nil, &refusal{"has no instructions", "name a program that was compiled or assembled"}
	}
	l, err := newLayout(program)
	if err != nil {
		return nil, err
	}
	called := make(map[int]int) // by instruction: the instruction it calls
	starts := []int{0}
	for i := range program {
		if !program[i].IsFunctionReference() {
			continue
		}
		if called[i], err = l.callee(i); err != nil {
			return nil, err
		}
		starts = append(starts, called[i])
	}
	slices.Sort(starts)
	starts = slices.Compact(starts)
	functions := make([]*function, len(starts))
	for n, start := range starts {
		end := len(program)
		if n+1 < len(starts) {
			end = starts[n+1]
		}
		if functions[n], err = l.function(start, end); err != nil {
			return nil, err
		}
		for i := start; i < end; i++ {
			if callee, ok := called[i]; ok {
				functions[n].calls[i-start], _ = slices.BinarySearch(starts, callee)
			}
		}
	}
	return functions, nil
}

// layout finds instructions by symbol and by offset.
type layout struct {
	program asm.Instructions
	offsets []int       // of each instruction, in units of 8 bytes
	indexes map[int]int // of instructions, by offset
	symbols map[string]int
}

func newLayout(program asm.Instructions) (*layout, error) {
	l := &layout{program: program, offsets: make([]int, len(program)), indexes: make(map[int]int, len(program)), symbols: map[string]int{}}
	offset := 0
	for i := range program {
		if symbol := program[i].Symbol(); symbol != "" {
			if _, ok := l.symbols[symbol]; ok {
				return nil, &refusal{fmt.Sprintf("has the symbol %q twice", symbol), "give each label a name of its own"}
			}
			l.symbols[symbol] = i
		}
		l.offsets[i] = offset
		l.indexes[offset] = i
		offset += int(program[i].Width())
	}
	return l, nil
}

// callee returns the instruction that a call or a load of a function pointer leads to. As in [asm.Instructions.Marshal], a reference counts
// when the constant is -1; otherwise the constant is a distance.
func (l *layout) callee(i int) (int, error) {
	ins := &l.program[i]
	if ins.Reference() != "" && ins.Constant == -1 {
		if start, ok := l.symbols[ins.Reference()]; ok {
			return start, nil
		}
		return 0, &refusal{fmt.Sprintf("calls %q, which its instructions do not contain", ins.Reference()),
			"append the function's instructions to the program's, as the ELF loader does"}
	}
	if start, ok := l.indexes[l.offsets[i]+1+int(int32(ins.Constant))]; ok {
		return start, nil
	}
	return 0, &refusal{fmt.Sprintf("calls something outside of its instructions at instruction %d", i), "correct the call's distance"}
}

// function resolves the jumps from start to end, none of which may leave that range.
func (l *layout) function(start, end int) (*function, error) {
	f := &function{name: l.program[start].Symbol(), code: l.program[start:end:end], targets: make([]int, end-start), calls: make([]int, end-start)}
	for i := range f.code {
		f.targets[i], f.calls[i] = -1, -1
		if setOf(registers(&f.code[i])...) > allRegisters {
			return nil, &refusal{fmt.Sprintf("uses a register after r10 at instruction %d", start+i), "there is none: correct the instruction"}
		}
		if !isJump(&f.code[i]) {
			continue
		}
		if f.code[i].OpCode.JumpOp() == asm.Ja && f.code[i].OpCode.Source() == asm.RegSource {
			return nil, &refusal{fmt.Sprintf("jumps through a table at instruction %d", start+i), "compile it with -fno-jump-tables"}
		}
		target, ok := l.target(start + i)
		if !ok || target < start || target >= end {
			return nil, &refusal{fmt.Sprintf("jumps out of the function %q at instruction %d", f.name, start+i), "correct the jump's label or offset"}
		}
		f.targets[i] = target - start
	}
	if !endsFlow(&f.code[len(f.code)-1]) {
		return nil, &refusal{fmt.Sprintf("runs over the end of the function %q", f.name), "end each function with an exit or a jump back"}
	}
	return f, nil
}

// target returns the instruction that a jump leads to. Labels count when the field that they fill is -1.
func (l *layout) target(i int) (int, bool) {
	ins := &l.program[i]
	distance := int(ins.Offset)
	if isLongJump(ins) {
		distance = int(int32(ins.Constant))
	}
	if ins.Reference() != "" && distance == -1 {
		target, ok := l.symbols[ins.Reference()]
		return target, ok
	}
	target, ok := l.indexes[l.offsets[i]+1+distance]
	return target, ok
}

// targeted says, by instruction, whether a jump leads there.
func (fn *function) targeted() []bool {
	targeted := make([]bool, len(fn.code))
	for _, target := range fn.targets {
		if target >= 0 {
			targeted[target] = true
		}
	}
	return targeted
}

// isJump says whether the instruction goes to another one of its function, always or on a condition.
func isJump(ins *asm.Instruction) bool {
	op := ins.OpCode.JumpOp()
	return op != asm.InvalidJumpOp && op != asm.Call && op != asm.Exit
}

// isLongJump recognizes the unconditional jump with a distance of 32 bits.
func isLongJump(ins *asm.Instruction) bool {
	return ins.OpCode.Class() == asm.Jump32Class && ins.OpCode.JumpOp() == asm.Ja
}

func isExit(ins *asm.Instruction) bool { return ins.OpCode.JumpOp() == asm.Exit }

// endsFlow says that what follows the instruction is not reached through it.
func endsFlow(ins *asm.Instruction) bool {
	return isExit(ins) || ins.OpCode.JumpOp() == asm.Ja || isThrow(ins)
}

// isThrow recognizes the kernel function that unwinds the whole program and does not come back.
func isThrow(ins *asm.Instruction) bool { return ins.IsKfuncCall() && ins.Reference() == "bpf_throw" }
