package datapath

import (
	"fmt"
	"math"

	"github.com/cilium/ebpf"
)

// checkProgram holds a finished program against the kernel's limits, so that what breaks them is named by function before the
// verifier says it by instruction. Labelled jumps must be within their range: the encoder cuts their distance to 16 bits without a word.
// The frame of the main function is given: measured as a whole, pasted code would be charged for pointers that its neighbours left in registers.
func checkProgram(p *ebpf.ProgramSpec, frame int, small bool) error {
	functions, err := split(p.Instructions)
	if err != nil {
		return err
	}
	for _, fn := range functions {
		if err := fn.checkJumps(); err != nil {
			return err
		}
	}
	f, err := inspectFunctions(functions, stackUse{frame: frame})
	if err != nil {
		return err
	}
	bytes, frames := f.depth(0, small)
	switch {
	case len(functions) > maxFunctions:
		return &refusal{fmt.Sprintf("has %d functions, of which the kernel takes %d", len(functions), maxFunctions), "inline functions, or use fewer hooks"}
	case frames > maxDepth:
		return &refusal{fmt.Sprintf("has %d functions active at once, of which the kernel takes %d", frames, maxDepth), "inline functions"}
	case bytes > maxStack:
		return &refusal{fmt.Sprintf("uses %d bytes of stack, of which there are %d", bytes, maxStack), "use less stack in functions, or a map"}
	case f.tailAbove(small) >= maxTailAbove:
		return &refusal{fmt.Sprintf("has %d bytes of stack or more above a function that makes tail calls", maxTailAbove), "use less stack in its callers"}
	}
	return nil
}

// checkJumps checks that each jump's distance fits its field.
func (fn *function) checkJumps() error {
	offsets := make([]int, len(fn.code)+1)
	for i := range fn.code {
		offsets[i+1] = offsets[i] + int(fn.code[i].Width())
	}
	for i, target := range fn.targets {
		if target < 0 || isLongJump(&fn.code[i]) {
			continue
		}
		if distance := offsets[target] - offsets[i] - 1; distance < math.MinInt16 || distance > math.MaxInt16 {
			return &refusal{fmt.Sprintf("jumps over %d instructions in the function %q, more than a jump can", distance, fn.name), "have large hooks called"}
		}
	}
	return nil
}
