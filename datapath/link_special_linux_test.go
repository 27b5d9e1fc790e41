package datapath

import (
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/stretchr/testify/assert"

	"github.com/cnikit/cnikit/internal/testenv"
)

// Instructions that compilers and random programs have not.
func TestRareInstructionsDoTheSameAsAlone(t *testing.T) {
	testenv.BPF(t)
	tc := hosts()[1]
	mayGoto := asm.Instruction{OpCode: asm.OpCode(asm.JumpClass) | asm.OpCode(asm.JCOND), Offset: -1}
	verdict := func(code ...asm.Instruction) asm.Instructions {
		return append(code, asm.And.Imm(asm.R0, 3), asm.Return())
	}
	for _, c := range []struct {
		name   string
		pasted bool
		code   asm.Instructions
	}{
		{"load from the packet, which may be too short", false, verdict(asm.Mov.Reg(asm.R6, asm.R1), asm.LoadAbs(50, asm.Byte))},
		{"load from the packet by index", false, verdict(asm.Mov.Reg(asm.R6, asm.R1), asm.Mov.Imm(asm.R7, 30), asm.LoadInd(asm.R0, asm.R7, 20, asm.Byte))},
		{"load from the packet in a function", false, append(verdict(asm.Call.Label("load"), asm.Add.Imm(asm.R0, 1)),
			verdict(asm.Mov.Reg(asm.R6, asm.R1).WithSymbol("load"), asm.LoadAbs(50, asm.Byte))...)},
		{"may_goto", false, verdict(
			asm.Mov.Imm(asm.R0, 0),
			mayGoto.WithReference("out").WithSymbol("again"), asm.Add.Imm(asm.R0, 3), asm.JGT.Imm(asm.R0, 100, "out"), asm.Ja.Label("again"),
			asm.Add.Imm(asm.R0, 1).WithSymbol("out"),
		)},
		{"long jump", true, verdict(
			asm.LoadMem(asm.R0, asm.R1, 0, asm.Word), asm.JGT.Imm(asm.R0, 60, "long"), asm.LongJump("out"),
			asm.Add.Imm(asm.R0, 1).WithSymbol("long"), asm.LongJump("out"), asm.Mov.Imm(asm.R0, 0).WithSymbol("out"),
		)},
		{"fourth instruction set", true, verdict(
			asm.LoadMem(asm.R7, asm.R1, 0, asm.Word), asm.MovSX8.Reg(asm.R6, asm.R7), asm.BSwap(asm.R6, asm.DWord), asm.SDiv.Imm(asm.R6, -7),
			asm.StoreMem(asm.RFP, -8, asm.R6, asm.DWord), asm.LoadMemSX(asm.R8, asm.RFP, -8, asm.Half), asm.SMod.Reg32(asm.R8, asm.R7), asm.Mov.Reg(asm.R0, asm.R8),
		)},
		{"a pointer for a verdict, on a way that no packet takes", true, asm.Instructions{
			asm.LoadMem(asm.R2, asm.R1, 0, asm.Word), asm.Mov.Reg(asm.R0, asm.R1), asm.JEq.Imm(asm.R2, 1<<30, "out"),
			asm.Mov.Imm(asm.R0, 1), asm.Return().WithSymbol("out"),
		}},
		{"a pointer for a verdict, right before the end", true, asm.Instructions{
			asm.LoadMem(asm.R2, asm.R1, 0, asm.Word), asm.Mov.Imm(asm.R0, 1), asm.JNE.Imm(asm.R2, 1<<30, "out"),
			asm.Mov.Reg(asm.R0, asm.R1), asm.Return(), asm.Return().WithSymbol("out"),
		}},
		{"ordered loads and stores", true, verdict(
			asm.LoadMem(asm.R7, asm.R1, 0, asm.Word), ordered(asm.StoreRelease(asm.RFP, asm.R7, asm.DWord, -8)), ordered(asm.LoadAcquire(asm.R0, asm.RFP, asm.DWord, -8)),
		)},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &ebpf.ProgramSpec{Name: "rare", Type: tc.random.Type, License: "GPL", Instructions: c.code}
			describeAll(t, p, tc)
			spec := &ebpf.CollectionSpec{Programs: map[string]*ebpf.ProgramSpec{"rare": p}}
			assert.Equal(t, c.pasted, compareWays(t, tc, spec, "rare"))
		})
	}
}

// ordered sets the constant of an atomic instruction, which the library encodes from there.
func ordered(ins asm.Instruction) asm.Instruction {
	ins.Constant = int64(ins.OpCode.AtomicOp() >> 8)
	return ins
}

// describeAll gives each function types, without which the kernel takes no loads from the packet in any but the first.
func describeAll(t *testing.T, p *ebpf.ProgramSpec, h host) {
	t.Helper()
	f, err := newFragment(p.Instructions, "")
	assert.NoError(t, err)
	entry, err := f.called("rare", h.proto())
	assert.NoError(t, err)
	p.Instructions = append(entry, f.subs...)
}
