package datapath

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
)

// Plan says how the entrypoints of a collection are instrumented. It does not change, and may be used by
// several goroutines.
type Plan struct {
	linked      *ebpf.CollectionSpec // the collection with its hooks
	entrypoints []*entrypoint        // by name
	ignored     []Constraint
}

// entrypoint is a program with its hooks in the order in which they run.
type entrypoint struct {
	name     string
	index    int
	program  *ebpf.ProgramSpec
	typ      programType
	hooks    []*plannedHook // pre, post, observers
	original part
	main     *btf.Func // what the program is to the kernel
	counters bool
	skips    bool // some post hooks are skipped after a pre hook ended the run, others not, so that main has to remember it

	shift int16 // bytes of main's stack that pasted code leaves alone
	frame int   // bytes of main's stack
}

// plannedHook is a hook with what was decided about it.
type plannedHook struct {
	part
	Hook
	index     int               // in the entrypoint
	maps      map[string]string // names in the instrumented collection, by those in the hook's own
	variables map[string]string
	empty     int32 // what a slot returns while it is empty
}

// NewPlan orders hooks, checks them against the kernel's rules and chooses how each gets into its entrypoint.
// The specs are read as they are now: set global variables before, or those of the collection that [Plan.Build]
// returns. Neither the collection nor the hooks are changed. The error joins a [*HookError] for everything that
// is wrong and a [*CycleError] for each cycle.
func NewPlan(spec *ebpf.CollectionSpec, hooks []Hook, o Options) (*Plan, error) {
	if spec == nil {
		return nil, errors.New("plan hooks: no collection: pass the one whose programs are to be hooked")
	}
	if entry := nilEntry(spec); entry != "" {
		return nil, fmt.Errorf("plan hooks: %s of the collection is nil: set it, or delete it from the collection", entry)
	}
	p := &Plan{linked: clone(spec)}
	byEntry, errs := sortOut(spec, hooks)
	linker := newLinker(p.linked, spec)
	for _, name := range slices.Sorted(maps.Keys(byEntry)) {
		e := newEntrypoint(p.linked, name, len(p.entrypoints), o)
		p.entrypoints = append(p.entrypoints, e)
		ignored, err := e.order(byEntry[name])
		p.ignored = append(p.ignored, ignored...)
		if err == nil {
			err = e.build(linker, o)
		}
		errs = append(errs, err)
	}
	p.leaveOut(spec)
	if o.Counters && len(p.entrypoints) > 0 {
		errs = append(errs, p.addCounters())
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("plan hooks: %w", err)
	}
	return p, nil
}

// sortOut checks what hooks say and returns the good ones by entrypoint.
func sortOut(spec *ebpf.CollectionSpec, hooks []Hook) (map[string][]Hook, []error) {
	byEntry := map[string][]Hook{}
	seen := map[[3]string]bool{}
	var errs []error
	for i := range hooks {
		h := &hooks[i]
		err := check(spec, h)
		if id := [3]string{h.Entrypoint, h.Owner, h.Name}; err == nil && seen[id] {
			err = &refusal{"has the owner and name of another hook", "give each its own name"}
		} else {
			seen[id] = true
		}
		if err != nil {
			errs = append(errs, hookError(h, err))
			continue
		}
		byEntry[h.Entrypoint] = append(byEntry[h.Entrypoint], h.clone())
	}
	return byEntry, errs
}

func newEntrypoint(spec *ebpf.CollectionSpec, name string, index int, o Options) *entrypoint {
	e := &entrypoint{name: name, index: index, program: spec.Programs[name], counters: o.Counters}
	e.typ, _ = typeOf(e.program)
	return e
}

// order sets the hooks of the entrypoint in the order in which they run.
func (e *entrypoint) order(hooks []Hook) ([]Constraint, error) {
	var ignored []Constraint
	var errs []error
	for _, kind := range []Kind{Pre, Post, Observer} {
		ofKind := slices.DeleteFunc(slices.Clone(hooks), func(h Hook) bool { return h.Kind != kind })
		sorted, without, cycles := order(ofKind)
		errs = append(errs, cycles...)
		ignored = append(ignored, without...)
		for i, h := range sorted {
			planned := &plannedHook{
				Hook: h, index: len(e.hooks),
				part: part{kind: kind, symbol: fmt.Sprintf("%s%s_%d", reserved, kind, i)},
			}
			planned.hook = planned
			e.hooks = append(e.hooks, planned)
		}
	}
	e.skips = skipsPosts(e.hooks)
	return ignored, errors.Join(errs...)
}

// reserved begins the names of generated functions and of what hooks bring.
const reserved = "dp_"

// build links the code of the entrypoint, decides how it is put together and puts it into the collection.
func (e *entrypoint) build(l *linker, o Options) error {
	if e.counters && len(e.hooks) > countersMaxHooks {
		return e.error(&refusal{fmt.Sprintf("has %d hooks, more than the %d that can be counted", len(e.hooks), countersMaxHooks), "leave Options.Counters out"})
	}
	if err := e.linkOriginal(l); err != nil {
		return e.error(err)
	}
	var errs []error
	for _, h := range e.hooks {
		if err := e.link(l, h, o); err != nil {
			errs = append(errs, hookError(&h.Hook, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := e.compose(o); err != nil {
		return err
	}
	program, err := e.instrument()
	if err == nil {
		err = checkProgram(program, e.frame, o.Features.SmallFrames)
	}
	if err != nil {
		return e.error(err)
	}
	l.out.Programs[e.name] = program
	return nil
}

func (e *entrypoint) linkOriginal(l *linker) error {
	f, err := l.original(e.program)
	if err != nil {
		return err
	}
	for _, name := range f.names {
		if strings.HasPrefix(name, reserved) {
			return &refusal{fmt.Sprintf("has the function %q, whose name is reserved for generated ones", name), "instrument the collection from which it was built, or rename the function"}
		}
	}
	e.original = part{fragment: f, symbol: reserved + "original"}
	if e.main = btf.FuncMetadata(&e.program.Instructions[0]); e.main == nil {
		name := identifier(cmp.Or(f.functions[0].name, e.program.Name, "main"))
		if name[0] >= '0' && name[0] <= '9' {
			name = "_" + name
		}
		e.main = &btf.Func{Name: name, Type: e.proto(0), Linkage: btf.GlobalFunc}
	}
	return nil
}

// link makes the hook's code part of the collection, or finds out how its slot behaves.
func (e *entrypoint) link(l *linker, h *plannedHook, o Options) error {
	if h.Collection == nil || h.Composition == Slot {
		e.setProceed(h, e.typ.proceed)
		return e.checkSlot(l.out, h, o)
	}
	e.setProceed(h, e.typ.proceed, -1)
	if err := e.checkCode(h); err != nil {
		return err
	}
	var err error
	h.fragment, h.maps, err = l.hook(e.program, h.Collection, h.Program, fmt.Sprintf("%s%d_%s_", reserved, e.index, strings.TrimPrefix(h.symbol, reserved)))
	if err == nil {
		h.variables = l.variablesOf(h.Collection, h.maps)
	}
	return err
}

// setProceed sets default verdicts.
func (e *entrypoint) setProceed(h *plannedHook, verdicts ...int32) {
	if len(h.Proceed) == 0 {
		h.Proceed = slices.Compact(verdicts)
	}
}

// addCounters adds the map that hooks are counted in.
func (p *Plan) addCounters() error {
	if p.linked.Maps[CountersMap] != nil {
		return fmt.Errorf("add counters: the collection has a map %q: rename it, or leave Options.Counters out", CountersMap)
	}
	if p.linked.Maps == nil {
		p.linked.Maps = map[string]*ebpf.MapSpec{}
	}
	p.linked.Maps[CountersMap] = p.countersSpec()
	return nil
}

// skipsPosts tells whether some post hooks, but not all after them, run after a pre hook ended the run.
func skipsPosts(hooks []*plannedHook) bool {
	after := false
	for _, h := range hooks {
		if after && h.Kind == Post && !h.AfterTermination {
			return true
		}
		after = after || h.Kind == Post && h.AfterTermination
	}
	return false
}
