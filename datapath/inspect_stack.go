package datapath

import (
	"math/bits"
	"slices"

	"github.com/cilium/ebpf/asm"
)

// stackUse is how a function uses its stack.
type stackUse struct {
	frame     int  // bytes
	vague     bool // it may be more: an address was computed in a way that was not followed
	unwritten bool // it reads what it may not have written before
}

// value is what is known about a register: a pointer into the function's own stack with the lowest distance from the frame
// pointer, which is never positive; or anything else, of at most width bits, perhaps one certain number.
type value struct {
	frame  bool
	offset int
	width  int
	exact  bool
	number int
}

const wide = 64

// join is what is known when the value is one or the other.
func (v value) join(o value) value {
	v.width = max(v.width, o.width)
	v.exact = v.exact && o.exact && v.number == o.number
	if !v.exact {
		v.number = 0
	}
	switch {
	case v.frame && o.frame:
		v.offset = min(v.offset, o.offset)
	case o.frame:
		v.frame, v.offset = true, o.offset
	}
	return v
}

// stackState is what is known before an instruction.
type stackState struct {
	registers [asm.RFP + 1]value
	written   uint64 // a bit for each word of the stack, from the top: it was written on every way here, at least in part
}

// words returns the bits for size bytes from a place on; or, of no size, for all that lies above it.
func words(place, size int) uint64 {
	first, last := (-place-1)/8, 0 // the stack grows downwards
	if size > 0 {
		last = max(0, (-place-size)/8)
	}
	if place >= 0 || first >= maxStack/8 {
		return 0
	}
	return (1<<(first+1) - 1) &^ (1<<last - 1)
}

// stackMeter finds the lowest address of the stack that a function reaches, by following the frame pointer through registers
// until nothing changes. The kernel does the same with exact ranges for each path; here one state per instruction
// stands for all paths, so the result can be higher than the kernel's, and is lower only where it says that it is vague or
// where another function reaches below a pointer that it was given.
type stackMeter struct {
	fn      *function
	states  []stackState
	seen    []bool
	pending []int
	spilled value // what loads from memory may bring back
	use     stackUse
}

func measureStack(fn *function) stackUse {
	if !usesFrame(fn) {
		return stackUse{}
	}
	m := &stackMeter{fn: fn, states: make([]stackState, len(fn.code)), seen: make([]bool, len(fn.code))}
	for {
		before := m.spilled
		clear(m.seen)
		m.run()
		if m.spilled == before {
			return m.use
		}
	}
}

func usesFrame(fn *function) bool {
	for i := range fn.code {
		if slices.Contains(registers(&fn.code[i]), asm.RFP) {
			return true
		}
	}
	return false
}

func (m *stackMeter) run() {
	var start stackState
	for r := range start.registers {
		start.registers[r].width = wide
	}
	start.registers[asm.RFP] = value{frame: true}
	m.reach(0, &start)
	for len(m.pending) > 0 {
		i := m.pending[len(m.pending)-1]
		m.pending = m.pending[:len(m.pending)-1]
		state := m.states[i]
		m.step(&m.fn.code[i], &state)
		if target := m.fn.targets[i]; target >= 0 {
			m.reach(target, &state)
		}
		if i+1 < len(m.fn.code) && !endsFlow(&m.fn.code[i]) {
			m.reach(i+1, &state)
		}
	}
}

// reach adds a state to what is known before an instruction.
func (m *stackMeter) reach(i int, state *stackState) {
	if !m.seen[i] {
		m.seen[i], m.states[i] = true, *state
		m.pending = append(m.pending, i)
		return
	}
	joined := m.states[i]
	for r := range joined.registers {
		joined.registers[r] = joined.registers[r].join(state.registers[r])
	}
	joined.written &= state.written
	if joined != m.states[i] {
		m.states[i] = joined
		m.pending = append(m.pending, i)
	}
}

func (m *stackMeter) step(ins *asm.Instruction, state *stackState) {
	s := &state.registers
	switch class := ins.OpCode.Class(); {
	case class.IsALU():
		s[ins.Dst] = m.compute(ins, s)
	case class == asm.LdXClass:
		m.read(ins, s[ins.Src], state)
		s[ins.Dst] = m.loaded(ins)
	case class == asm.LdClass:
		s[ins.Dst] = value{width: wide}
	case class == asm.StClass:
		m.write(ins, s[ins.Dst], state)
	case class == asm.StXClass:
		m.store(ins, state)
	case ins.OpCode.JumpOp() == asm.Call:
		for r := asm.R1; r <= asm.R5; r++ {
			m.touch(s[r], 0)
			if s[r].frame { // how much is written there is not known; more would be said to be read unwritten than is
				state.written |= words(s[r].offset, 0)
			}
			s[r] = value{width: wide}
		}
		s[asm.R0] = value{width: wide}
	}
}

func (m *stackMeter) read(ins *asm.Instruction, from value, s *stackState) {
	m.touch(from, int(ins.Offset))
	if from.frame && words(from.offset+int(ins.Offset), ins.OpCode.Size().Sizeof())&^s.written != 0 {
		m.use.unwritten = true
	}
}

// write takes note of a store. Through a pointer that is not the frame pointer it may have gone to a higher place.
func (m *stackMeter) write(ins *asm.Instruction, to value, s *stackState) {
	m.touch(to, int(ins.Offset))
	switch {
	case !to.frame:
	case ins.Dst == asm.RFP:
		s.written |= words(int(ins.Offset), ins.OpCode.Size().Sizeof())
	default:
		s.written |= words(to.offset+int(ins.Offset), 0)
	}
}

// touch takes note of an access, which takes whole words of 8 bytes (grow_stack_state). A pointer that is given away counts as one too.
func (m *stackMeter) touch(v value, offset int) {
	if v.frame {
		m.use.frame = max(m.use.frame, (-(v.offset+offset)+7)&^7)
	}
}

func (m *stackMeter) loaded(ins *asm.Instruction) value {
	if size := ins.OpCode.Size(); size != asm.DWord {
		if ins.OpCode.Mode() == asm.MemSXMode {
			return value{width: wide}
		}
		return value{width: 8 * size.Sizeof()}
	}
	return m.spilled.join(value{width: wide})
}

func (m *stackMeter) store(ins *asm.Instruction, state *stackState) {
	s := &state.registers
	if isLoadAcquire(ins) {
		m.read(ins, s[ins.Src], state)
		s[ins.Dst] = m.loaded(ins)
		return
	}
	if ins.OpCode.Mode() == asm.AtomicMode && !isStoreRelease(ins) {
		m.read(ins, s[ins.Dst], state)
	}
	m.write(ins, s[ins.Dst], state)
	if s[ins.Src].frame {
		m.spilled = m.spilled.join(value{frame: true, offset: s[ins.Src].offset})
	}
	switch atomic := ins.OpCode.AtomicOp(); {
	case atomic == asm.CmpXchg:
		s[asm.R0] = m.loaded(ins)
	case atomic != asm.InvalidAtomic && atomic&fetch != 0:
		s[ins.Src] = m.loaded(ins)
	}
}

// fetch marks atomic operations that bring back the old value.
const fetch = asm.FetchAdd ^ asm.AddAtomic

func isLoadAcquire(ins *asm.Instruction) bool {
	return ins.OpCode.AtomicOp() != asm.InvalidAtomic && ins.OpCode.AtomicOp() == asm.LoadAcquire(0, 0, asm.DWord, 0).OpCode.AtomicOp()
}

func isStoreRelease(ins *asm.Instruction) bool {
	return ins.OpCode.AtomicOp() != asm.InvalidAtomic && ins.OpCode.AtomicOp() == asm.StoreRelease(0, 0, asm.DWord, 0).OpCode.AtomicOp()
}

// compute returns the destination after an arithmetic instruction.
func (m *stackMeter) compute(ins *asm.Instruction, s *[asm.RFP + 1]value) value {
	dst, op := s[ins.Dst], ins.OpCode.ALUOp()
	src := value{width: bits.Len64(uint64(ins.Constant)), exact: true, number: int(ins.Constant)} // all 64 of a negative one
	if ins.OpCode.Source() != asm.ImmSource {
		src = s[ins.Src]
	}
	if ins.OpCode.Class() == asm.ALUClass { // the upper half becomes zero; no pointer is left
		return value{width: min(32, width(op, dst, src, ins))}
	}
	switch {
	case op == asm.Mov:
		return src
	case op == asm.Add && dst.frame != src.frame:
		return m.index(dst, src)
	case (op == asm.Add || op == asm.Sub) && (dst.frame || src.frame):
		m.use.vague = true
		return dst.join(src)
	}
	return value{width: width(op, dst, src, ins)}
}

// index adds a number to a pointer. One of less than 64 bits is not negative, so the lowest address stays.
func (m *stackMeter) index(a, b value) value {
	if b.frame {
		a, b = b, a
	}
	if b.exact {
		return m.move(a, b.number)
	}
	m.use.vague = m.use.vague || b.width == wide
	return a
}

// move shifts a pointer. Below the stack there is nothing: a loop that counts down ends in a vague pointer.
func (m *stackMeter) move(v value, by int) value {
	v.offset = min(v.offset+by, 0)
	if v.offset < -maxStack {
		m.use.vague = true
		v.offset = -maxStack
	}
	return v
}

// width bounds the bits of a result.
func width(op asm.ALUOp, dst, src value, ins *asm.Instruction) int {
	switch op {
	case asm.Mov:
		return src.width
	case asm.And:
		return min(dst.width, src.width)
	case asm.Or, asm.Xor:
		return max(dst.width, src.width)
	case asm.Add:
		return min(wide, max(dst.width, src.width)+1)
	case asm.Mul:
		return min(wide, dst.width+src.width)
	case asm.Mod, asm.Div:
		return dst.width
	}
	if ins.OpCode.Source() != asm.ImmSource || ins.Constant < 0 || ins.Constant > wide {
		return wide
	}
	switch op {
	case asm.LSh:
		return min(wide, dst.width+int(ins.Constant))
	case asm.RSh:
		return max(0, dst.width-int(ins.Constant))
	}
	return wide
}
