package datapath

import (
	"testing"

	"github.com/cilium/ebpf/asm"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestScratch(t *testing.T) {
	store := asm.StoreMem(asm.R0, -8, asm.RFP, asm.DWord)
	busy := func(registers ...asm.Register) asm.Instructions {
		var code asm.Instructions
		for _, r := range registers {
			code = append(code, asm.Add.Reg(asm.R6, r))
		}
		return code
	}
	cmpXchg := asm.CmpXchg.Mem(asm.RFP, asm.R1, asm.DWord, -8)
	for _, c := range []struct {
		name string
		code asm.Instructions // the store comes first
		want asm.Register
	}{
		{"not one that the instruction uses", nil, asm.R1},
		{"not one that is read later", busy(asm.R1, asm.R3), asm.R2},
		{"not one that is read after a jump", append(asm.Instructions{asm.JEq.Imm(asm.R6, 0, "there"), asm.Ja.Label("end")},
			append(asm.Instructions{asm.Add.Reg(asm.R6, asm.R1).WithSymbol("there")}, asm.Ja.Label("end"))...), asm.R2},
		{"one that is written first", append(asm.Instructions{asm.Mov.Imm(asm.R1, 0)}, busy(asm.R1)...), asm.R1},
		{"or loaded", append(asm.Instructions{asm.LoadMem(asm.R1, asm.R2, 0, asm.Word)}, busy(asm.R1)...), asm.R1},
		{"or extended from another", append(asm.Instructions{asm.MovSX8.Reg(asm.R1, asm.R2)}, busy(asm.R1)...), asm.R1},
		{"not what a call takes", asm.Instructions{asm.FnGetPrandomU32.Call()}, 0},
		{"nor an exchange", asm.Instructions{cmpXchg, asm.FnGetPrandomU32.Call()}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			code := append(append(asm.Instructions{store}, c.code...), asm.Mov.Imm(asm.R0, 0).WithSymbol("end"), asm.Return())
			functions, err := split(code)
			require.NoError(t, err)
			got, ok := scratch(functions[0], 0)
			assert.Equal(t, c.want, got)
			assert.Equal(t, c.want != 0, ok)
		})
	}
}
