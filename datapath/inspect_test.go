package datapath

import (
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// stackCase is a function body, before "r0 = 0; exit".
type stackCase struct {
	name  string
	code  asm.Instructions
	frame int
	vague bool
	loads bool // alone, as an XDP program: the kernel's opinion is asked too
}

func stackCases() []stackCase {
	copyTo := func(r asm.Register, offset int32) asm.Instructions {
		return asm.Instructions{asm.Mov.Reg(r, asm.RFP), asm.Add.Imm(r, offset)}
	}
	store := func(r asm.Register, offset int16) asm.Instruction { return asm.StoreImm(r, offset, 0, asm.Byte) }
	index := func(mask int32) asm.Instructions {
		return asm.Instructions{asm.FnGetPrandomU32.Call(), asm.And.Imm(asm.R0, mask)}
	}
	join := func(parts ...asm.Instructions) asm.Instructions {
		var all asm.Instructions
		for _, p := range parts {
			all = append(all, p...)
		}
		return all
	}
	return []stackCase{
		{"none", nil, 0, false, true},
		{"direct", asm.Instructions{store(asm.RFP, -8), store(asm.RFP, -21)}, 24, false, true},
		{"copied", join(copyTo(asm.R2, -40), asm.Instructions{store(asm.R2, 8)}), 32, false, true},
		{"added to a number", asm.Instructions{asm.Mov.Imm(asm.R2, -48), asm.Add.Reg(asm.R2, asm.RFP), store(asm.R2, 0)}, 48, false, true},
		{"not reached", join(copyTo(asm.R2, -400), copyTo(asm.R3, -16), asm.Instructions{store(asm.R3, 0)}), 16, false, true},
		{"back up", join(copyTo(asm.R2, -400), asm.Instructions{asm.Add.Imm(asm.R2, 392), store(asm.R2, 0)}), 8, false, true},
		{"masked index", join(index(15), copyTo(asm.R2, -64), asm.Instructions{asm.Add.Reg(asm.R2, asm.R0), store(asm.R2, 0)}), 64, false, true},
		{"index first", join(index(15), asm.Instructions{asm.Add.Reg(asm.R0, asm.RFP), store(asm.R0, -32)}), 32, false, true},
		{"index of 32 bits", join(index(7), asm.Instructions{
			asm.LSh.Imm32(asm.R0, 3), asm.Mov.Reg(asm.R1, asm.RFP), asm.Add.Reg(asm.R1, asm.R0), store(asm.R1, -64),
		}), 64, false, true},
		{"unknown index", join(copyTo(asm.R2, -64), asm.Instructions{
			asm.LoadMem(asm.R3, asm.R1, 0, asm.Word), asm.Sub.Imm(asm.R3, 8), asm.Add.Reg(asm.R2, asm.R3), store(asm.R2, 0),
		}), 64, true, false},
		{"spilled", join(copyTo(asm.R2, -40), asm.Instructions{
			asm.StoreMem(asm.RFP, -8, asm.R2, asm.DWord), asm.LoadMem(asm.R3, asm.RFP, -8, asm.DWord), store(asm.R3, -16),
		}), 56, false, true},
		{"spilled itself", asm.Instructions{
			asm.StoreMem(asm.RFP, -8, asm.RFP, asm.DWord), asm.LoadMem(asm.R3, asm.RFP, -8, asm.DWord), asm.Add.Imm(asm.R3, -72), store(asm.R3, 0),
		}, 72, false, true},
		{"either", join(asm.Instructions{asm.LoadMem(asm.R3, asm.R1, 16, asm.Word)}, copyTo(asm.R2, -8), asm.Instructions{
			asm.JEq.Imm(asm.R3, 1, "here"), asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, -104), store(asm.R2, 0).WithSymbol("here"),
		}), 104, false, true},
		{"downwards", join(copyTo(asm.R2, 0), asm.Instructions{
			asm.Mov.Imm(asm.R3, 4),
			asm.Add.Imm(asm.R2, -8).WithSymbol("again"), store(asm.R2, 0), asm.Sub.Imm(asm.R3, 1), asm.JNE.Imm(asm.R3, 0, "again"),
		}), 512, true, false},
		{"handed to a helper", join(copyTo(asm.R3, -80), asm.Instructions{
			asm.Mov.Imm(asm.R2, 0), asm.Mov.Imm(asm.R4, 16), asm.FnXdpLoadBytes.Call(),
		}), 80, false, true},
		{"atomic", asm.Instructions{
			asm.Mov.Imm(asm.R2, 1), asm.StoreMem(asm.RFP, -16, asm.R2, asm.DWord), asm.AddAtomic.Mem(asm.RFP, asm.R2, asm.DWord, -16),
		}, 16, false, true},
		{"handed to a function", join(copyTo(asm.R1, -88), asm.Instructions{
			asm.StoreMem(asm.RFP, -88, asm.R1, asm.DWord), asm.Call.Label("sub"), asm.Mov.Imm(asm.R0, 0), asm.Return(),
			store(asm.R1, 0).WithSymbol("sub"), store(asm.RFP, -16),
		}), 88, false, true},
	}
}

func (c stackCase) program() *ebpf.ProgramSpec {
	code := append(asm.Instructions{}, c.code...)
	return &ebpf.ProgramSpec{Name: "stack", Type: ebpf.XDP, License: "MIT", Instructions: append(code, asm.Mov.Imm(asm.R0, 0), asm.Return())}
}

func TestFrameOf(t *testing.T) {
	for _, c := range stackCases() {
		t.Run(c.name, func(t *testing.T) {
			f, err := inspect(c.program())
			require.NoError(t, err)
			assert.Equal(t, c.frame, f.frame)
			if c.vague {
				assert.Equal(t, "how much stack it uses cannot be told from its code", f.unpastable)
			} else {
				assert.Empty(t, f.unpastable)
			}
		})
	}
}

func TestFacts(t *testing.T) {
	sub := func(name string, code ...asm.Instruction) asm.Instructions {
		code[0] = code[0].WithSymbol(name)
		return append(code, asm.Mov.Imm(asm.R0, 0), asm.Return())
	}
	program := func(functions ...asm.Instructions) *ebpf.ProgramSpec {
		p := &ebpf.ProgramSpec{}
		for _, f := range functions {
			p.Instructions = append(p.Instructions, f...)
		}
		return p
	}
	f, err := inspect(program(
		sub("main", asm.Mov.Reg(asm.R8, asm.R1), asm.LoadImm(asm.R7, 1<<40, asm.DWord), asm.StoreMem(asm.RFP, -40, asm.R7, asm.DWord), asm.Call.Label("one")),
		sub("one", asm.StoreImm(asm.RFP, -200, 0, asm.Byte), asm.FnSkbPullData.Call(), asm.Call.Label("two")),
		sub("two", asm.StoreImm(asm.RFP, -8, 0, asm.Byte), asm.FnTailCall.Call(), asm.FnFibLookup.Call()),
	))
	require.NoError(t, err)
	assert.Equal(t, 7, f.entrySize, "the constant of 64 bits counts twice")
	assert.Len(t, f.graph, 3)
	assert.Equal(t, 2, f.savedRegisters)
	assert.Equal(t, "bpf_fib_lookup", f.gplOnly)
	assert.True(t, f.tailCalls)
	assert.Equal(t, "a program that it tail-calls would end the whole run", f.unpastable)

	bytes, frames := f.depth(32, false)
	assert.Equal(t, 32+64+224+32, bytes)
	assert.Equal(t, 3, frames)
	bytes, _ = f.depth(0, true)
	assert.Equal(t, 48+208+16, bytes)
	assert.Equal(t, 0, f.tailRoom(false), "224 + 64 bytes lie above the tail call without callers")
	assert.Equal(t, 0, f.tailRoom(true))
	assert.Equal(t, 256, f.tailAbove(true))

	assert.False(t, f.unwritten)

	f, err = inspect(program(sub("main", asm.FnTailCall.Call())))
	require.NoError(t, err)
	assert.Equal(t, 255, f.tailRoom(false))
	bytes, frames = f.depth(0, true)
	assert.Equal(t, 0, bytes, "an unused stack counts for nothing")
	assert.Equal(t, 1, frames)
	bytes, _ = f.depth(0, false)
	assert.Equal(t, 32, bytes, "or for the least")
}

func TestUnpastable(t *testing.T) {
	for reason, code := range map[string]asm.Instructions{
		"its loads of the kind LD_ABS would end the whole run when they fail":                    {asm.Mov.Reg(asm.R6, asm.R1), asm.LoadAbs(0, asm.Byte)},
		"its may_goto would count against a budget that belongs to a function":                   {{OpCode: asm.OpCode(asm.JumpClass) | asm.OpCode(asm.JCOND), Offset: 0}},
		"it uses the frame pointer other than to reach its stack":                                {asm.JEq.Reg(asm.R1, asm.RFP, "end")},
		"it stores the frame pointer when no register is free":                                   allBusy(),
		"its 8193 instructions are too many for jumps over them":                                 make(asm.Instructions, 8193-2),
		"a program that it tail-calls would end the whole run":                                   {asm.FnTailCall.Call()},
		"its dynptrs would stay on the stack, where the verifier lets no helper write over them": {asm.FnDynptrFromMem.Call()},
	} {
		for i := range code {
			if code[i].OpCode == 0 {
				code[i] = asm.Mov.Imm(asm.R1, 0)
			}
		}
		f, err := inspect(&ebpf.ProgramSpec{Instructions: append(code, asm.Mov.Imm(asm.R0, 0).WithSymbol("end"), asm.Return())})
		require.NoError(t, err)
		assert.Equal(t, reason, f.unpastable)
	}
}

// allBusy stores the frame pointer while r0 to r5 are all in use.
func allBusy() asm.Instructions {
	var code asm.Instructions
	for r := asm.R0; r <= asm.R5; r++ {
		code = append(code, asm.Mov.Imm(r, 1))
	}
	code = append(code, asm.StoreMem(asm.RFP, -8, asm.RFP, asm.DWord))
	for r := asm.R0; r <= asm.R5; r++ {
		code = append(code, asm.Add.Reg(asm.R6, r))
	}
	return code
}

// kfunc calls a function of the kernel.
func kfunc(name string) asm.Instruction {
	return asm.Instruction{OpCode: asm.OpCode(asm.JumpClass).SetJumpOp(asm.Call), Src: asm.PseudoKfuncCall, Constant: -1}.WithReference(name)
}

// What a function below the main one does counts where the kernel looks into it.
func TestUnpastableFunctionBelow(t *testing.T) {
	const dynptrs = "its dynptrs would stay on the stack, where the verifier lets no helper write over them"
	for _, c := range []struct {
		ins    asm.Instruction
		reason string
	}{
		{kfunc("bpf_dynptr_from_skb"), dynptrs},
		{kfunc("bpf_dynptr_clone"), dynptrs},
		{asm.LoadAbs(0, asm.Byte), "the verifier loses track of what functions with loads of the kind LD_ABS return"},
		{asm.FnTailCall.Call(), "a program that it tail-calls would end the whole run"},
		{asm.Instruction{OpCode: asm.OpCode(asm.JumpClass) | asm.OpCode(asm.JCOND)}, ""},
	} {
		f, err := inspect(&ebpf.ProgramSpec{Instructions: asm.Instructions{
			asm.Call.Label("sub"), asm.Return(), c.ins.WithSymbol("sub"), asm.Mov.Imm(asm.R0, 0), asm.Return(),
		}})
		require.NoError(t, err)
		assert.Equal(t, c.reason, f.unpastable)
	}
}

// A callback that a timer or a work queue runs has a stack of its own; one that runs at once has not.
func TestCallbacksAndTheStack(t *testing.T) {
	pointer := asm.Instruction{OpCode: asm.LoadImmOp(asm.DWord), Dst: asm.R2, Src: asm.PseudoFunc, Constant: -1}.WithReference("callback")
	for _, c := range []struct {
		call asm.Instruction
		want int
	}{
		{asm.FnLoop.Call(), 64 + 32}, {asm.FnTimerSetCallback.Call(), 32},
		{kfunc("bpf_rbtree_add_impl"), 64 + 32}, {kfunc("bpf_wq_set_callback_impl"), 32}, {kfunc("bpf_wq_set_callback"), 32},
	} {
		f, err := inspect(&ebpf.ProgramSpec{Instructions: asm.Instructions{
			pointer, c.call, asm.Return(), asm.StoreImm(asm.RFP, -64, 0, asm.Byte).WithSymbol("callback"), asm.Mov.Imm(asm.R0, 0), asm.Return(),
		}})
		require.NoError(t, err)
		bytes, _ := f.depth(0, false)
		assert.Equal(t, c.want, bytes, "%v", c.call)
	}
}

func TestHelperNames(t *testing.T) {
	for helper, name := range map[asm.BuiltinFunc]string{
		asm.FnSkbPullData: "bpf_skb_pull_data", asm.FnL3CsumReplace: "bpf_l3_csum_replace", asm.FnGetPrandomU32: "bpf_get_prandom_u32",
		asm.FnTcpRawGenSyncookieIpv4: "bpf_tcp_raw_gen_syncookie_ipv4",
	} {
		assert.Equal(t, name, helperName(helper))
	}
}

// Reading stack is noticed exactly where nothing was written before, on some way.
func TestUnwrittenStack(t *testing.T) {
	join := func(code ...asm.Instruction) *ebpf.ProgramSpec {
		return &ebpf.ProgramSpec{Instructions: append(code, asm.Mov.Imm(asm.R0, 0).WithSymbol("out"), asm.Return())}
	}
	store := func(place int16, size asm.Size) asm.Instruction { return asm.StoreMem(asm.RFP, place, asm.R1, size) }
	load := func(place int16, size asm.Size) asm.Instruction { return asm.LoadMem(asm.R3, asm.RFP, place, size) }
	copyTo := func(place int32) [2]asm.Instruction {
		return [2]asm.Instruction{asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, place)}
	}
	at := copyTo(-24)
	for name, c := range map[string]struct {
		unwritten bool
		program   *ebpf.ProgramSpec
	}{
		"written before":          {false, join(store(-8, asm.DWord), load(-8, asm.DWord))},
		"written in part":         {false, join(store(-8, asm.Byte), load(-8, asm.DWord))},
		"the word below":          {true, join(store(-8, asm.DWord), load(-16, asm.DWord))},
		"the word above":          {true, join(store(-16, asm.DWord), load(-8, asm.Byte))},
		"the last word":           {true, join(load(-512, asm.DWord))},
		"half of two words":       {true, join(store(-8, asm.Word), load(-12, asm.DWord))},
		"two words":               {false, join(store(-4, asm.Word), store(-16, asm.Byte), load(-12, asm.DWord))},
		"on one way":              {true, join(asm.JEq.Imm(asm.R1, 0, "on"), store(-8, asm.DWord), load(-8, asm.DWord).WithSymbol("on"))},
		"on both ways":            {false, join(asm.JEq.Imm(asm.R1, 0, "else"), store(-8, asm.DWord), asm.Ja.Label("on"), store(-8, asm.Byte).WithSymbol("else"), load(-8, asm.DWord).WithSymbol("on"))},
		"not reached":             {false, join(asm.Ja.Label("out"), load(-8, asm.DWord))},
		"by a helper":             {false, join(at[0], at[1], asm.FnXdpLoadBytes.Call(), load(-16, asm.DWord))},
		"below what a helper has": {true, join(at[0], at[1], asm.FnXdpLoadBytes.Call(), load(-32, asm.DWord))},
		"through a pointer":       {false, join(at[0], at[1], asm.StoreImm(asm.R2, 0, 0, asm.Byte), load(-24, asm.DWord))},
		"read through a pointer":  {true, join(at[0], at[1], asm.LoadMem(asm.R3, asm.R2, 8, asm.DWord))},
		"added to":                {true, join(asm.AddAtomic.Mem(asm.RFP, asm.R1, asm.DWord, -8))},
		"released and acquired":   {false, join(asm.StoreRelease(asm.RFP, asm.R1, asm.DWord, -8), asm.LoadAcquire(asm.R3, asm.RFP, asm.DWord, -8))},
		"acquired":                {true, join(asm.LoadAcquire(asm.R3, asm.RFP, asm.DWord, -8))},
		"not the stack":           {false, join(asm.StoreImm(asm.RFP, -8, 0, asm.Byte), asm.LoadMem(asm.R3, asm.R1, 0, asm.DWord))},
	} {
		f, err := inspect(c.program)
		require.NoError(t, err)
		assert.Equal(t, c.unwritten, f.unwritten, name)
		assert.Equal(t, c.unwritten, f.unpastable != "", name)
	}
}
