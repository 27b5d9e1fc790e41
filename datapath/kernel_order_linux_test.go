package datapath_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/datapath"
	"github.com/cnikit/cnikit/datapath/datapathtest"
	"github.com/cnikit/cnikit/internal/testenv"
)

// Hooks run in the order of their priorities, those of one priority in that of their names, more of them than other dispatchers have room for; and a program is the same
// however its hooks were listed.
func TestOrderOfExecution(t *testing.T) {
	testenv.BPF(t)
	k := runnable()[0]
	tests := map[string]func(i int) link{
		"ten priorities":        func(i int) link { return link{name: fmt.Sprintf("%d", 9-i), priority: 10*i - 50} },
		"one priority, by name": func(i int) link { return link{name: fmt.Sprintf("%03d", i)} },
		"constraints against priorities": func(i int) link {
			return link{name: fmt.Sprintf("%03d", i), priority: -i, before: []string{fmt.Sprintf("test/%03d", i+1)}}
		},
	}
	for name, make := range tests {
		for _, hooks := range []int{10, 11, 34, 100} {
			if name == "ten priorities" && hooks > 10 {
				continue
			}
			t.Run(fmt.Sprintf("%s, %d hooks", name, hooks), func(t *testing.T) {
				c := chain{kind: k, original: k.pass}
				for i := range hooks {
					l := make(i)
					l.kind, l.returns = datapath.Pre, k.proceed[0]
					c.links = append(c.links, l)
				}
				c.check(t, datapath.Auto, datapath.Options{})
				c.check(t, datapath.Called, datapath.Options{})
			})
		}
	}
}

// The same hooks make the same program, whatever the order in which they are given.
func TestProgramsDoNotDependOnTheListing(t *testing.T) {
	testenv.BPF(t)
	k := runnable()[0]
	trace := datapathtest.NewTrace(t)
	c := chain{kind: k, original: k.pass, links: []link{
		preLink("a", -1), preLink("b", -1), preLink("c", -1), postLink("d", -1), postLink("e", -1), observerLink("f"), observerLink("g"),
	}}
	hooks := c.hooks(trace, datapath.Auto)
	entry := c.entry(trace)
	var first, printed string
	for seed := range 20 {
		rand.New(rand.NewPCG(uint64(seed), 5)).Shuffle(len(hooks), func(i, j int) { hooks[i], hooks[j] = hooks[j], hooks[i] })
		plan, err := datapath.NewPlan(entry, hooks, datapath.Options{})
		require.NoError(t, err)
		program := fmt.Sprint(plan.Build().Programs["entry"].Instructions)
		if seed == 0 {
			first, printed = program, plan.String()
		}
		assert.Equal(t, first, program)
		assert.Equal(t, printed, plan.String())
	}
}

// Every verdict with every kind of Proceed: a hook lets the run go on exactly when it returns one of them.
func TestProceed(t *testing.T) {
	testenv.BPF(t)
	for _, k := range runnable()[:3] {
		if k.name == "XDP with attach type" {
			continue
		}
		t.Run(k.name, func(t *testing.T) {
			for _, proceed := range [][]int32{{-1}, {0}, {2}, {0, 1, 2, 3}, {-1, 7, 31}, {4, 3}, {-5}} {
				for verdict := int32(-2); verdict <= 8; verdict++ {
					c := chain{kind: k, original: k.other, links: []link{
						{name: "a", kind: datapath.Pre, returns: verdict, proceed: proceed}, preLink("b", -1),
						{name: "c", kind: datapath.Post, returns: verdict, proceed: proceed}, postLink("d", -1),
					}}
					c.check(t, datapath.Auto, datapath.Options{})
				}
			}
		})
	}
}

// Names of owners and hooks are any text: none becomes a name in the kernel, where letters and digits alone are safe.
func TestNamesAreAnyText(t *testing.T) {
	testenv.BPF(t)
	k := runnable()[0]
	code := k.spec(asm.Instructions{asm.Mov.Imm(asm.R0, -1), asm.Return()})
	var hooks []datapath.Hook
	for _, name := range []string{"cilium-agent", "dots.in.it", "dp_pre_0", "entry", "a b", "äöü", "日本", "'\"\\%s\n", "0", fmt.Sprintf("%300d", 1)} {
		for _, composition := range []datapath.Composition{datapath.Pasted, datapath.Called} {
			hooks = append(hooks, datapath.Hook{
				Owner: name, Name: name + composition.String(), Entrypoint: "entry", Kind: datapath.Pre, Collection: code.Copy(), Program: "entry", Composition: composition,
			})
		}
	}
	plan, err := datapath.NewPlan(k.spec(asm.Instructions{asm.Mov.Imm(asm.R0, 2), asm.Return()}), hooks, datapath.Options{})
	require.NoError(t, err)
	collection := datapathtest.Load(t, plan.Build())
	assert.Equal(t, int32(2), k.run(t, collection.Programs["entry"]))
	assert.Contains(t, plan.String(), "cilium-agent/cilium-agentpasted")
}

// hasFrags is BPF_F_XDP_HAS_FRAGS.
const hasFrags = 1 << 5

// An entrypoint for packets in several fragments takes only hooks for such packets, and gets them; one that is not takes all hooks.
func TestFrags(t *testing.T) {
	testenv.BPF(t)
	k := runnable()[0]
	program := func(flags uint32, verdict int32) *ebpf.CollectionSpec {
		spec := k.spec(asm.Instructions{asm.Mov.Imm(asm.R0, verdict), asm.Return()})
		spec.Programs["entry"].Flags = flags
		return spec
	}
	large := make([]byte, 9000) // does not fit a page
	for _, composition := range []datapath.Composition{datapath.Pasted, datapath.Called} {
		build := func(entry, hook uint32) (*datapath.Plan, error) {
			return datapath.NewPlan(program(entry, 2), []datapath.Hook{
				{Owner: "o", Name: "frags", Entrypoint: "entry", Kind: datapath.Post, Collection: program(hook, 3), Program: "entry", Composition: composition},
			}, datapath.Options{})
		}
		t.Run(composition.String(), func(t *testing.T) {
			_, err := build(hasFrags, 0)
			requireHookErrors(t, err)
			assert.ErrorContains(t, err, "o/frags")
			plan, err := build(hasFrags, hasFrags)
			require.NoError(t, err)
			built := plan.Build()
			assert.NotZero(t, built.Programs["entry"].Flags&hasFrags)
			assert.Equal(t, int32(3), datapathtest.Run(t, datapathtest.Load(t, built).Programs["entry"], large).Verdict)
			for _, hook := range []uint32{0, hasFrags} {
				plan, err = build(0, hook)
				require.NoError(t, err)
				built := plan.Build()
				assert.Zero(t, built.Programs["entry"].Flags&hasFrags, "the entrypoint's flags are its own")
				assert.Equal(t, int32(3), k.run(t, datapathtest.Load(t, built).Programs["entry"]))
			}
		})
	}
}

// A program that others tail-call, which the kernel extends with nothing, has hooks like any other, and so has the one that calls it.
func TestHooksOfTailCalledPrograms(t *testing.T) {
	testenv.BPF(t)
	for _, k := range runnable() {
		t.Run(k.name, func(t *testing.T) {
			ways(t, func(t *testing.T, composition datapath.Composition, o datapath.Options) {
				trace := datapathtest.NewTrace(t)
				spec := k.spec(append(append(asm.Instructions{asm.Mov.Reg(asm.R6, asm.R1)}, trace.Record(100)...),
					asm.Mov.Reg(asm.R1, asm.R6), asm.LoadMapPtr(asm.R2, 0).WithReference("jump"), asm.Mov.Imm(asm.R3, 1), asm.FnTailCall.Call(),
					asm.Mov.Imm(asm.R0, k.stop), asm.Return()))
				leaf := spec.Programs["entry"].Copy()
				leaf.Name, leaf.Instructions = "leaf", append(trace.Record(200), asm.Mov.Imm(asm.R0, k.pass), asm.Return())
				spec.Programs["leaf"] = leaf
				spec.Maps = map[string]*ebpf.MapSpec{"jump": {
					Name: "jump", Type: ebpf.ProgramArray, KeySize: 4, ValueSize: 4, MaxEntries: 2, Contents: []ebpf.MapKV{{Key: uint32(1), Value: "leaf"}},
				}}
				hook := func(entry string, id int32, l link) datapath.Hook {
					return datapath.Hook{
						Owner: "o", Name: l.name, Entrypoint: entry, Kind: l.kind, Collection: k.spec(l.code(trace, id)), Program: "entry", Composition: composition,
					}
				}
				plan, err := datapath.NewPlan(spec, []datapath.Hook{
					hook("entry", 1, preLink("a", k.proceed[0])), hook("entry", 2, postLink("b", k.stop)),
					hook("leaf", 3, preLink("a", k.proceed[0])), hook("leaf", 4, observerLink("b")),
				}, o)
				require.NoError(t, err)
				collection := datapathtest.Load(t, plan.Build())
				assert.Equal(t, k.stop, k.run(t, collection.Programs["entry"]))
				assert.Equal(t, []int32{1, 100, 3, 200, 4, k.pass, 2, k.pass}, trace.Take(t))
			})
		})
	}
}
