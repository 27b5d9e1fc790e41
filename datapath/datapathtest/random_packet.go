package datapathtest

import (
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// field reads one of the context.
func (f *function) field() {
	fields := contexts[f.g.options.Type].fields
	f.loadContext(asm.R1)
	f.emit(asm.LoadMem(asm.R2, asm.R1, fields[f.g.rng.IntN(len(fields))], asm.Word), asm.Add.Reg(f.scalar(), asm.R2))
}

// packet reads bytes of the packet, or changes some.
func (f *function) packet() {
	kind := contexts[f.g.options.Type]
	if kind.end == 0 {
		return
	}
	outside, at := f.g.name("outside"), int16(f.g.rng.IntN(60))
	f.loadContext(asm.R1)
	f.emit(
		asm.LoadMem(asm.R2, asm.R1, kind.data, asm.Word), asm.LoadMem(asm.R3, asm.R1, kind.end, asm.Word),
		asm.Mov.Reg(asm.R4, asm.R2), asm.Add.Imm(asm.R4, int32(at)+1), asm.JGT.Reg(asm.R4, asm.R3, outside),
		asm.LoadMem(asm.R5, asm.R2, at, asm.Byte), asm.Add.Reg(f.scalar(), asm.R5),
	)
	if f.g.options.Writes && kind.writesPacket && at >= 14 { // fields of the context follow from the header of Ethernet
		f.emit(asm.StoreMem(asm.R2, at, f.scalar(), asm.Byte))
	}
	f.label(outside)
}

// change calls a helper after which all pointers into the packet are void; an XDP program shortens it.
func (f *function) change() {
	if !f.g.options.Writes || !contexts[f.g.options.Type].writesPacket {
		return
	}
	f.loadContext(asm.R1)
	switch {
	case f.g.options.Type != ebpf.XDP:
		f.emit(asm.Mov.Imm(asm.R2, 0), asm.FnSkbPullData.Call())
	case f.g.chance(2):
		f.emit(asm.Mov.Imm(asm.R2, -1), asm.FnXdpAdjustTail.Call())
	default:
		f.emit(asm.Mov.Imm(asm.R2, 0), asm.FnXdpAdjustHead.Call())
	}
	f.emit(asm.Add.Reg(f.scalar(), asm.R0))
}

// earlyExit returns in the middle.
func (f *function) earlyExit() {
	next := f.g.name("next")
	f.emit(asm.JNE.Imm(f.scalar(), int32(f.g.rng.IntN(4)), next))
	verdicts := f.g.options.Verdicts
	f.exit(verdicts[f.g.rng.IntN(len(verdicts))])
	f.label(next)
}

// tailCall calls a program through the map, by a number that may have none.
func (f *function) tailCall() {
	skip := f.g.name("skip")
	f.emit(asm.JSet.Imm(f.scalar(), 1, skip))
	f.loadContext(asm.R1)
	f.emit(asm.LoadMapPtr(asm.R2, 0).WithReference("leaves"), asm.Mov.Imm(asm.R3, int32(f.g.rng.IntN(4))), asm.FnTailCall.Call())
	f.label(skip)
}
