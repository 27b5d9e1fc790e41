package datapath

import (
	"fmt"
	"math"

	"github.com/cilium/ebpf/asm"
)

// body collects the rewritten instructions of a function. Jumps are kept by what they lead to and get their offsets in the end, so
// instructions can be added and left out on the way.
type body struct {
	out   asm.Instructions
	at    []int // by old index: where it is now, or would be; the end of the function has one too
	jumps []jump
}

// jump is an instruction of the new body that leads to an old index.
type jump struct{ from, to int }

func newBody(size int) *body {
	return &body{out: make(asm.Instructions, 0, size), at: make([]int, size+1)}
}

func (b *body) emit(ins asm.Instruction) { b.out = append(b.out, ins) }

func (b *body) emitJump(ins asm.Instruction, to int) {
	b.jumps = append(b.jumps, jump{len(b.out), to})
	b.emit(ins)
}

// finish sets the offsets. Labels go: an offset needs no name that is unique in the program.
func (b *body) finish() (asm.Instructions, error) {
	b.at[len(b.at)-1] = len(b.out)
	offsets := make([]int, len(b.out)+1)
	for i := range b.out {
		offsets[i+1] = offsets[i] + int(b.out[i].Width())
	}
	for _, j := range b.jumps {
		ins := &b.out[j.from]
		distance := offsets[b.at[j.to]] - offsets[j.from] - 1
		if ins.Reference() != "" {
			*ins = ins.WithReference("")
		}
		if isLongJump(ins) {
			ins.Constant = int64(distance)
			continue
		}
		if distance < math.MinInt16 || distance > math.MaxInt16 {
			return nil, &refusal{fmt.Sprintf("jumps over %d instructions, more than a jump can", distance), "call functions of it instead of inlining them"}
		}
		ins.Offset = int16(distance)
	}
	return b.out, nil
}
