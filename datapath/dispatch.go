package datapath

import (
	"fmt"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
)

// instrument returns the entrypoint's program with its hooks. It keeps everything but the instructions.
func (e *entrypoint) instrument() (*ebpf.ProgramSpec, error) {
	m := &mainCode{entrypoint: e, steps: e.parts()}
	m.write()
	for _, p := range m.steps {
		m.function(p)
	}
	program := *e.program
	program.Instructions = m.code
	return &program, m.err
}

// proto is what a function looks like that main calls: the context and, after the original, the verdict so far.
func (e *entrypoint) proto(kind Kind) *btf.FuncProto {
	proto := &btf.FuncProto{
		Return: &btf.Int{Name: "int", Size: 4, Encoding: btf.Signed},
		// The kernel compares the struct's name and nothing else (btf_prog_ctx_type in kernel/bpf/btf.c).
		Params: []btf.FuncParam{{Name: "ctx", Type: &btf.Pointer{Target: &btf.Struct{Name: e.typ.context}}}},
	}
	if kind == Post || kind == Observer {
		proto.Params = append(proto.Params, btf.FuncParam{Name: "verdict", Type: &btf.Int{Name: "unsigned int", Size: 4}})
	}
	return proto
}

// mainCode is the generated main function while it is written. Each part of the entrypoint is a step. What a
// step returns either leads to the next one or ends the run.
type mainCode struct {
	*entrypoint
	steps []*part
	code  asm.Instructions
	label string // of the next instruction
	err   error
}

const (
	labelTerminated = "dp_terminated" // a pre hook ended the run with the verdict in r0
	labelOverridden = "dp_overridden" // a post hook replaced the verdict by the one in r0
	labelBroken     = "dp_broken"     // what cannot happen
)

func labelStep(i int) string { return fmt.Sprintf("dp_step_%d", i) }

func (m *mainCode) write() {
	m.begin()
	for i, p := range m.steps {
		m.step(i, p)
	}
	if !m.original.follows {
		m.at(labelStep(len(m.steps)))
		m.emit(asm.Mov.Reg32(asm.R0, regVerdict))
		m.clampVerdict(asm.R0)
		m.emit(asm.Return())
		m.terminated()
		m.overridden()
		m.broken()
	}
}

// broken is where a run ends whose counters are not there.
func (m *mainCode) broken() {
	if m.counters {
		m.at(labelBroken)
		m.emit(asm.Mov.Imm(asm.R0, m.typ.deny), asm.Return())
	}
}

// function adds what the part has outside of main.
func (m *mainCode) function(p *part) {
	if p.composition == Slot {
		m.emit(m.stub(p)...)
		return
	}
	if p.composition == Called {
		m.add(p.fragment.called(p.symbol, m.proto(p.kind)))
	}
	m.emit(p.fragment.subs...)
}

// add emits what a fragment made, and keeps its first error.
func (m *mainCode) add(insns asm.Instructions, err error) {
	if err != nil && m.err == nil {
		m.err = err
	}
	m.emit(insns...)
}

// at puts a label on the instruction that is emitted next.
func (m *mainCode) at(label string) { m.label = label }

func (m *mainCode) emit(insns ...asm.Instruction) {
	for _, ins := range insns {
		if m.label != "" {
			ins, m.label = ins.WithSymbol(m.label), ""
		}
		m.code = append(m.code, ins)
	}
}

// begin writes the head of the function, with the name and type of the original.
func (m *mainCode) begin() {
	first := asm.Mov.Reg(regContext, asm.R1).WithSource(asm.Comment("dispatcher of " + printable(m.name)))
	m.code = append(m.code, btf.WithFuncMetadata(first.WithSymbol(m.main.Name), m.main))
	if m.counters {
		m.findCounters()
	}
}

func (m *mainCode) step(i int, p *part) {
	m.at(labelStep(i))
	if p == &m.original {
		m.runOriginal()
		return
	}
	h := p.hook
	if h.Kind == Post && !h.AfterTermination && m.skips {
		m.emit(asm.JNE.Imm(regTerminated, 0, labelStep(i+1)))
	}
	m.emit(asm.Mov.Reg(asm.R1, regContext))
	if h.Kind != Pre {
		// By 32 bits: a copy of 64 is the same number to the verifier, and that of 6.1 then learns from a
		// comparison of what a pasted hook returns (its argument, with a number that it cannot be) that the
		// verdict is out of range (find_equal_scalars).
		m.emit(asm.Mov.Reg32(asm.R2, regVerdict))
	}
	m.run(p)
	if m.counters {
		m.countVerdict(h)
	}
	switch h.Kind {
	case Pre:
		m.decide(i, h, labelTerminated)
	case Post:
		m.decide(i, h, labelOverridden)
	}
}

// run executes a part whose arguments stand in r1 and r2. Its verdict is in r0, and the registers that are live
// are as before.
func (m *mainCode) run(p *part) {
	live := m.live(p.kind)
	switch {
	case p.composition != Pasted:
		m.emit(asm.Call.Label(p.symbol))
	case p.fragment.leaves(len(live)):
		m.add(p.fragment.pasted(m.shift, live...))
	default:
		for i, r := range live {
			m.emit(asm.StoreMem(asm.RFP, int16(-8*(i+1)), r, asm.DWord))
		}
		m.add(p.fragment.pasted(m.shift))
		for i, r := range live {
			m.emit(asm.LoadMem(r, asm.RFP, int16(-8*(i+1)), asm.DWord))
		}
	}
}

// decide goes on with the next step if the verdict in r0 is one that proceeds, and else leaves.
func (m *mainCode) decide(i int, h *plannedHook, leave string) {
	falls := m.original.follows && m.steps[i+1] == &m.original // what ends the run stands right here
	if len(h.Proceed) == 1 && !falls && !m.counters {
		m.emit(asm.JNE.Imm32(asm.R0, h.Proceed[0], leave))
		return
	}
	for _, verdict := range h.Proceed {
		m.emit(asm.JEq.Imm32(asm.R0, verdict, labelStep(i+1)))
	}
	if m.counters {
		m.countTermination(h)
	}
	if !falls {
		m.emit(asm.Ja.Label(leave))
	}
}

// runOriginal runs the original between the hooks. Where nothing waits for it, it is the rest of main as it
// stands, after the end of runs that do not get so far.
func (m *mainCode) runOriginal() {
	o := &m.original
	if o.follows {
		step := m.label
		m.at(labelTerminated)
		m.setVerdict(asm.R0)
		m.emit(asm.Return())
		m.broken()
		m.at(step)
		m.emit(asm.Mov.Reg(asm.R1, regContext))
		m.add(o.fragment.following())
		return
	}
	m.emit(asm.Mov.Reg(asm.R1, regContext))
	m.run(o)
	m.setVerdict(regVerdict)
	if m.skips {
		m.emit(asm.Mov.Imm(regTerminated, 0))
	}
}

// terminated is where pre hooks end the run: what runs nevertheless comes next.
func (m *mainCode) terminated() {
	if m.steps[0] == &m.original {
		return
	}
	next := slices.IndexFunc(m.steps, func(p *part) bool {
		h := p.hook
		return h != nil && (h.Kind == Observer || h.Kind == Post && h.AfterTermination)
	})
	if next < 0 {
		next = len(m.steps)
	}
	m.at(labelTerminated)
	m.setVerdict(regVerdict)
	if m.skips {
		m.emit(asm.Mov.Imm(regTerminated, 1))
	}
	m.emit(asm.Ja.Label(labelStep(next)))
}

// overridden is where post hooks replace the verdict: no other one runs.
func (m *mainCode) overridden() {
	if !slices.ContainsFunc(m.hooks, func(h *plannedHook) bool { return h.Kind == Post }) {
		return
	}
	next := slices.IndexFunc(m.steps, func(p *part) bool { return p.kind == Observer })
	if next < 0 {
		next = len(m.steps)
	}
	m.at(labelOverridden)
	m.setVerdict(regVerdict)
	m.emit(asm.Ja.Label(labelStep(next)))
}

// setVerdict moves r0 into a register, in the range that the verifier accepts from programs of the type. It
// learns that from a comparison without sign of a register whose upper half is zero.
func (m *mainCode) setVerdict(r asm.Register) {
	m.emit(asm.Mov.Reg32(r, asm.R0))
	m.clampVerdict(r)
}

// clampVerdict brings a verdict into range. At the end that is done once more: post hooks and observers get a number that the verifier knows to be the same as
// the verdict, and on ways that cannot be taken it unlearns the range of both (sync_linked_regs of 6.18; TestVerdictInRangeWhateverHooksCompare).
func (m *mainCode) clampVerdict(r asm.Register) {
	switch c := m.typ.clamp; {
	case c == nil:
	case c.low == c.high:
		m.emit(asm.Mov.Imm(r, c.low))
	default:
		m.emit(skip(asm.JLE.Imm32(r, c.high, ""), 1), asm.Mov.Imm(r, c.otherwise))
	}
}

// skip makes a jump lead over some instructions.
func skip(jump asm.Instruction, instructions int16) asm.Instruction {
	jump.Offset = instructions
	return jump
}
