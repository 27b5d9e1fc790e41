package datapath_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/datapath"
	"github.com/cnikit/cnikit/datapath/datapathtest"
	"github.com/cnikit/cnikit/internal/testenv"
)

// kind is a type of programs, as the tests use it.
type kind struct {
	name                string
	program             ebpf.ProgramType
	attach              ebpf.AttachType
	proceed             []int32 // by default
	low, high, replaced int32   // the range of verdicts, and what another one becomes
	pass, stop, other   int32   // verdicts that let through, end the run, and stand for neither
	run                 runner  // runs a program once; nil for types without test run
}

// runner runs a program on something that it accepts, and returns the verdict.
type runner func(t *testing.T, p *ebpf.Program) int32

func onPacket(t *testing.T, p *ebpf.Program) int32 {
	t.Helper()
	return datapathtest.Run(t, p, somePacket()).Verdict
}

func onLookup(t *testing.T, p *ebpf.Program) int32 {
	t.Helper()
	return datapathtest.RunContext(t, p, datapathtest.LookupContext{Family: 2, Protocol: 6}).Verdict
}

const anything = 1<<31 - 1 // the range of types without one

// runnable are the kinds that have test runs.
func runnable() []kind {
	xdp := kind{name: "XDP", program: ebpf.XDP, proceed: []int32{-1}, low: -anything - 1, high: anything, pass: 2, stop: 1, other: 3, run: onPacket}
	tc := kind{name: "TC", program: ebpf.SchedCLS, proceed: []int32{-1}, low: -anything - 1, high: anything, pass: 0, stop: 2, other: 7, run: onPacket}
	yesno := kind{proceed: []int32{1, -1}, low: 0, high: 1, pass: 1, stop: 0, other: 0}
	with := func(k kind, name string, program ebpf.ProgramType, attach ebpf.AttachType, run runner) kind {
		k.name, k.program, k.attach, k.run = name, program, attach, run
		return k
	}
	egress := with(yesno, "cgroup_skb egress", ebpf.CGroupSKB, ebpf.AttachCGroupInetEgress, onPacket)
	egress.high, egress.other = 3, 2
	return []kind{
		xdp, with(xdp, "XDP with attach type", ebpf.XDP, ebpf.AttachXDP, onPacket),
		tc, with(tc, "TC action", ebpf.SchedACT, 0, onPacket),
		with(tc, "TCX ingress", ebpf.SchedCLS, ebpf.AttachTCXIngress, onPacket), with(tc, "TCX egress", ebpf.SchedCLS, ebpf.AttachTCXEgress, onPacket),
		with(yesno, "cgroup_skb ingress", ebpf.CGroupSKB, ebpf.AttachCGroupInetIngress, onPacket), egress,
		with(yesno, "sk_lookup", ebpf.SkLookup, ebpf.AttachSkLookup, onLookup),
	}
}

func somePacket() []byte {
	return datapathtest.Packet(datapathtest.Ethernet{}, datapathtest.IPv4{Src: netip.MustParseAddr("192.0.2.1"), Dst: netip.MustParseAddr("192.0.2.2")}, datapathtest.UDP{Src: 1000, Dst: 53}, datapathtest.Payload("some forty bytes that nobody will look at"))
}

// spec is a collection with one program, named "entry".
func (k kind) spec(insns asm.Instructions) *ebpf.CollectionSpec {
	return &ebpf.CollectionSpec{Programs: map[string]*ebpf.ProgramSpec{"entry": {
		Name: "entry", Type: k.program, AttachType: k.attach, License: "MIT", Instructions: insns,
	}}}
}

func (k kind) clamp(v int32) int32 {
	if v < k.low || v > k.high {
		return k.replaced
	}
	return v
}

// link is a hook of a chain: what it is, and what it returns.
type link struct {
	name     string
	kind     datapath.Kind
	returns  int32
	keeps    bool    // returns the verdict that it is given
	proceed  []int32 // nil: by default
	after    bool    // AfterTermination
	priority int
	before   []string
}

func preLink(name string, returns int32) link {
	return link{name: name, kind: datapath.Pre, returns: returns}
}
func postLink(name string, returns int32) link {
	return link{name: name, kind: datapath.Post, returns: returns}
}
func observerLink(name string) link { return link{name: name, kind: datapath.Observer, returns: 77} }

// originalID is what the original records; a hook records its place in the chain, and after it the verdict that it is given.
const originalID = 1000

// code of the hook: it records and returns.
func (l link) code(trace *datapathtest.Trace, id int32) asm.Instructions {
	insns := trace.Record(id)
	if l.kind != datapath.Pre {
		insns = append(insns, trace.RecordRegister(asm.R2)...)
	}
	if l.keeps {
		return append(insns, asm.Mov.Reg(asm.R0, asm.R2), asm.Return())
	}
	return append(insns, asm.Mov.Imm(asm.R0, l.returns), asm.Return())
}

// chain is an entrypoint with hooks in the order in which they are expected to run.
type chain struct {
	kind     kind
	original int32
	links    []link
}

// hooks are the chain's, as the builder takes them, in another order.
func (c chain) hooks(trace *datapathtest.Trace, composition datapath.Composition) []datapath.Hook {
	var hooks []datapath.Hook
	for i, l := range c.links {
		hooks = append(hooks, datapath.Hook{
			Owner: "test", Name: l.name, Entrypoint: "entry", Kind: l.kind, Priority: l.priority, Before: l.before,
			Collection: c.kind.spec(l.code(trace, int32(i))), Program: "entry", Composition: composition, Proceed: l.proceed, AfterTermination: l.after,
		})
	}
	rand.New(rand.NewPCG(1, uint64(len(hooks)))).Shuffle(len(hooks), func(i, j int) { hooks[i], hooks[j] = hooks[j], hooks[i] })
	return hooks
}

// expect is what a run of the chain records and returns.
func (c chain) expect() (trace []int32, verdict int32) {
	original := func() int32 {
		trace = append(trace, originalID)
		return c.original
	}
	var rules []rule
	for i, l := range c.links {
		rules = append(rules, rule{l.kind, l.proceed, l.after, func(given int32) int32 {
			trace = append(trace, int32(i))
			if l.kind != datapath.Pre {
				trace = append(trace, given)
			}
			if l.keeps {
				return given
			}
			return l.returns
		}})
	}
	verdict = c.kind.outcome(original, rules)
	return trace, verdict
}

// rule is a hook as the rules of the package see it.
type rule struct {
	kind    datapath.Kind
	proceed []int32 // nil: by default
	after   bool
	run     func(verdict int32) int32
}

// outcome is the verdict of hooks, in the order in which they run, and an original, by the rules of the package.
func (k kind) outcome(original func() int32, rules []rule) int32 {
	var verdict int32
	ended, overridden := false, false
	for _, kind := range []datapath.Kind{datapath.Pre, 0, datapath.Post, datapath.Observer} {
		if kind == 0 && !ended {
			verdict = k.clamp(original())
		}
		for _, r := range rules {
			if r.kind != kind || kind == datapath.Pre && ended || kind == datapath.Post && (overridden || ended && !r.after) {
				continue
			}
			got, proceed := r.run(verdict), r.proceed
			if proceed == nil {
				proceed = k.proceed
			}
			if kind == datapath.Observer || slices.Contains(proceed, got) {
				continue
			}
			verdict = k.clamp(got)
			ended, overridden = ended || kind == datapath.Pre, kind == datapath.Post
		}
	}
	return verdict
}

// check builds, loads and runs the chain, and compares what happens with what is expected.
func (c chain) check(t *testing.T, composition datapath.Composition, o datapath.Options) {
	t.Helper()
	trace := datapathtest.NewTrace(t)
	c.compare(t, trace, c.load(t, trace, composition, o))
}

// compare runs the loaded chain and compares what happens with what is expected.
func (c chain) compare(t *testing.T, trace *datapathtest.Trace, program *ebpf.Program) {
	t.Helper()
	want, verdict := c.expect()
	for range 2 {
		assert.Equal(t, verdict, c.kind.run(t, program), "verdict")
		assert.Equal(t, want, trace.Take(t), "who ran, and what post hooks were told")
	}
}

// entry is the original without hooks.
func (c chain) entry(trace *datapathtest.Trace) *ebpf.CollectionSpec {
	return c.kind.spec(append(trace.Record(originalID), asm.Mov.Imm(asm.R0, c.original), asm.Return()))
}

// load builds and loads the chain, and returns its entrypoint.
func (c chain) load(t *testing.T, trace *datapathtest.Trace, composition datapath.Composition, o datapath.Options) *ebpf.Program {
	t.Helper()
	plan, err := datapath.NewPlan(c.entry(trace), c.hooks(trace, composition), o)
	require.NoError(t, err)
	return datapathtest.Load(t, plan.Build()).Programs["entry"]
}

// ways are the compositions of linked hooks, each with the original pasted and called.
func ways(t *testing.T, f func(t *testing.T, composition datapath.Composition, o datapath.Options)) {
	for _, composition := range []datapath.Composition{datapath.Auto, datapath.Pasted, datapath.Called} {
		for _, called := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, original called %v", composition, called), func(t *testing.T) {
				f(t, composition, datapath.Options{CallOriginal: called})
			})
		}
	}
}

// The cases of which dispatchers of others are tested, for every type that has test runs.
func TestDispatcher(t *testing.T) {
	testenv.BPF(t)
	for _, k := range runnable() {
		cases := map[string][]link{
			"two pre hooks":                       {preLink("a", k.proceed[0]), preLink("b", k.proceed[0])},
			"two post hooks":                      {postLink("a", k.proceed[0]), postLink("b", k.proceed[0])},
			"two of each":                         {preLink("a", k.proceed[0]), preLink("b", k.proceed[0]), postLink("c", k.proceed[0]), postLink("d", k.proceed[0])},
			"the first pre hook ends":             {preLink("a", k.stop), preLink("b", k.proceed[0]), postLink("c", k.stop)},
			"the last pre hook ends":              {preLink("a", k.proceed[0]), preLink("b", k.stop), postLink("c", k.stop)},
			"the first post hook overrides":       {preLink("a", k.proceed[0]), postLink("b", k.stop), postLink("c", k.other)},
			"the last post hook overrides":        {postLink("b", k.proceed[0]), postLink("c", k.other)},
			"observers see what a pre hook said":  {preLink("a", k.stop), postLink("b", k.proceed[0]), observerLink("c"), observerLink("d")},
			"observers see what a post hook said": {postLink("a", k.other), postLink("b", k.proceed[0]), observerLink("c"), observerLink("d")},
			"only observers":                      {observerLink("a"), observerLink("b")},
			"post hooks after termination": {
				preLink("a", k.stop), postLink("b", k.proceed[0]), {name: "c", kind: datapath.Post, returns: k.proceed[0], after: true},
				postLink("d", k.other), {name: "e", kind: datapath.Post, returns: k.pass, after: true, proceed: []int32{k.stop}}, observerLink("f"),
			},
		}
		t.Run(k.name, func(t *testing.T) {
			for name, links := range cases {
				t.Run(name, func(t *testing.T) {
					ways(t, func(t *testing.T, composition datapath.Composition, o datapath.Options) {
						chain{kind: k, original: k.pass, links: links}.check(t, composition, o)
					})
				})
			}
		})
	}
}

// Chains at random, of each type, with and without counters, do what the rules say.
func TestRandomChains(t *testing.T) {
	testenv.BPF(t)
	for _, k := range runnable() {
		t.Run(k.name, func(t *testing.T) {
			for seed := range testenv.Scale(t, 15) {
				rng := rand.New(rand.NewPCG(uint64(seed), 3))
				c := chain{kind: k, original: []int32{k.pass, k.stop, k.other}[rng.IntN(3)], links: randomLinks(rng, k)}
				composition := datapath.Composition(rng.IntN(3))
				o := datapath.Options{Counters: rng.IntN(2) == 0, CallOriginal: rng.IntN(2) == 0}
				t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { c.check(t, composition, o) })
			}
		})
	}
}

// randomLinks makes hooks in the order in which they run: by kind, then by priority.
func randomLinks(rng *rand.Rand, k kind) []link {
	var links []link
	verdicts := append([]int32{k.pass, k.stop, k.other, 77, -2}, k.proceed...)
	for _, of := range []datapath.Kind{datapath.Pre, datapath.Post, datapath.Observer} {
		for i := range rng.IntN(6) {
			l := link{name: fmt.Sprintf("%s %d", of, 9-i), kind: of, priority: i - 3, returns: k.proceed[0]}
			if rng.IntN(3) == 0 {
				l.returns = verdicts[rng.IntN(len(verdicts))]
			}
			if of != datapath.Observer && rng.IntN(4) == 0 {
				l.proceed = []int32{l.returns, verdicts[rng.IntN(len(verdicts))]}
			}
			l.keeps = of == datapath.Post && rng.IntN(4) == 0
			l.after = of == datapath.Post && rng.IntN(2) == 0
			links = append(links, l)
		}
	}
	return links
}
