package datapath

import "github.com/cilium/ebpf/asm"

// registerSet has a bit for each register.
type registerSet uint16

func setOf(registers ...asm.Register) registerSet {
	var s registerSet
	for _, r := range registers {
		s |= 1 << r
	}
	return s
}

func (s registerSet) has(r asm.Register) bool { return s&(1<<r) != 0 }

// What there is, what a call takes, r1 to r5, and what it overwrites.
const (
	allRegisters      registerSet = 1<<(asm.RFP+1) - 1
	argumentRegisters registerSet = 0b111110
	callerRegisters   registerSet = 0b111111
)

// scratch returns a register that instruction i does not use and whose value nothing after it reads. Those that survive calls are no
// candidates: if the function does not use them, they may be somebody else's.
func scratch(fn *function, i int) (asm.Register, bool) {
	free := callerRegisters &^ liveAfter(fn)[i] &^ setOf(registers(&fn.code[i])...)
	for r := asm.R0; r <= asm.R5; r++ {
		if free.has(r) {
			return r, true
		}
	}
	return 0, false
}

// liveAfter returns, by instruction, the registers that may be read later before they are written.
func liveAfter(fn *function) []registerSet {
	before, after := make([]registerSet, len(fn.code)), make([]registerSet, len(fn.code))
	for changed := true; changed; {
		changed = false
		for i := len(fn.code) - 1; i >= 0; i-- {
			ins := &fn.code[i]
			after[i] = 0
			if target := fn.targets[i]; target >= 0 {
				after[i] |= before[target]
			}
			if i+1 < len(fn.code) && !endsFlow(ins) {
				after[i] |= before[i+1]
			}
			read, written := access(ins)
			if live := after[i]&^written | read; live != before[i] {
				before[i], changed = live, true
			}
		}
	}
	return after
}

// access returns which registers an instruction reads, at most, and which it writes for sure.
func access(ins *asm.Instruction) (read, written registerSet) {
	named := setOf(registers(ins)...)
	dst, src := setOf(ins.Dst), setOf(ins.Src)
	switch class := ins.OpCode.Class(); {
	case isExit(ins):
		return setOf(asm.R0), 0
	case ins.OpCode.JumpOp() == asm.Call:
		return argumentRegisters, callerRegisters
	case class == asm.LdXClass, class == asm.StXClass && isLoadAcquire(ins):
		return src, dst
	case class == asm.LdClass:
		return 0, dst
	case class == asm.StXClass && ins.OpCode.Mode() == asm.AtomicMode:
		return named | setOf(asm.R0), 0
	case class.IsALU() && ins.OpCode.ALUOp()&movMask == asm.Mov:
		if ins.OpCode.Source() == asm.RegSource {
			return src, dst
		}
		return 0, dst
	case class.IsALU():
		return named, dst
	}
	return named, 0
}

// movMask leaves of a move that extends the sign the move.
const movMask = asm.ALUOp(0xff)
