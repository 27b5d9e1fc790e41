package datapath

import (
	"slices"

	"github.com/cilium/ebpf"
)

// Kind says when a hook runs.
type Kind int

// The kinds of hooks. The zero Kind is none of them, and refused.
const (
	Pre      Kind = iota + 1 // before the original, with the right to end the run
	Post                     // after the original, with the right to change the verdict
	Observer                 // last and always, without any right
)

var kindNames = [...]string{Pre: "pre", Post: "post", Observer: "observer"}

// String returns the name in lower case.
func (k Kind) String() string {
	if k < Pre || k > Observer {
		return "no kind"
	}
	return kindNames[k]
}

// Composition says how the code of a hook gets into the entrypoint.
type Composition int

// The ways of composition.
const (
	Auto   Composition = iota // the cheapest that is allowed
	Pasted                    // instructions put into the entrypoint's own function: no call
	Called                    // a function of the entrypoint's program: one call and one return
	Slot                      // a function that a program extension (freplace) of another process replaces
)

var compositionNames = [...]string{Auto: "auto", Pasted: "pasted", Called: "called", Slot: "slot"}

// String returns the name in lower case.
func (c Composition) String() string {
	if c < Auto || c > Slot {
		return "no composition"
	}
	return compositionNames[c]
}

// Hook is code to be run before or after an entrypoint. Specs that it points to are read by [NewPlan], and not
// changed.
type Hook struct {
	// Owner and Name tell whose hook it is, and which. Together they are unique at an entrypoint. Any text but
	// the empty one will do, except that an owner holds no slash; neither becomes a name in the kernel.
	Owner, Name string

	// Entrypoint is the name of a program in the collection that is instrumented.
	Entrypoint string

	Kind Kind

	// Before and After name hooks of the same entrypoint and kind that must run later or earlier: "owner" means
	// all of an owner's (for a hook of that owner: all its others), "owner/name" one. What is not there is
	// ignored, see [Plan.Ignored], except that two hooks placed by the same absent one keep the order that
	// follows.
	Before, After []string

	// Priority orders hooks that no constraint orders: lower first, equal ones by owner, then by name.
	Priority int

	// Collection and Program are the code. Hooks with the same *CollectionSpec share its maps and global
	// variables. The program is of the entrypoint's type, an Extension, or of no type yet. Without a collection
	// the hook is a slot.
	Collection *ebpf.CollectionSpec
	Program    string

	// Composition asks for a way to get the code in. Of a Slot with a collection nothing is linked: the caller
	// fills it.
	Composition Composition

	// Proceed are the verdicts of a pre or post hook after which the run goes on. None means the type's
	// default: -1 for XDP and TC; 1 for the cgroup types and sk_lookup, and for linked hooks also -1, which a
	// program extension could not return there. They replace the default: add -1 if code that returns it is
	// to let the run go on still. With {2} alone it is a verdict like any other, and comes out as 4294967295.
	Proceed []int32

	// AfterTermination makes a post hook run also when a pre hook ended the run. Observers always do.
	AfterTermination bool
}

// ID returns "owner/name".
func (h *Hook) ID() string { return h.Owner + "/" + h.Name }

// clone returns a copy that the caller cannot change.
func (h *Hook) clone() Hook {
	c := *h
	c.Before, c.After, c.Proceed = slices.Clone(h.Before), slices.Clone(h.After), slices.Clone(h.Proceed)
	return c
}
