package datapathtest_test

import (
	"math"
	"sync"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/stretchr/testify/assert"

	"github.com/cnikit/cnikit/datapath/datapathtest"
	"github.com/cnikit/cnikit/internal/testenv"
)

func returnSecond() asm.Instructions {
	return asm.Instructions{asm.Mov.Reg(asm.R0, asm.R2), asm.Return()}
}

func xdp(insns ...asm.Instruction) *ebpf.CollectionSpec {
	return &ebpf.CollectionSpec{Programs: map[string]*ebpf.ProgramSpec{"entry": {Name: "entry", Type: ebpf.XDP, License: "MIT", Instructions: insns}}}
}

// A trace has what was recorded, in order, over programs and runs, and leaves the arguments alone.
func TestTraceShowsTheOrder(t *testing.T) {
	testenv.BPF(t)
	trace := datapathtest.NewTrace(t)
	program := func(id int32) *ebpf.Program {
		insns := append(asm.Instructions{asm.Mov.Imm(asm.R2, id+1)}, trace.Record(id)...)
		insns = append(insns, trace.RecordRegister(asm.R2)...)
		return datapathtest.Load(t, xdp(append(insns, returnSecond()...)...)).Programs["entry"]
	}
	first, second := program(-7), program(70000)
	assert.Empty(t, trace.Take(t))
	assert.Equal(t, int32(70001), datapathtest.Run(t, second, make([]byte, 14)).Verdict)
	datapathtest.Run(t, first, make([]byte, 14))
	assert.Equal(t, []int32{70000, 70001, -7, -6}, trace.Take(t))
	assert.Empty(t, trace.Take(t), "a trace is empty once taken")
	for range 256 {
		datapathtest.Run(t, first, make([]byte, 14))
		trace.Take(t)
	}
}

// Run returns the packet as the program left it.
func TestRunReturnsThePacket(t *testing.T) {
	testenv.BPF(t)
	collection := datapathtest.Load(t, xdp(
		asm.Mov.Reg(asm.R6, asm.R1), asm.Mov.Imm(asm.R2, -10), asm.FnXdpAdjustTail.Call(), asm.Mov.Imm(asm.R0, 3), asm.Return(),
	))
	packet := datapathtest.Packet(datapathtest.Ethernet{}, datapathtest.Payload("0123456789abcdef"))
	result := datapathtest.Run(t, collection.Programs["entry"], packet)
	assert.Equal(t, int32(3), result.Verdict)
	assert.Equal(t, packet[:len(packet)-10], result.Packet)
}

// A program of sockets runs on a context.
func TestRunContext(t *testing.T) {
	testenv.BPF(t)
	spec := xdp(asm.LoadMem(asm.R1, asm.R1, 12, asm.Word), asm.Mov.Imm(asm.R0, 0), asm.JNE.Imm(asm.R1, 17, "out"), asm.Mov.Imm(asm.R0, 1), asm.Return().WithSymbol("out"))
	spec.Programs["entry"].Type, spec.Programs["entry"].AttachType = ebpf.SkLookup, ebpf.AttachSkLookup
	program := datapathtest.Load(t, spec).Programs["entry"]
	assert.Equal(t, int32(1), datapathtest.RunContext(t, program, datapathtest.LookupContext{Family: 2, Protocol: 17}).Verdict)
	assert.Equal(t, int32(0), datapathtest.RunContext(t, program, datapathtest.LookupContext{Family: 2, Protocol: 6}).Verdict)
}

// Wait has what is recorded later, too.
func TestTraceWaits(t *testing.T) {
	testenv.BPF(t)
	trace := datapathtest.NewTrace(t)
	program := datapathtest.Load(t, xdp(append(trace.Record(7), asm.Mov.Imm(asm.R0, 2), asm.Return())...)).Programs["entry"]
	var later sync.WaitGroup
	later.Go(func() {
		for range 3 {
			time.Sleep(5 * time.Millisecond)
			datapathtest.Run(t, program, make([]byte, 14))
		}
	})
	assert.Equal(t, []int32{7, 7, 7}, trace.Wait(t, 3))
	later.Wait()
	assert.Empty(t, trace.Wait(t, 0), "a trace is empty once taken")
}

// A run may be interrupted, so it is the least of several times that is compared.
func TestTimeGrowsWithTheProgram(t *testing.T) {
	testenv.BPF(t)
	var long asm.Instructions
	for range 4000 {
		long = append(long, asm.Mov.Imm(asm.R0, 2), asm.BSwap(asm.R0, asm.DWord))
	}
	least := func(insns ...asm.Instruction) time.Duration {
		program := datapathtest.Load(t, xdp(insns...)).Programs["entry"]
		least := time.Duration(math.MaxInt64)
		for range 20 {
			least = min(least, datapathtest.Time(t, program, make([]byte, 14), 1000))
		}
		return least
	}
	assert.Less(t, least(asm.Mov.Imm(asm.R0, 2), asm.Return()), least(append(long, asm.Return())...))
}
