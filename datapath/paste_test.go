package datapath

import (
	"fmt"
	"testing"

	"github.com/cilium/ebpf/asm"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPasted(t *testing.T) {
	ja := func(offset int16) asm.Instruction {
		return asm.Instruction{OpCode: asm.Ja.Op(asm.ImmSource), Offset: offset}
	}
	at := func(ins asm.Instruction, offset int16) asm.Instruction {
		ins = ins.WithReference("")
		ins.Offset = offset
		return ins
	}
	fetchAdd := func(dst, src asm.Register, offset int16) asm.Instruction {
		ins := asm.FetchAdd.Mem(dst, src, asm.DWord, offset)
		ins.Constant = int64(asm.FetchAdd >> 8)
		return ins
	}
	exit := asm.Return()
	for _, c := range []struct {
		name       string
		shift      int16
		keep       []asm.Register
		code, want asm.Instructions
	}{
		{"last exit falls out", 0, nil,
			asm.Instructions{asm.Mov.Imm(asm.R0, 1), exit},
			asm.Instructions{asm.Mov.Imm(asm.R0, 1)}},
		{"exit in the middle jumps", 0, nil,
			asm.Instructions{asm.Mov.Imm(asm.R0, 1), asm.JEq.Imm(asm.R1, 0, "more"), exit, asm.Mov.Imm(asm.R0, 2).WithSymbol("more"), exit},
			asm.Instructions{asm.Mov.Imm(asm.R0, 1), at(asm.JEq.Imm(asm.R1, 0, ""), 1), ja(1), asm.Mov.Imm(asm.R0, 2)}},
		{"jumps to exits go to the end", 0, nil,
			asm.Instructions{
				asm.Mov.Imm(asm.R0, 1), asm.JEq.Imm(asm.R1, 0, "out"), asm.Mov.Imm(asm.R0, 2), asm.Ja.Label("last"),
				exit.WithSymbol("out"), exit.WithSymbol("last"),
			},
			asm.Instructions{asm.Mov.Imm(asm.R0, 1), at(asm.JEq.Imm(asm.R1, 0, ""), 2), asm.Mov.Imm(asm.R0, 2), ja(0)}},
		{"ends with a jump back", 0, nil,
			asm.Instructions{asm.Ja.Label("work"), exit.WithSymbol("out"), asm.Mov.Imm(asm.R0, 0).WithSymbol("work"), asm.Ja.Label("out")},
			asm.Instructions{ja(0), asm.Mov.Imm(asm.R0, 0), ja(0)}},
		{"long jumps", 0, nil,
			asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.LongJump("out"), asm.LoadImm(asm.R0, 1<<40, asm.DWord), exit.WithSymbol("out")},
			asm.Instructions{asm.Mov.Imm(asm.R0, 0), {OpCode: asm.LongJump("").OpCode, Constant: 2}, asm.LoadImm(asm.R0, 1<<40, asm.DWord)}},
		{"registers give way", 0, []asm.Register{asm.R6, asm.R7},
			asm.Instructions{
				asm.Mov.Reg(asm.R6, asm.R1), asm.LoadMem(asm.R8, asm.R6, 4, asm.Word), asm.StoreMem(asm.R8, 0, asm.R6, asm.Word), asm.LoadImm(asm.R6, 0, asm.DWord),
				asm.LoadMapPtr(asm.R6, 7), asm.JEq.Reg(asm.R8, asm.R6, "end"), asm.Neg.Imm(asm.R6, 0), exit.WithSymbol("end"),
			},
			asm.Instructions{
				asm.Mov.Reg(asm.R9, asm.R1), asm.LoadMem(asm.R8, asm.R9, 4, asm.Word), asm.StoreMem(asm.R8, 0, asm.R9, asm.Word), asm.LoadImm(asm.R9, 0, asm.DWord),
				asm.LoadMapPtr(asm.R9, 7), at(asm.JEq.Reg(asm.R8, asm.R9, ""), 1), asm.Neg.Imm(asm.R9, 0),
			}},
		{"the stack moves", 16, nil,
			asm.Instructions{
				asm.StoreImm(asm.RFP, -8, 1, asm.Byte), asm.StoreMem(asm.RFP, -16, asm.R1, asm.DWord), asm.LoadMem(asm.R2, asm.RFP, -16, asm.DWord),
				fetchAdd(asm.RFP, asm.R2, -16), asm.LoadAcquire(asm.R2, asm.RFP, asm.DWord, -16), asm.StoreMem(asm.R2, -16, asm.R1, asm.DWord), exit,
			},
			asm.Instructions{
				asm.StoreImm(asm.RFP, -24, 1, asm.Byte), asm.StoreMem(asm.RFP, -32, asm.R1, asm.DWord), asm.LoadMem(asm.R2, asm.RFP, -32, asm.DWord),
				fetchAdd(asm.RFP, asm.R2, -32), asm.LoadAcquire(asm.R2, asm.RFP, asm.DWord, -32), asm.StoreMem(asm.R2, -16, asm.R1, asm.DWord),
			}},
		{"a copy of the frame pointer moves, without more instructions", 16, nil,
			asm.Instructions{asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, -4), asm.Add.Imm(asm.R2, -4), exit},
			asm.Instructions{asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, -20), asm.Add.Imm(asm.R2, -4)}},
		{"or with one more, when the next has another purpose", 16, nil,
			asm.Instructions{asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R3, -4), asm.Mov.Reg(asm.R4, asm.RFP), exit},
			asm.Instructions{
				asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, -16), asm.Add.Imm(asm.R3, -4),
				asm.Mov.Reg(asm.R4, asm.RFP), asm.Add.Imm(asm.R4, -16),
			}},
		{"or is jumped to", 16, nil,
			asm.Instructions{
				asm.JEq.Imm(asm.R1, 0, "there"), asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, -4).WithSymbol("there"), exit,
			},
			asm.Instructions{
				at(asm.JEq.Imm(asm.R1, 0, ""), 2), asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, -16), asm.Add.Imm(asm.R2, -4),
			}},
		{"the frame pointer is added", 16, nil,
			asm.Instructions{asm.Mov.Imm(asm.R2, -8), asm.Add.Reg(asm.R2, asm.RFP), exit},
			asm.Instructions{asm.Mov.Imm(asm.R2, -8), asm.Add.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, -16)}},
		{"the frame pointer is stored", 16, nil,
			asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.StoreMem(asm.RFP, -8, asm.RFP, asm.DWord), exit},
			asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Mov.Reg(asm.R1, asm.RFP), asm.Add.Imm(asm.R1, -16), asm.StoreMem(asm.RFP, -24, asm.R1, asm.DWord)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := fmt.Sprintf("%#v", c.code)
			f, err := newFragment(c.code, "dp_")
			require.NoError(t, err)
			require.Empty(t, f.unpastable)
			body, err := f.pasted(c.shift, c.keep...)
			require.NoError(t, err)
			assert.Equal(t, decoded(t, c.want), decoded(t, body))
			assert.Equal(t, before, fmt.Sprintf("%#v", c.code), "the input was changed")
		})
	}
}

// Lines of source and relocations stay on the instructions that they belong to; the function's own do not.
func TestPastedKeepsMetadata(t *testing.T) {
	type key struct{}
	code := asm.Instructions{
		describe(asm.Mov.Imm(asm.R0, 0).WithSymbol("main"), "main", nil),
		asm.LoadMapPtr(asm.R2, 0).WithReference("counts").WithSource(asm.Comment("load it")),
		asm.Return(),
	}
	code[1].Metadata.Set(key{}, "relocation")
	f, err := newFragment(code, "dp_")
	require.NoError(t, err)
	body, err := f.pasted(0)
	require.NoError(t, err)
	require.Len(t, body, 2)
	assert.Empty(t, body[0].Symbol())
	assert.Equal(t, "main", fmt.Sprint(body[0].Source()))
	assert.Equal(t, "counts", body[1].Reference())
	assert.Equal(t, "load it", fmt.Sprint(body[1].Source()))
	assert.Equal(t, "relocation", body[1].Metadata.Get(key{}))
}
