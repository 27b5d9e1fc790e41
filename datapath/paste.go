package datapath

import (
	"slices"

	"github.com/cilium/ebpf/asm"
)

// pasted returns the main function as instructions to be put into another function: the context is expected in r1, for a post hook or observer the verdict in r2, and
// the verdict is left in r0 where the instructions end. What an exit did, a jump to the end does.
//
// The stack moves down by shift bytes, a multiple of 8, to leave the top to the surrounding function. The registers to keep, of r6
// to r9, are not touched: there must be enough others (facts.savedRegisters). r0 to r5 are lost.
//
// It must not be asked for when the fragment is unpastable.
func (f *fragment) pasted(shift int16, keep ...asm.Register) (asm.Instructions, error) {
	fn := f.functions[0]
	p := paster{
		fn: fn, callees: f.names, shift: shift, names: renameRegisters(savedRegisters(fn.code), keep), targeted: fn.targeted(), body: newBody(len(fn.code)),
	}
	for i := range fn.code {
		p.body.at[i] = len(p.body.out)
		p.instruction(i)
	}
	return p.body.finish()
}

// renameRegisters returns the register to use for each of r0 to r10, so that the saved ones that are used give way to those to keep.
func renameRegisters(used, keep []asm.Register) [asm.RFP + 1]asm.Register {
	var names [asm.RFP + 1]asm.Register
	for r := range names {
		names[r] = asm.Register(r)
	}
	free := asm.R9
	for _, r := range used {
		if !slices.Contains(keep, r) {
			continue
		}
		for slices.Contains(keep, free) || slices.Contains(used, free) {
			free--
		}
		names[r] = free
		free--
	}
	return names
}

type paster struct {
	fn       *function
	callees  []string // names of functions, by number
	shift    int16
	names    [asm.RFP + 1]asm.Register
	targeted []bool // by instruction: something jumps to it
	moved    bool   // the shift of the pointer in the last instruction is still to be made
	body     *body
}

func (p *paster) instruction(i int) {
	ins := withoutNames(p.fn.code[i])
	if isExit(&ins) {
		p.exit(i, &ins)
		return
	}
	p.rename(&ins)
	switch {
	case p.fn.targets[i] >= 0:
		p.body.emitJump(ins, p.thread(p.fn.targets[i]))
	case p.fn.calls[i] >= 0:
		p.body.emit(withCallee(ins, p.callees[p.fn.calls[i]]))
	case p.shift != 0:
		p.emitShifted(i, ins)
	default:
		p.body.emit(ins)
	}
}

// exit becomes a jump to the end. The last one needs none, and one that is only jumped to is gone, because those jumps go to the end themselves.
func (p *paster) exit(i int, ins *asm.Instruction) {
	end := len(p.fn.code)
	if i == end-1 || i > 0 && endsFlow(&p.fn.code[i-1]) {
		return
	}
	jump := asm.Instruction{OpCode: asm.Ja.Op(asm.ImmSource), Metadata: ins.Metadata}
	p.body.emitJump(jump, end)
}

// thread returns where a jump ends up: at the end, when it leads to an exit.
func (p *paster) thread(target int) int {
	if isExit(&p.fn.code[target]) {
		return len(p.fn.code)
	}
	return target
}

func (p *paster) rename(ins *asm.Instruction) {
	named := registers(ins)
	if len(named) > 0 {
		ins.Dst = p.names[ins.Dst]
	}
	if len(named) > 1 {
		ins.Src = p.names[ins.Src]
	}
}
