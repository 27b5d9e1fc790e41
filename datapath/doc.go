// Package datapath builds dispatchers: it takes a collection of eBPF programs and hooks that others bring, and
// makes a collection whose entrypoints run pre hooks, the original program, post hooks and observers, in a
// fixed order.
//
//	plan, err := datapath.NewPlan(spec, []datapath.Hook{
//		{Owner: "acme", Name: "count", Entrypoint: "to_pod", Kind: datapath.Pre, Collection: counter, Program: "count"},
//	}, datapath.Options{})
//	…
//	fmt.Print(plan) // the order, how each hook is composed, what its verdicts mean, and why
//	collection, err := ebpf.NewCollection(plan.Build())
//
// # What a hook does
//
// A pre hook is a function of the entrypoint's context. It returns a verdict of the entrypoint's type: one of
// its Proceed values lets the packet (or socket) go on to the next hook and at last to the original; any other
// ends the run and is what the entrypoint returns. A post hook gets the context and, as a second argument, the
// verdict so far. If it returns one of its Proceed values, the verdict stands; any other becomes the verdict,
// and later post hooks do not run. Post hooks do not run either when a pre hook ended the run, unless they say
// AfterTermination. An observer gets the same arguments as a post hook, runs last and always, and what it
// returns is ignored.
//
// # How a hook gets in
//
// Hooks whose code the caller has are linked into the entrypoint's program: pasted into it, which costs next to
// nothing, or called as a function of it. Both work on kernels that refuse program extensions (freplace), both
// are replaced with the entrypoint in one step. A hook that another process brings is a [Slot]: a function that
// does nothing until a program extension replaces it. [NewPlan] picks the cheapest that is allowed and says
// why; [Hook.Composition] forces one.
//
// # What comes with it
//
// A hook's maps and global variables become part of the collection that is built; [Plan.Maps] and
// [Plan.Variables] say under which names. [Options.Counters] counts what each hook returns, and
// [Plan.ReadCounters] reads that from the loaded map [CountersMap]. [Plan.Slots] lists what others have to fill:
// each with an Extension whose AttachTarget is the loaded entrypoint and whose AttachTo the slot's function
// (link.AttachFreplace). A plan does not change; when hooks do, another one takes its place.
//
// # What it is not for
//
// The package is a function from specs to specs. It loads and attaches nothing, opens no file and asks the
// kernel nothing: what the kernel can do is an argument, [Features]. It compiles nothing either: a hook is made
// of instructions, whatever made them. Programs that return no verdict about a packet or a socket (tracing,
// LSM) have no dispatchers.
//
// docs/datapath.md has the rules in full, the decisions with their reasons, and which kernels were tried.
package datapath
