package datapath

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
)

// CountersMap is the name of the map that [Options.Counters] adds.
const CountersMap = "dp_counters"

// HookCounters is what one hook did, summed over all processors.
type HookCounters struct {
	Entrypoint, Owner, Hook string
	Runs                    uint64
	Terminations            uint64           // runs that it ended (pre hooks), verdicts that it replaced (post hooks)
	Verdicts                map[int32]uint64 // what it returned, from -1 to 9; what never came is not in it
	Others                  uint64           // any other verdict
}

// A value of the map has a block of numbers for each hook of an entrypoint: one for each verdict from
// countersLow on, one for other verdicts, one for terminations. So a run costs one lookup, and a hook one
// addition.
const (
	countersLow      = -1
	countersVerdicts = 11
	countersOthers   = countersVerdicts
	countersEnds     = countersVerdicts + 1
	countersBlock    = 8 * (countersVerdicts + 2)

	// The kernel limits values of per-CPU maps to PCPU_MIN_UNIT_SIZE, 32 KiB (kernel/bpf/arraymap.c).
	countersMaxHooks = 32 << 10 / countersBlock
)

func (p *Plan) countersSpec() *ebpf.MapSpec {
	most := 1
	for _, e := range p.entrypoints {
		most = max(most, len(e.hooks))
	}
	return &ebpf.MapSpec{
		Name: CountersMap, Type: ebpf.PerCPUArray, KeySize: 4,
		ValueSize: uint32(most * countersBlock), MaxEntries: uint32(max(1, len(p.entrypoints))),
	}
}

// findCounters looks up the counters of the entrypoint. The kernel's lookup of an index that is there finds it;
// the verifier wants to see a branch for when it does not.
func (m *mainCode) findCounters() {
	m.emit(
		asm.StoreImm(asm.RFP, -4, int64(m.index), asm.Word),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, -4),
		asm.LoadMapPtr(asm.R1, 0).WithReference(CountersMap),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, labelBroken),
		asm.Mov.Reg(regCounters, asm.R0),
	)
}

// countVerdict counts the verdict in r0, and keeps it.
func (m *mainCode) countVerdict(h *plannedHook) {
	m.emit(
		asm.Mov.Reg32(asm.R1, asm.R0),
		asm.Add.Imm32(asm.R1, -countersLow),
		skip(asm.JLT.Imm32(asm.R1, countersVerdicts, ""), 1),
		asm.Mov.Imm32(asm.R1, countersOthers),
		asm.LSh.Imm(asm.R1, 3),
		asm.Add.Reg(asm.R1, regCounters),
	)
	m.increment(asm.R1, h.index*countersBlock)
}

func (m *mainCode) countTermination(h *plannedHook) {
	m.increment(regCounters, h.index*countersBlock+8*countersEnds)
}

// increment adds one. Programs that nothing interrupts on their processor need no atomic addition.
func (m *mainCode) increment(base asm.Register, offset int) {
	if m.typ.interruptible {
		add := asm.AddAtomic.Mem(base, asm.R2, asm.DWord, int16(offset))
		m.emit(asm.Mov.Imm(asm.R2, 1), add)
		return
	}
	m.emit(
		asm.LoadMem(asm.R2, base, int16(offset), asm.DWord),
		asm.Add.Imm(asm.R2, 1),
		asm.StoreMem(base, int16(offset), asm.R2, asm.DWord),
	)
}

// ReadCounters reads the map named [CountersMap] of a loaded collection that was built from the plan, with
// [Options.Counters]. Hooks come in the order in which they run. Packets that pass meanwhile may be counted for
// some hooks and not yet for others. A map of another shape than this plan's is an error; one of another plan with
// as many entrypoints and hooks cannot be told apart.
func (p *Plan) ReadCounters(m *ebpf.Map) ([]HookCounters, error) {
	if m == nil {
		return nil, errors.New("read counters: no map: build the plan with Options.Counters, and take the map from the loaded collection")
	}
	want := p.countersSpec()
	if m.Type() != want.Type || m.ValueSize() != want.ValueSize || m.MaxEntries() != want.MaxEntries {
		return nil, fmt.Errorf("read counters: the map is a %s of %d values of %d bytes, and that of this plan is a %s of %d values of %d bytes: take the map of the collection that this plan built",
			m.Type(), m.MaxEntries(), m.ValueSize(), want.Type, want.MaxEntries, want.ValueSize)
	}
	var counters []HookCounters
	for _, e := range p.entrypoints {
		var perCPU [][]byte
		if err := m.Lookup(uint32(e.index), &perCPU); err != nil {
			return nil, fmt.Errorf("read counters of %q: %w", e.name, err)
		}
		for _, h := range e.hooks {
			counters = append(counters, h.counters(perCPU))
		}
	}
	return counters, nil
}

// counters adds up what the processors counted.
func (h *plannedHook) counters(perCPU [][]byte) HookCounters {
	c := HookCounters{Entrypoint: h.Entrypoint, Owner: h.Owner, Hook: h.Name, Verdicts: map[int32]uint64{}}
	for _, value := range perCPU {
		number := func(i int) uint64 { return binary.NativeEndian.Uint64(value[h.index*countersBlock+8*i:]) }
		for i := range countersVerdicts {
			if n := number(i); n > 0 {
				c.Verdicts[int32(i+countersLow)] += n
				c.Runs += n
			}
		}
		c.Others += number(countersOthers)
		c.Runs += number(countersOthers)
		c.Terminations += number(countersEnds)
	}
	return c
}
