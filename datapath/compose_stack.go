package datapath

import (
	"errors"
	"fmt"
)

// limitStack changes compositions until the stack suffices: what is called only because it is large is pasted
// when that is too deep, which saves a function; and what has the largest frame is called.
func (e *entrypoint) limitStack(small bool) error {
	for {
		e.layOut()
		tight, err := e.tight(small)
		if err == nil {
			return nil
		}
		if tight.large && tight.composition == Called {
			tight.composition, tight.fixed, tight.why = Pasted, true, "as a function it would be too deep"
			continue
		}
		largest := e.largestPasted(func(p *part) bool { return !p.fixed })
		if largest == nil {
			return err
		}
		largest.composition, largest.follows = Called, false
		largest.why = fmt.Sprintf("its %d bytes of stack would lie above others'", largest.fragment.frame)
	}
}

// largestPasted returns, of what is pasted, the part with the largest frame; nil if there is none. Of equal ones it is the first.
func (e *entrypoint) largestPasted(only func(p *part) bool) *part {
	var largest *part
	for _, p := range e.parts() {
		if p.composition == Pasted && only(p) && (largest == nil || p.fragment.frame > largest.fragment.frame) {
			largest = p
		}
	}
	return largest
}

// layOut computes main's stack: room for the registers that are saved around pasted code, then that code's own
// stack.
func (e *entrypoint) layOut() {
	e.shift, e.frame = 0, 0
	if e.counters {
		e.frame = 8 // the key
	}
	for _, p := range e.parts() {
		if live := len(e.live(p.kind)); p.inMain() && !p.fragment.leaves(live) {
			e.shift = max(e.shift, int16(8*live))
		}
	}
	for _, p := range e.parts() {
		switch {
		case p.follows:
			e.frame = max(e.frame, p.fragment.frame)
		case p.composition == Pasted:
			e.frame = max(e.frame, int(e.shift)+p.fragment.frame)
		}
	}
}

// tight returns the first part for which the kernel's stack does not suffice, with the error that says why.
func (e *entrypoint) tight(small bool) (*part, error) {
	emptySlot := facts{graph: []node{{}}} // what replaces the function has a stack of its own
	main := roundFrame(e.frame, small)
	for _, p := range e.parts() {
		above, callers := main, 1
		code := &emptySlot
		if p.composition != Slot {
			code = &p.fragment.facts
		}
		if p.composition == Pasted { // its frame is in main's
			above, callers = main-roundFrame(code.frame, small), 0
		}
		bytes, frames := code.depth(above, small)
		switch room := code.tailRoom(small); {
		case bytes > maxStack:
			return p, e.stackError(p, above, bytes, small)
		case frames+callers > maxDepth:
			return p, e.partError(p, fmt.Sprintf("makes %d functions active at once, of which the kernel takes %d", frames+callers, maxDepth), "inline functions of it")
		case room >= 0 && above > room:
			return p, e.partError(p, fmt.Sprintf("makes tail calls, and %d bytes of stack would lie above it, of which %d are allowed", above, room),
				"have what is pasted called instead")
		}
	}
	return nil, nil
}

// stackError says who uses too much of the stack: the part, or what is pasted into main above it when that is more.
func (e *entrypoint) stackError(p *part, above, bytes int, small bool) error {
	own, beside, steps := 0, "", "in steps of 32, as before Linux 6.9"
	if p.fragment != nil {
		own, _ = p.fragment.deepest(func(frame int) int { return frame })
	}
	if above > 0 {
		beside = "with what lies above it "
	}
	if q := e.largestPasted(func(q *part) bool { return q != p }); q != nil && roundFrame(q.fragment.frame, small) > bytes-above {
		p, own, beside = q, q.fragment.frame, "with what lies below it "
	}
	if small {
		steps = "in steps of 16"
	}
	return e.partError(p, fmt.Sprintf("uses %d bytes of stack, which %scount as %d of %d (%s)", own, beside, bytes, maxStack, steps),
		fmt.Sprintf("use %d less, or keep the data in a map", bytes-maxStack))
}

// adviseFeatures adds a way out to an error of limitStack: a newer kernel, if that one would take what this one does not.
// The entrypoint is composed anew for that, and not to be used afterwards.
func (e *entrypoint) adviseFeatures(err error, o Options) error {
	var refused *HookError
	if o.Features.SmallFrames || !errors.As(err, &refused) {
		return err
	}
	o.Features.SmallFrames = true
	if e.compose(o) == nil {
		refused.Fix += "; or, if the kernel is 6.9 or newer, set Options.Features by KernelFeatures"
	}
	return err
}
