package datapath

import "github.com/cilium/ebpf/asm"

// usesFrameAsValue says of an instruction that it takes the frame pointer for something else than the base of an access, a
// copy, or an offset: to compare it, or to compute with it in 32 bits. Such a use cannot be shifted, and compilers have none.
func usesFrameAsValue(ins *asm.Instruction) bool {
	if !setOf(registers(ins)...).has(asm.RFP) {
		return false
	}
	switch ins.OpCode.Class() {
	case asm.LdXClass, asm.StClass, asm.LdClass:
		return false
	case asm.StXClass:
		return ins.Src == asm.RFP && ins.OpCode.Mode() == asm.AtomicMode && !isLoadAcquire(ins)
	}
	return !copiesFrame(ins) && !addsFrame(ins)
}

// copiesFrame says that the instruction makes another register what the frame pointer is.
func copiesFrame(ins *asm.Instruction) bool {
	return ins.OpCode == asm.Mov.Op(asm.RegSource) && ins.Src == asm.RFP && ins.Dst != asm.RFP
}

// addsFrame says that the instruction adds the frame pointer to a number in another register.
func addsFrame(ins *asm.Instruction) bool {
	return ins.OpCode == asm.Add.Op(asm.RegSource) && ins.Src == asm.RFP && ins.Dst != asm.RFP
}

// storesFrame says that the instruction stores the frame pointer itself.
func storesFrame(ins *asm.Instruction) bool {
	return ins.OpCode.Class() == asm.StXClass && ins.Src == asm.RFP && !isLoadAcquire(ins)
}

// emitShifted emits an instruction so that it finds the stack shift bytes lower.
func (p *paster) emitShifted(i int, ins asm.Instruction) {
	if p.moved {
		p.moved = false
		ins.Constant -= int64(p.shift)
	}
	if frameBase(&ins) == asm.RFP {
		ins.Offset -= p.shift
	}
	switch {
	case copiesFrame(&ins):
		p.body.emit(ins)
		if p.moved = p.addsNext(i); !p.moved {
			p.body.emit(asm.Add.Imm(ins.Dst, -int32(p.shift)))
		}
	case addsFrame(&ins):
		p.body.emit(ins)
		p.body.emit(asm.Add.Imm(ins.Dst, -int32(p.shift)))
	case storesFrame(&ins):
		ins.Src, _ = scratch(p.fn, i) // unpastable has looked that there is one
		p.body.emit(asm.Mov.Reg(ins.Src, asm.RFP))
		p.body.emit(asm.Add.Imm(ins.Src, -int32(p.shift)))
		p.body.emit(ins)
	default:
		p.body.emit(ins)
	}
}

// addsNext says whether the next instruction adds a constant to the copy of the frame pointer that instruction i makes, and nothing
// else leads there: it can add the shift too.
func (p *paster) addsNext(i int) bool {
	if i+1 >= len(p.fn.code) || p.targeted[i+1] {
		return false
	}
	next := &p.fn.code[i+1]
	return next.OpCode == asm.Add.Op(asm.ImmSource) && next.Dst == p.fn.code[i].Dst
}

// frameBase returns the register from which the instruction's access to memory starts, or r0 if it has none.
func frameBase(ins *asm.Instruction) asm.Register {
	switch class := ins.OpCode.Class(); {
	case class == asm.LdXClass, class == asm.StXClass && isLoadAcquire(ins):
		return ins.Src
	case class.IsStore():
		return ins.Dst
	}
	return asm.R0
}
