package datapath

// Limits of kernel/bpf/verifier.c.
const (
	maxStack     = 512 // bytes, of all functions that are active at once (MAX_BPF_STACK)
	maxTailAbove = 256 // bytes, above a function that makes tail calls: they must be less (check_max_stack_depth_subprog)
	maxDepth     = 8   // functions that are active at once (MAX_CALL_FRAMES)
	maxFunctions = 256 // of a program (BPF_MAX_SUBPROGS)
)

// roundFrame returns what a frame counts for: steps of 32 bytes, at least one; or, with small frames, steps of 16 bytes (round_up_stack_depth).
func roundFrame(frame int, small bool) int {
	if small {
		return (frame + 15) &^ 15
	}
	return (max(frame, 1) + 31) &^ 31
}

// depth returns the stack of the deepest chain of calls and the number of functions in the longest, both from the main function
// on, with above bytes (already rounded) of callers' frames added.
func (f *facts) depth(above int, small bool) (bytes, frames int) {
	bytes, frames = f.deepest(func(frame int) int { return roundFrame(frame, small) })
	return above + bytes, frames
}

// deepest is the same for frames that count for what count says.
func (f *facts) deepest(count func(frame int) int) (bytes, frames int) {
	walked := make([][2]int, len(f.graph))
	var walk func(n int) [2]int
	walk = func(n int) [2]int {
		if walked[n][1] > 0 {
			return walked[n]
		}
		var below [2]int
		for _, callee := range f.graph[n].calls {
			w := walk(callee)
			below = [2]int{max(below[0], w[0]), max(below[1], w[1])}
		}
		walked[n] = [2]int{below[0] + count(f.graph[n].frame), below[1] + 1}
		return walked[n]
	}
	w := walk(0)
	return w[0], w[1]
}

// tailRoom returns how many bytes of stack callers of the main function may use so that the kernel accepts the tail calls in
// it and below, or -1 if there are none.
func (f *facts) tailRoom(small bool) int {
	above := f.tailAbove(small)
	if above < 0 {
		return above
	}
	return max(maxTailAbove-1-above, 0)
}

// tailAbove returns the most stack that lies above a function with tail calls, from the main function on, or -1 if there is no such function.
func (f *facts) tailAbove(small bool) int {
	const none, unknown = -1, -2
	known := make([]int, len(f.graph))
	for n := range known {
		known[n] = unknown
	}
	var above func(n int) int
	above = func(n int) int {
		if known[n] != unknown {
			return known[n]
		}
		most := none
		if f.graph[n].tailCall {
			most = 0
		}
		for _, callee := range f.graph[n].calls {
			if a := above(callee); a != none {
				most = max(most, a+roundFrame(f.graph[n].frame, small))
			}
		}
		known[n] = most
		return most
	}
	return above(0)
}
