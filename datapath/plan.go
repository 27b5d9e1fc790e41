package datapath

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
)

// Plan says how the entrypoints of a collection are instrumented. It does not change, and may be used by several goroutines.
type Plan struct {
	spec        *ebpf.CollectionSpec
	options     Options
	entrypoints []*entrypoint
	ignored     []Constraint
}

// entrypoint is a program with its hooks in the order in which they run.
type entrypoint struct {
	name    string
	program *ebpf.ProgramSpec
	typ     programType
	hooks   []*plannedHook // pre, post, observers
}

// plannedHook is a hook with what was decided about it.
type plannedHook struct {
	Hook
	composition Composition
	reason      string // why this composition
}

// NewPlan orders hooks, checks them against the kernel's rules and chooses how each gets into its entrypoint. Neither the collection nor the
// hooks are changed. The error joins a [*HookError] for everything that is wrong and a [*CycleError] for each cycle.
func NewPlan(spec *ebpf.CollectionSpec, hooks []Hook, o Options) (*Plan, error) {
	p := &Plan{spec: spec, options: o}
	var errs []error
	byEntry := map[string][]Hook{}
	for i := range hooks {
		if err := check(spec, &hooks[i], byEntry[hooks[i].Entrypoint]); err != nil {
			errs = append(errs, err)
			continue
		}
		byEntry[hooks[i].Entrypoint] = append(byEntry[hooks[i].Entrypoint], hooks[i].clone())
	}
	for _, name := range slices.Sorted(maps.Keys(byEntry)) {
		e, ignored, err := planEntrypoint(spec, name, byEntry[name])
		errs = append(errs, err)
		p.entrypoints = append(p.entrypoints, e)
		p.ignored = append(p.ignored, ignored...)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("plan hooks: %w", err)
	}
	return p, nil
}

// Build returns the instrumented collection.
func (p *Plan) Build() (*ebpf.CollectionSpec, error) {
	return p.spec.Copy(), nil
}

// Ignored returns the constraints that have no effect because they name owners or hooks that are not there.
func (p *Plan) Ignored() []Constraint { return slices.Clone(p.ignored) }

func planEntrypoint(spec *ebpf.CollectionSpec, name string, hooks []Hook) (*entrypoint, []Constraint, error) {
	e := &entrypoint{name: name, program: spec.Programs[name]}
	e.typ, _ = typeOf(e.program)
	var ignored []Constraint
	var errs []error
	for _, kind := range []Kind{Pre, Post, Observer} {
		ofKind := slices.DeleteFunc(slices.Clone(hooks), func(h Hook) bool { return h.Kind != kind })
		sorted, without, cycles := order(ofKind)
		errs = append(errs, cycles...)
		ignored = append(ignored, without...)
		for _, h := range sorted {
			e.hooks = append(e.hooks, &plannedHook{Hook: h})
		}
	}
	return e, ignored, errors.Join(errs...)
}

// check looks at one hook alone.
func check(spec *ebpf.CollectionSpec, h *Hook, others []Hook) error {
	fail := func(reason, fix string) error {
		return &HookError{Entrypoint: h.Entrypoint, Owner: h.Owner, Hook: h.Name, Reason: reason, Fix: fix}
	}
	program := spec.Programs[h.Entrypoint]
	switch {
	case h.Owner == "" || h.Name == "":
		return fail("it lacks an owner or a name", "set Owner and Name")
	case strings.Contains(h.Owner, "/"):
		return fail("its owner holds a slash, which separates owner and name in constraints", "name the owner without one")
	case program == nil:
		return fail("the collection has no such program", "choose one of "+cmp.Or(strings.Join(slices.Sorted(maps.Keys(spec.Programs)), ", "), "those in the collection, which has none"))
	case slices.ContainsFunc(others, func(o Hook) bool { return o.ID() == h.ID() }):
		return fail("another hook has the same owner and name", "give each its own name")
	case h.Kind < Pre || h.Kind > Observer:
		return fail("it has no kind", "set Kind to Pre, Post or Observer")
	}
	if _, ok := typeOf(program); !ok {
		return fail(fmt.Sprintf("there are no dispatchers for programs of type %s and attach type %s", program.Type, program.AttachType),
			"hook an XDP, TC, cgroup_skb, cgroup sock or sock_addr, sock_ops or sk_lookup program")
	}
	return nil
}
