package datapathtest

import (
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
)

// function is one at work. It keeps a context, if it has one, in a register or at the top of its stack, and numbers in other registers that a call leaves alone.
// R0 to R5 are free between statements. Below the context lie the bytes from stack to -8-stack, all of which are set at the start.
type function struct {
	g       *generator
	insns   asm.Instructions
	context bool
	ctx     asm.Register   // zero: at the top of the stack
	scalars []asm.Register // at least one
	stack   int            // bytes, a multiple of 8
	pending string         // label of the next instruction
	depth   int            // of blocks within blocks
	leaf    bool           // calls no functions
}

// function picks the registers and the size of the stack.
func (g *generator) function(context bool) *function {
	f := &function{g: g, context: context, stack: 8 * (1 + g.rng.IntN(6))}
	if context && g.chance(8) { // three functions together have no more than 512 bytes
		f.stack = 8 * (10 + g.rng.IntN(20))
	}
	saved := []asm.Register{asm.R6, asm.R7, asm.R8, asm.R9}
	g.rng.Shuffle(len(saved), func(i, j int) { saved[i], saved[j] = saved[j], saved[i] })
	if context && !g.chance(3) {
		f.ctx, saved = saved[0], saved[1:]
	}
	f.scalars = saved[:1+g.rng.IntN(len(saved))]
	return f
}

// emit appends instructions, the first of which gets a label that waits for one.
func (f *function) emit(insns ...asm.Instruction) {
	if f.pending != "" && len(insns) > 0 {
		insns[0] = insns[0].WithSymbol(f.pending)
		f.pending = ""
	}
	f.insns = append(f.insns, insns...)
}

// label gives the next instruction a name.
func (f *function) label(name string) {
	if f.pending != "" {
		f.emit(asm.Mov.Imm(asm.R0, 0))
	}
	f.pending = name
}

// begin sets the numbers from the given one on, and the stack.
func (f *function) begin(first int) {
	for _, r := range f.scalars[first:] {
		f.emit(asm.Mov.Imm(r, int32(f.g.rng.Uint32())))
	}
	for offset := 16; offset <= 8+f.stack; offset += 8 {
		f.emit(asm.StoreMem(asm.RFP, int16(-offset), f.scalar(), asm.DWord))
	}
}

// scalar picks one of the registers with numbers.
func (f *function) scalar() asm.Register { return f.scalars[f.g.rng.IntN(len(f.scalars))] }

// loadContext puts the context into a register.
func (f *function) loadContext(r asm.Register) {
	if f.ctx == 0 {
		f.emit(asm.LoadMem(r, asm.RFP, -8, asm.DWord))
		return
	}
	f.emit(asm.Mov.Reg(r, f.ctx))
}

// slot is the offset of aligned bytes in the stack.
func (f *function) slot(size int) int {
	places := f.stack / size
	return -8 - f.stack + size*f.g.rng.IntN(places)
}

// describe gives a function its name, and its type and line where the program has them.
func (g *generator) describe(insns asm.Instructions, name string, fn *btf.Func) {
	first := insns[0].WithSymbol(name)
	if g.btf {
		fn.Name = name
		first = btf.WithFuncMetadata(first, fn)
	}
	if g.lines {
		first = first.WithSource(asm.Comment("the random function " + name))
	}
	insns[0] = first
}

// entryType is the type of a program's first function.
func (f *function) entryType(post bool) *btf.Func {
	proto := &btf.FuncProto{
		Return: integer(),
		Params: []btf.FuncParam{{Name: "ctx", Type: &btf.Pointer{Target: &btf.Struct{Name: contexts[f.g.options.Type].name}}}},
	}
	if post {
		proto.Params = append(proto.Params, btf.FuncParam{Name: "verdict", Type: integer()})
	}
	return &btf.Func{Type: proto, Linkage: btf.GlobalFunc}
}

// numberType is the type of a function of numbers.
func numberType(params int, linkage btf.FuncLinkage) *btf.Func {
	proto := &btf.FuncProto{Return: integer()}
	for i := range params {
		proto.Params = append(proto.Params, btf.FuncParam{Name: string(rune('a' + i)), Type: integer()})
	}
	return &btf.Func{Type: proto, Linkage: linkage}
}

func integer() btf.Type { return &btf.Int{Name: "int", Size: 4, Encoding: btf.Signed} }

// contexts are the kernel's names of the contexts (include/uapi/linux/bpf.h), and offsets of fields of 32 bits which every program may read and whose value does not
// depend on what ran before.
var contexts = map[ebpf.ProgramType]struct {
	name         string
	fields       []int16
	data, end    int16 // offsets of the packet's bounds; zero end: none
	writesPacket bool
}{
	ebpf.XDP:            {name: "xdp_md", fields: []int16{12, 16}, data: 0, end: 4, writesPacket: true},
	ebpf.SchedCLS:       {name: "__sk_buff", fields: []int16{0, 4, 16}, data: 76, end: 80, writesPacket: true},
	ebpf.CGroupSKB:      {name: "__sk_buff", fields: []int16{0, 4, 16}, data: 76, end: 80},
	ebpf.SkLookup:       {name: "bpf_sk_lookup", fields: []int16{8, 12}},
	ebpf.CGroupSockAddr: {name: "bpf_sock_addr", fields: []int16{0}},
	ebpf.CGroupSock:     {name: "bpf_sock", fields: []int16{4, 8, 12}},
	ebpf.SockOps:        {name: "bpf_sock_ops", fields: []int16{0, 20}},
}
