package datapathtest

import (
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
)

// statements emits about n of them, at random.
func (f *function) statements(n int) {
	kinds := []func(){f.arithmetic, f.arithmetic, f.spill, f.pointer, f.atomic, f.branch, f.loop, f.mapHelper, f.mapAddress}
	if !f.leaf {
		kinds = append(kinds, f.call, f.call, f.callback)
	}
	if f.context {
		kinds = append(kinds, f.field, f.packet, f.earlyExit, f.change)
		if f.g.options.TailCalls {
			kinds = append(kinds, f.tailCall)
		}
	}
	for range n {
		kinds[f.g.rng.IntN(len(kinds))]()
	}
}

func (f *function) arithmetic() {
	r, imm := f.scalar(), int32(f.g.rng.Uint32())
	ops := []asm.ALUOp{asm.Add, asm.Sub, asm.Mul, asm.Or, asm.And, asm.Xor, asm.Mov, asm.Div, asm.Mod}
	op := ops[f.g.rng.IntN(len(ops))]
	switch f.g.rng.IntN(6) {
	case 0:
		f.emit(op.Reg(r, f.scalar()))
	case 1:
		f.emit(op.Reg32(r, f.scalar()))
	case 2:
		f.emit(op.Imm(r, imm|1)) // no division by zero
	case 3:
		f.emit(op.Imm32(r, imm|1))
	case 4:
		shifts := []asm.ALUOp{asm.LSh, asm.RSh, asm.ArSh}
		f.emit(shifts[f.g.rng.IntN(3)].Imm(r, imm&31))
	case 5:
		f.emit(asm.HostTo(asm.BE, r, asm.DWord))
	}
}

// spill writes a number to the stack and reads another, of any size.
func (f *function) spill() {
	sizes := []asm.Size{asm.Byte, asm.Half, asm.Word, asm.DWord}
	size := sizes[f.g.rng.IntN(len(sizes))]
	if size == asm.DWord || f.g.chance(2) { // the library has no store of a constant of 64 bits
		f.emit(asm.StoreMem(asm.RFP, int16(f.slot(size.Sizeof())), f.scalar(), size))
	} else {
		f.emit(asm.StoreImm(asm.RFP, int16(f.slot(size.Sizeof())), int64(int32(f.g.rng.Uint32())), size))
	}
	f.emit(asm.LoadMem(asm.R1, asm.RFP, int16(f.slot(size.Sizeof())), size), asm.Xor.Reg(f.scalar(), asm.R1))
}

// pointer writes to the stack through a pointer, made in one of the ways that compilers have.
func (f *function) pointer() {
	at, ways := f.slot(8), 4
	if !f.context {
		ways = 3
	}
	switch f.g.rng.IntN(ways) {
	case 0:
		f.emit(asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, int32(at)))
	case 3: // in a function that is verified within another, Linux 6.18 takes this for the caller's stack (adjust_ptr_min_max_vals keeps no frame number)
		f.emit(asm.Mov.Imm(asm.R2, int32(at)), asm.Add.Reg(asm.R2, asm.RFP))
	case 1: // through the stack
		f.emit(
			asm.Mov.Reg(asm.R1, asm.RFP), asm.Add.Imm(asm.R1, int32(at)), asm.StoreMem(asm.RFP, int16(f.slot(8)), asm.R1, asm.DWord),
			asm.Mov.Reg(asm.R2, asm.R1),
		)
		f.emit(asm.StoreMem(asm.R2, 0, f.scalar(), asm.DWord))
		f.wipe()
		return
	case 2: // the frame pointer itself, through the stack
		where := int16(f.slot(8))
		f.emit(asm.StoreMem(asm.RFP, where, asm.RFP, asm.DWord), asm.LoadMem(asm.R2, asm.RFP, where, asm.DWord), asm.Add.Imm(asm.R2, int32(at)))
		f.emit(asm.StoreMem(asm.R2, 0, f.scalar(), asm.DWord))
		f.wipe()
		return
	}
	f.emit(asm.StoreMem(asm.R2, 0, f.scalar(), asm.DWord), asm.LoadMem(asm.R3, asm.R2, 0, asm.Word), asm.Add.Reg(f.scalar(), asm.R3))
}

// wipe takes pointers off the stack: an address in a result would differ from run to run.
func (f *function) wipe() {
	for offset := 16; offset <= 8+f.stack; offset += 8 {
		f.emit(asm.StoreMem(asm.RFP, int16(-offset), f.scalar(), asm.DWord))
	}
}

// atomic adds to a place on the stack.
func (f *function) atomic() {
	f.emit(asm.Mov.Reg(asm.R1, f.scalar()), fetchAdd(asm.RFP, asm.R1, asm.DWord, int16(f.slot(8))), asm.Xor.Reg(f.scalar(), asm.R1))
}

// block emits a few statements inside another.
func (f *function) block() {
	f.depth++
	f.statements(1 + f.g.rng.IntN(2))
	f.depth--
}

func (f *function) branch() {
	if f.depth > 1 {
		return
	}
	ops := []asm.JumpOp{asm.JEq, asm.JNE, asm.JGT, asm.JLE, asm.JSGT, asm.JSLT, asm.JSet}
	op, end := ops[f.g.rng.IntN(len(ops))], f.g.name("end")
	switch f.g.rng.IntN(4) {
	case 0:
		f.emit(op.Imm(f.scalar(), int32(f.g.rng.IntN(1000)), end))
	case 1:
		f.emit(op.Imm32(f.scalar(), int32(f.g.rng.IntN(1000)), end))
	case 2:
		f.emit(op.Reg(f.scalar(), f.scalar(), end))
	case 3:
		f.emit(op.Reg32(f.scalar(), f.scalar(), end))
	}
	f.block()
	f.label(end)
}

// loop counts in a place on the stack that nothing in the loop writes to.
func (f *function) loop() {
	if f.depth > 0 || f.stack < 16 {
		return
	}
	f.stack -= 8 // the lowest place is the counter's
	counter, again := int16(-16-f.stack), f.g.name("again")
	f.emit(asm.Mov.Imm(asm.R1, 0), asm.StoreMem(asm.RFP, counter, asm.R1, asm.DWord))
	f.label(again)
	f.depth = 2
	f.statements(1)
	f.depth = 0
	f.emit(
		asm.LoadMem(asm.R1, asm.RFP, counter, asm.DWord),
		asm.Add.Imm(asm.R1, 1),
		asm.StoreMem(asm.RFP, counter, asm.R1, asm.DWord),
		asm.JLT.Imm(asm.R1, int32(2+f.g.rng.IntN(3)), again),
	)
	f.stack += 8
}

// array makes sure of a map with four entries of eight bytes.
func (g *generator) array(name string, kind ebpf.MapType) {
	if g.maps[name] == nil {
		g.maps[name] = &ebpf.MapSpec{Name: name, Type: kind, KeySize: 4, ValueSize: 8, MaxEntries: 4}
	}
}

// mapHelper looks an entry up, in an array or a hash, and changes it or makes it.
func (f *function) mapHelper() {
	name, at, done := "counts", int16(f.slot(4)), f.g.name("done")
	f.g.array("counts", ebpf.Array)
	if f.g.chance(2) {
		name = "seen"
		f.g.array(name, ebpf.Hash)
	}
	f.emit(
		asm.StoreImm(asm.RFP, at, int64(f.g.rng.IntN(4)), asm.Word),
		asm.LoadMapPtr(asm.R1, 0).WithReference(name), asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, int32(at)),
		asm.FnMapLookupElem.Call(),
	)
	if name == "seen" && f.stack >= 16 {
		have, value := f.g.name("have"), int16(-8-f.stack)
		if at < value+8 { // the key is where the value would be
			value += 8
		}
		f.emit(
			asm.JNE.Imm(asm.R0, 0, have),
			asm.StoreMem(asm.RFP, value, f.scalar(), asm.DWord),
			asm.LoadMapPtr(asm.R1, 0).WithReference(name), asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, int32(at)),
			asm.Mov.Reg(asm.R3, asm.RFP), asm.Add.Imm(asm.R3, int32(value)), asm.Mov.Imm(asm.R4, 0),
			asm.FnMapUpdateElem.Call(),
			asm.Ja.Label(done),
		)
		f.label(have)
	} else {
		f.emit(asm.JEq.Imm(asm.R0, 0, done))
	}
	f.emit(asm.Mov.Reg(asm.R1, f.scalar()), asm.AddAtomic.Mem(asm.R0, asm.R1, asm.DWord, 0), asm.LoadMem(asm.R1, asm.R0, 0, asm.DWord), asm.Xor.Reg(f.scalar(), asm.R1))
	f.label(done)
}

// mapAddress reads a constant and changes a global variable.
func (f *function) mapAddress() {
	if f.g.maps[".bss"] == nil {
		f.g.maps[".bss"] = &ebpf.MapSpec{Name: ".bss", Type: ebpf.Array, KeySize: 4, ValueSize: 32, MaxEntries: 1}
	}
	if f.g.maps[".rodata"] == nil {
		content := make([]byte, 16)
		for i := range content {
			content[i] = byte(f.g.rng.Uint32())
		}
		f.g.maps[".rodata"] = &ebpf.MapSpec{
			Name: ".rodata", Type: ebpf.Array, KeySize: 4, ValueSize: 16, MaxEntries: 1, Flags: 1 << 7, // BPF_F_RDONLY_PROG
			Contents: []ebpf.MapKV{{Key: uint32(0), Value: content}},
		}
	}
	f.emit(
		asm.LoadMapValue(asm.R1, 0, uint32(4*f.g.rng.IntN(4))).WithReference(".rodata"), asm.LoadMem(asm.R2, asm.R1, 0, asm.Word),
		asm.LoadMapValue(asm.R1, 0, uint32(8*f.g.rng.IntN(4))).WithReference(".bss"), asm.LoadMem(asm.R3, asm.R1, 0, asm.DWord),
		asm.Add.Reg(asm.R3, asm.R2), asm.StoreMem(asm.R1, 0, asm.R3, asm.DWord), asm.Xor.Reg(f.scalar(), asm.R3),
	)
}

// call calls a new function of numbers: a static one, or a global one, which the verifier checks by itself.
func (f *function) call() {
	if f.depth > 0 || len(f.g.subs) > 4 {
		return
	}
	name, linkage := f.g.name("fn"), btf.StaticFunc
	if f.g.chance(2) {
		linkage = btf.GlobalFunc
	}
	sub := f.g.function(false)
	sub.leaf = f.leaf || len(f.g.subs) > 0
	f.g.subs = append(f.g.subs, nil)
	at := len(f.g.subs) - 1
	sub.emit(asm.Mov.Reg(sub.scalars[0], asm.R1), asm.Xor.Reg32(sub.scalars[0], asm.R2))
	sub.begin(1)
	sub.statements(3)
	sub.emit(asm.Mov.Reg32(asm.R0, sub.scalar()), asm.Return())
	f.g.describe(sub.insns, name, numberType(2, linkage))
	f.g.subs[at] = sub.insns
	f.emit(asm.Mov.Reg32(asm.R1, f.scalar()), asm.Mov.Reg32(asm.R2, f.scalar()), asm.Call.Label(name), asm.Add.Reg32(f.scalar(), asm.R0))
}

// callback has the kernel call a new function some times (bpf_loop, Linux 5.17), which adds to a place on our stack.
func (f *function) callback() {
	if f.depth > 0 || !f.g.btf || len(f.g.subs) > 4 {
		return
	}
	name, at := f.g.name("each"), f.slot(8)
	body := asm.Instructions{
		asm.LoadMem(asm.R3, asm.R2, 0, asm.DWord), asm.Add.Reg(asm.R3, asm.R1), asm.Mul.Imm(asm.R3, 3), asm.StoreMem(asm.R2, 0, asm.R3, asm.DWord),
		asm.Mov.Imm(asm.R0, 0), asm.Return(),
	}
	f.g.describe(body, name, &btf.Func{Linkage: btf.StaticFunc, Type: &btf.FuncProto{
		Return: integer(), Params: []btf.FuncParam{{Name: "i", Type: integer()}, {Name: "at", Type: &btf.Pointer{Target: &btf.Void{}}}},
	}})
	f.g.subs = append(f.g.subs, body)
	reference := asm.Instruction{OpCode: asm.LoadImmOp(asm.DWord), Dst: asm.R2, Src: asm.PseudoFunc, Constant: -1}
	f.emit(
		asm.Mov.Imm(asm.R1, int32(1+f.g.rng.IntN(4))), reference.WithReference(name),
		asm.Mov.Reg(asm.R3, asm.RFP), asm.Add.Imm(asm.R3, int32(at)), asm.Mov.Imm(asm.R4, 0), asm.FnLoop.Call(),
		asm.LoadMem(asm.R1, asm.RFP, int16(at), asm.DWord), asm.Xor.Reg(f.scalar(), asm.R1),
	)
}
