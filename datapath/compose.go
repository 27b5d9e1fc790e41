package datapath

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf/asm"
)

// part is code that an entrypoint runs: a hook, or the original.
type part struct {
	hook        *plannedHook // nil for the original
	fragment    *fragment    // nil for a slot
	composition Composition
	why         string
	fixed       bool // the composition is not ours to change
	large       bool // called only because of its size
	follows     bool // the original is the end of main, with nothing after it
	kind        Kind // none for the original
	symbol      string
}

// inMain tells whether the part is pasted between others.
func (p *part) inMain() bool { return p.composition == Pasted && !p.follows }

// Registers of a generated main function. Pasted code keeps those that are live, or main saves them on its
// stack around it.
const (
	regContext    = asm.R6
	regVerdict    = asm.R7
	regCounters   = asm.R8
	regTerminated = asm.R9
)

// maxPastedTotal keeps the distance of the conditional jumps over pasted code in their range of 32767
// instructions.
const maxPastedTotal = 16384

// maxMaps is how many maps a program can use (MAX_USED_MAPS in include/linux/bpf_verifier.h).
const maxMaps = 64

// compose decides how the parts of an entrypoint get into it. Everything begins as pasted, if nothing speaks
// against it, and becomes called where the kernel's limits ask for it.
func (e *entrypoint) compose(o Options) error {
	limit := o.PasteLimit
	if limit == 0 {
		limit = 512
	}
	var errs []error
	for _, h := range e.hooks {
		if err := h.propose(limit); err != nil {
			errs = append(errs, hookError(&h.Hook, err))
		}
	}
	e.proposeOriginal(o)
	if err := errors.Join(errs...); err != nil {
		return err
	}
	e.limitSize()
	if err := e.limitStack(o.Features.SmallFrames); err != nil {
		return e.adviseFeatures(err, o)
	}
	if err := e.limitFunctions(); err != nil {
		return err
	}
	return e.limitMaps()
}

// propose sets the composition that the hook alone allows.
func (h *plannedHook) propose(limit int) error {
	h.composition, h.fixed, h.large = h.Composition, h.Composition != Auto, false
	switch {
	case h.fragment == nil:
		h.composition, h.fixed, h.why = Slot, true, "another process fills it"
	case h.Composition == Pasted:
		h.why = "as asked"
		if h.fragment.unpastable != "" {
			return &refusal{"cannot be pasted: " + h.fragment.unpastable, "leave the composition to the plan, or ask for Called"}
		}
	case h.Composition == Called:
		h.why = "as asked"
	case h.fragment.unpastable != "":
		h.composition, h.why = Called, h.fragment.unpastable
	case h.fragment.entrySize > limit:
		h.composition, h.large, h.why = Called, true, fmt.Sprintf("%d instructions are more than the %d that are pasted", h.fragment.entrySize, limit)
	default:
		h.composition, h.why = Pasted, smallEnough(h.fragment.entrySize, limit)
	}
	return nil
}

func (e *entrypoint) proposeOriginal(o Options) {
	original := &e.original
	original.fixed, original.large, original.follows = false, false, false
	onlyPre := e.hooks[len(e.hooks)-1].Kind == Pre
	switch {
	case o.CallOriginal:
		original.composition, original.fixed, original.why = Called, true, "as asked"
	case onlyPre && !original.fragment.unwritten:
		original.composition, original.follows, original.why = Pasted, true, "the last to run: there is no post hook or observer"
	case original.fragment.unpastable != "":
		original.composition, original.why = Called, original.fragment.unpastable
	case original.fragment.entrySize > maxPasted/2:
		original.composition, original.large, original.why = Called, true, fmt.Sprintf("%d instructions are too many to paste", original.fragment.entrySize)
	default:
		original.composition, original.why = Pasted, smallEnough(original.fragment.entrySize, maxPasted/2)
	}
}

// limitSize calls what would make the jumps over pasted code too long, hooks that run last first.
func (e *entrypoint) limitSize() {
	total := 0
	for _, p := range e.parts() {
		if p.inMain() {
			total += p.fragment.entrySize
		}
	}
	for i := len(e.hooks) - 1; i >= 0 && total > maxPastedTotal; i-- {
		if h := e.hooks[i]; h.composition == Pasted && !h.fixed {
			total -= h.fragment.entrySize
			h.composition, h.why = Called, "there is too much to paste"
		}
	}
}

// limitFunctions counts functions, which are few in a program.
func (e *entrypoint) limitFunctions() error {
	return e.limit("functions", maxFunctions, 1, "inline functions, or have fewer hooks that are called or slots", func(p *part) int {
		switch p.composition {
		case Slot:
			return 1
		case Called:
			return len(p.fragment.functions)
		default:
			return len(p.fragment.functions) - 1
		}
	})
}

// limitMaps counts the maps that instructions name. What several parts use is counted for the first.
func (e *entrypoint) limitMaps() error {
	own := 0
	if e.counters {
		own = 1
	}
	seen := map[any]bool{}
	return e.limit("maps", maxMaps, own, "have hooks share maps (one *CollectionSpec for several), or have fewer hooks", func(p *part) int {
		before := len(seen)
		if p.fragment != nil {
			p.fragment.collectMaps(seen)
		}
		return len(seen) - before
	})
}

// limit adds up what main has of something and what the parts bring, and names the part that brings the most
// when that is too much; or the entrypoint, when each brings one.
func (e *entrypoint) limit(what string, limit, own int, fix string, brings func(p *part) int) error {
	total, most, of := own, 1, &e.original
	for _, p := range e.parts() {
		n := brings(p)
		total += n
		if n > most {
			most, of = n, p
		}
	}
	switch {
	case total <= limit:
		return nil
	case most == 1:
		return e.error(&refusal{fmt.Sprintf("would have %d %s, of which the kernel takes %d", total, what, limit), fix})
	default:
		return e.partError(of, fmt.Sprintf("brings %d of %d %s, of which the kernel takes %d", most, total, what, limit), fix)
	}
}

// collectMaps adds the maps that instructions load: by name, or by number those that are loaded already.
func (f *fragment) collectMaps(to map[any]bool) {
	for ins := range f.mapLoads() {
		switch {
		case ins.Reference() != "":
			to[ins.Reference()] = true
		case ins.Map() != nil:
			to[ins.Map().FD()] = true
		default:
			to[int(int32(ins.Constant))] = true
		}
	}
}

// parts returns the hooks and the original in the order in which they run.
func (e *entrypoint) parts() []*part {
	var parts []*part
	at := 0
	for at < len(e.hooks) && e.hooks[at].Kind == Pre {
		parts = append(parts, &e.hooks[at].part)
		at++
	}
	parts = append(parts, &e.original)
	for ; at < len(e.hooks); at++ {
		parts = append(parts, &e.hooks[at].part)
	}
	return parts
}

// live returns the registers of main that must outlive a hook of the kind, or the original if there is none.
func (e *entrypoint) live(kind Kind) []asm.Register {
	registers := []asm.Register{regContext}
	if kind == Post || kind == Observer {
		registers = append(registers, regVerdict)
	}
	if e.counters {
		registers = append(registers, regCounters)
	}
	if kind == Post && e.skips {
		registers = append(registers, regTerminated)
	}
	return registers
}

// leaves tells whether the fragment, when it is pasted, does without as many of the registers that survive
// calls.
func (f *fragment) leaves(registers int) bool { return registers <= 4-f.savedRegisters }

func smallEnough(size, limit int) string {
	return fmt.Sprintf("small enough to paste (%d of %d instructions)", size, limit)
}
