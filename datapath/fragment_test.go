package datapath

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// decoded is the program as it comes out of an object file: jumps and calls have distances, no labels.
func decoded(t testing.TB, code asm.Instructions) asm.Instructions {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, append(asm.Instructions{}, code...).Marshal(&b, binary.LittleEndian))
	raw, err := asm.AppendInstructions(nil, &b, binary.LittleEndian, "linux")
	require.NoError(t, err)
	return raw
}

// sample has each kind of jump, call and wide constant.
func sample() asm.Instructions {
	pointer := asm.Instruction{OpCode: asm.LoadImmOp(asm.DWord), Dst: asm.R2, Src: asm.PseudoFunc, Constant: -1}
	return asm.Instructions{
		asm.Mov.Imm(asm.R0, 0).WithSymbol("main"),
		asm.LoadImm(asm.R3, 1<<40, asm.DWord).WithSymbol("again"),
		asm.JEq.Imm(asm.R1, 1, "again"),
		asm.JLT.Reg32(asm.R1, asm.R3, "far"),
		asm.Call.Label("second"),
		pointer.WithReference("first"),
		asm.LongJump("far"),
		asm.Ja.Label("again"),
		asm.Return().WithSymbol("far"),
		asm.Mov.Imm(asm.R0, 1).WithSymbol("first"),
		asm.Return(),
		asm.Call.Label("first").WithSymbol("second"),
		asm.Return(),
	}
}

func TestSplit(t *testing.T) {
	for name, code := range map[string]asm.Instructions{"labels": sample(), "distances": decoded(t, sample())} {
		t.Run(name, func(t *testing.T) {
			functions, err := split(code)
			require.NoError(t, err)
			require.Len(t, functions, 3)
			assert.Equal(t, []int{-1, -1, 1, 8, -1, -1, 8, 1, -1}, functions[0].targets)
			assert.Equal(t, []int{-1, -1, -1, -1, 2, 1, -1, -1, -1}, functions[0].calls)
			assert.Equal(t, []int{-1, -1}, functions[1].calls)
			assert.Equal(t, []int{1, -1}, functions[2].calls)
		})
	}
}

func TestSplitRefuses(t *testing.T) {
	exit := asm.Return()
	table := asm.Instruction{OpCode: asm.OpCode(asm.JumpClass) | asm.OpCode(asm.RegSource)}
	for reason, code := range map[string]asm.Instructions{
		"uses a register after r10 at instruction 1":          {asm.Mov.Imm(asm.R0, 0), asm.Mov.Imm(11, 0), exit},
		"has no instructions":                                 {},
		`has the symbol "twice" twice`:                        {asm.Mov.Imm(asm.R0, 0).WithSymbol("twice"), exit.WithSymbol("twice")},
		`calls "gone", which its instructions do not contain`: {asm.Call.Label("gone"), exit},
		"calls something outside of its instructions":         {{OpCode: asm.Call.Label("").OpCode, Src: asm.PseudoCall, Constant: 7}, exit},
		`jumps out of the function "main" at instruction 0`:   {asm.Ja.Label("sub").WithSymbol("main"), asm.Call.Label("sub"), exit, exit.WithSymbol("sub")},
		`jumps out of the function "" at instruction 0`:       {{OpCode: asm.Ja.Op(asm.ImmSource), Offset: 1}, asm.LoadImm(asm.R0, 1<<40, asm.DWord), exit},
		"jumps through a table at instruction 0":              {table, exit},
		`runs over the end of the function "main"`:            {asm.Call.Label("sub").WithSymbol("main"), exit.WithSymbol("sub")},
		`calls itself through the function "main"`:            {asm.Call.Label("sub").WithSymbol("main"), exit, asm.Call.Label("main").WithSymbol("sub"), exit},
		`calls itself through the function "a"`:               {exit, asm.Call.Label("b").WithSymbol("a"), exit, asm.Call.Label("a").WithSymbol("b"), exit},
		"jumps over 40000 instructions, more than a jump can": longJump(),
	} {
		_, err := newFragment(code, "")
		if err == nil {
			f, splitErr := newFragment(code, "")
			require.NoError(t, splitErr)
			_, err = f.called("main", nil)
		}
		require.ErrorContains(t, err, reason)
		var r *refusal
		require.ErrorAs(t, err, &r)
		assert.NotEmpty(t, r.fix)
	}
}

// longJump leads, by its label, further than its field can say.
func longJump() asm.Instructions {
	code := asm.Instructions{asm.JEq.Imm(asm.R1, 0, "far")}
	for range 40000 {
		code = append(code, asm.Mov.Imm(asm.R0, 0))
	}
	return append(code, asm.Return().WithSymbol("far"))
}

// A throw ends a function as an exit does.
func TestThrowEndsAFunction(t *testing.T) {
	throw := asm.Instruction{OpCode: asm.OpCode(asm.JumpClass).SetJumpOp(asm.Call), Src: asm.PseudoKfuncCall}.WithReference("bpf_throw")
	f, err := newFragment(asm.Instructions{throw}, "")
	require.NoError(t, err)
	assert.True(t, f.throws)
}

// Each function has a name that the kernel takes, type information and a line, and calls lead to the new names.
func TestCalledDescribesEveryFunction(t *testing.T) {
	code := sample()
	own := &btf.Func{Name: "first", Linkage: btf.GlobalFunc, Type: &btf.FuncProto{Return: &btf.Int{Name: "long", Size: 8}}}
	code[9] = btf.WithFuncMetadata(code[9], own).WithSource(asm.Comment("its own line"))
	f, err := newFragment(code, "dp_h1_")
	require.NoError(t, err)
	proto := &btf.FuncProto{Return: &btf.Int{Name: "int", Size: 4}}
	entry, err := f.called("dp_h1", proto)
	require.NoError(t, err)

	assert.Equal(t, "dp_h1", entry[0].Symbol())
	assert.Equal(t, &btf.Func{Name: "dp_h1", Linkage: btf.GlobalFunc, Type: proto}, btf.FuncMetadata(&entry[0]))
	assert.Equal(t, "dp_h1", fmt.Sprint(entry[0].Source()))
	assert.Equal(t, []string{"dp_h1_first", "dp_h1_second"}, entry.FunctionReferences())
	for _, ins := range entry[1:] {
		assert.Empty(t, ins.Symbol())
	}
	assert.Len(t, entry.ReferenceOffsets(), 2, "labels are left")
	assert.Equal(t, &btf.Func{Name: "dp_h1_first", Linkage: btf.GlobalFunc, Type: own.Type}, btf.FuncMetadata(&f.subs[0]))
	assert.Equal(t, "its own line", fmt.Sprint(f.subs[0].Source()))
	assert.Equal(t, btf.StaticFunc, btf.FuncMetadata(&f.subs[2]).Linkage)
	assert.Equal(t, "dp_h1_second", btf.FuncMetadata(&f.subs[2]).Name)
	assert.Equal(t, "dp_h1_second", fmt.Sprint(f.subs[2].Source()))

	assert.Equal(t, "first", own.Name, "the caller's type was changed")
	want := slices.Insert(sample(), 8, asm.Mov.Reg32(asm.R0, asm.R0).WithSymbol("far"))
	want[9] = asm.Return()
	assert.Equal(t, decoded(t, want), decoded(t, append(entry, f.subs...)), "more was changed than that a number is returned")

	again, err := f.called("dp_h1", proto)
	require.NoError(t, err)
	again[1].Dst = asm.R9
	assert.NotEqual(t, again[1], entry[1], "two results share instructions")
}

func TestFunctionNames(t *testing.T) {
	long := strings.Repeat("x", 300)
	functions := []*function{{name: "main"}, {name: "a.b"}, {name: "a-b"}, {}, {}, {name: long}, {name: long + "y"}}
	names := nameFunctions(functions, "dp_")
	assert.Equal(t, []string{"dp_main", "dp_a_b", "dp_a_b_2", "dp_function", "dp_function_4"}, names[:5])
	assert.NotEqual(t, names[5], names[6])
	assert.Less(t, len(names[6]), 128)
	assert.Equal(t, "keeps_its_name", nameFunctions([]*function{{name: "keeps_its_name"}}, "")[0])
}
