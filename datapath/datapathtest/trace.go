package datapathtest

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// traceLength is how many entries a trace holds; a power of two, so that a mask bounds the index.
const traceLength = 256

// traceSize is that of the map's value: a count and the entries (bytes).
const traceSize = 4 + 4*traceLength

// Trace shows which programs ran, and in which order: each writes a number into a map that all of them share.
type Trace struct {
	m *ebpf.Map
}

// NewTrace makes an empty trace, which lives as long as the test.
func NewTrace(t testing.TB) *Trace {
	t.Helper()
	m, err := ebpf.NewMap(&ebpf.MapSpec{Name: "trace", Type: ebpf.Array, KeySize: 4, ValueSize: traceSize, MaxEntries: 1})
	if err != nil {
		t.Fatalf("make trace: %v", err)
	}
	t.Cleanup(func() { _ = m.Close() })
	return &Trace{m: m}
}

// Record returns instructions that write id into the trace. They use the registers R3 to R5 and no stack, so that the arguments of a hook stay where they are.
func (tr *Trace) Record(id int32) asm.Instructions {
	return append(tr.reserve(), asm.StoreImm(asm.R3, 4, int64(id), asm.Word))
}

// RecordRegister is like [Trace.Record] for what a register holds, which is none of R3 to R5.
func (tr *Trace) RecordRegister(r asm.Register) asm.Instructions {
	return append(tr.reserve(), asm.StoreMem(asm.R3, 4, r, asm.Word))
}

// reserve leaves in R3 the address, less four, of an entry that is the caller's alone.
func (tr *Trace) reserve() asm.Instructions {
	load := asm.LoadMapValue(asm.R3, 0, 0)
	if err := load.AssociateMap(tr.m); err != nil {
		panic(err) // the instruction is a load from a map
	}
	return asm.Instructions{
		load,
		asm.Mov.Imm(asm.R4, 1),
		fetchAdd(asm.R3, asm.R4, asm.Word, 0),
		asm.And.Imm(asm.R4, traceLength-1),
		asm.LSh.Imm(asm.R4, 2),
		asm.Add.Reg(asm.R3, asm.R4),
	}
}

// fetchAdd adds to memory and leaves in src what was there. The library (v0.22) encodes an atomic operation by the constant of the instruction, which its own constructor leaves out.
func fetchAdd(dst, src asm.Register, size asm.Size, offset int16) asm.Instruction {
	add := asm.FetchAdd.Mem(dst, src, size, offset)
	add.Constant = int64(asm.FetchAdd >> 8)
	return add
}

// Take returns what was recorded since the last call. No program that records may be running.
func (tr *Trace) Take(t testing.TB) []int32 {
	t.Helper()
	ids := tr.read(t)
	if err := tr.m.Put(uint32(0), make([]byte, traceSize)); err != nil {
		t.Fatalf("clear trace: %v", err)
	}
	return ids
}

// Wait is Take for programs that the kernel runs on its own time, such as those for packets, which may be received when who sent them is done. It waits
// until there are at least n entries, for a minute, and until no more come.
func (tr *Trace) Wait(t testing.TB, n int) []int32 {
	t.Helper()
	for deadline, last := time.Now().Add(time.Minute), -1; time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		have := len(tr.read(t))
		if have >= n && have == last {
			break
		}
		last = have
	}
	return tr.Take(t)
}

func (tr *Trace) read(t testing.TB) []int32 {
	t.Helper()
	value := make([]byte, traceSize)
	if err := tr.m.Lookup(uint32(0), value); err != nil {
		t.Fatalf("read trace: %v", err)
	}
	count := binary.NativeEndian.Uint32(value)
	if count > traceLength {
		t.Fatalf("read trace: %d entries since it was read last; it holds %d", count, traceLength)
	}
	ids := make([]int32, count)
	for i := range ids {
		ids[i] = int32(binary.NativeEndian.Uint32(value[4+4*i:]))
	}
	return ids
}
