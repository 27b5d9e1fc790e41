package datapath_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/datapath"
	"github.com/cnikit/cnikit/datapath/datapathtest"
	"github.com/cnikit/cnikit/internal/testenv"
)

// scripted is a hook that writes down that it ran, and what verdict it saw.
type scripted struct {
	name    string // a letter
	kind    datapath.Kind
	returns int32
	proceed []int32
	always  bool // AfterTermination
}

// verdictCase is a chain around an original. A trace of "a" means that hook a ran, of "a(2)" that it saw the verdict 2, of "*" that the original ran.
type verdictCase struct {
	name     string
	original int32
	hooks    []scripted
	verdict  int32
	trace    string
}

// openCases are about types that return what they like, and proceed with -1.
func openCases() []verdictCase {
	return []verdictCase{
		{"no hook ends the run", 2, []scripted{{"a", datapath.Pre, -1, nil, false}, {"b", datapath.Pre, -1, nil, false}, {"c", datapath.Post, -1, nil, false}, {"d", datapath.Post, -1, nil, false}}, 2, "a b * c(2) d(2)"},
		{"a pre hook ends the run", 2, []scripted{{"a", datapath.Pre, -1, nil, false}, {"b", datapath.Pre, 1, nil, false}, {"c", datapath.Pre, -1, nil, false}}, 1, "a b"},
		{"and post hooks do not run", 2, []scripted{{"a", datapath.Pre, 1, nil, false}, {"b", datapath.Post, 0, nil, false}}, 1, "a"},
		{"but observers do, and see its verdict", 2, []scripted{{"a", datapath.Pre, 1, nil, false}, {"b", datapath.Post, 0, nil, false}, {"c", datapath.Observer, 5, nil, false}}, 1, "a c(1)"},
		{"and post hooks that ask for it", 2, []scripted{{"a", datapath.Pre, 1, nil, false}, {"b", datapath.Post, 4, nil, true}, {"c", datapath.Observer, 5, nil, false}}, 4, "a b(1) c(4)"},
		{"of them only those", 2, []scripted{{"a", datapath.Pre, 1, nil, false}, {"b", datapath.Post, -1, nil, true}, {"c", datapath.Post, 4, nil, false}, {"d", datapath.Post, -1, nil, true}}, 1, "a b(1) d(1)"},
		{"all of them otherwise", 2, []scripted{{"a", datapath.Pre, -1, nil, false}, {"b", datapath.Post, -1, nil, true}, {"c", datapath.Post, -1, nil, false}, {"d", datapath.Post, 3, nil, true}}, 3, "a * b(2) c(2) d(2)"},
		{"a post hook overrides and later ones do not run", 2, []scripted{{"b", datapath.Post, 4, nil, false}, {"c", datapath.Post, 3, nil, false}}, 4, "* b(2)"},
		{"observers see what it made", 2, []scripted{{"b", datapath.Post, 4, nil, false}, {"c", datapath.Post, 3, nil, false}, {"d", datapath.Observer, 0, nil, false}, {"e", datapath.Observer, 1, nil, false}}, 4, "* b(2) d(4) e(4)"},
		{"observers change nothing", 2, []scripted{{"d", datapath.Observer, 0, nil, false}}, 2, "* d(2)"},
		{"a mask of one", 2, []scripted{{"a", datapath.Pre, 2, []int32{2}, false}, {"b", datapath.Pre, -1, []int32{2}, false}}, -1, "a b"},
		{"a mask of several", 2, []scripted{{"a", datapath.Pre, 3, []int32{-1, 2, 3}, false}, {"b", datapath.Pre, -1, []int32{3, -1}, false}, {"c", datapath.Post, 0, []int32{0, 1}, false}, {"d", datapath.Post, 2, []int32{0, 1}, false}, {"e", datapath.Post, 1, nil, false}}, 2, "a b * c(2) d(2)"},
		{"the original's own -1", -1, []scripted{{"a", datapath.Pre, -1, nil, false}, {"c", datapath.Post, -1, nil, false}, {"d", datapath.Observer, 0, nil, false}}, -1, "a * c(-1) d(-1)"},
		{"a verdict that nobody knows", 77, []scripted{{"a", datapath.Post, -1, nil, false}, {"b", datapath.Observer, 0, nil, false}}, 77, "* a(77) b(77)"},
	}
}

// rangedCases are about types that return 0 or 1, and proceed with 1, or, as linked hooks can, with -1.
func rangedCases() []verdictCase {
	return []verdictCase{
		{"no hook ends the run", 1, []scripted{{"a", datapath.Pre, 1, nil, false}, {"b", datapath.Pre, -1, nil, false}, {"c", datapath.Post, 1, nil, false}, {"d", datapath.Post, -1, nil, false}}, 1, "a b * c(1) d(1)"},
		{"a denial stands", 0, []scripted{{"a", datapath.Pre, 1, nil, false}, {"c", datapath.Post, 1, nil, false}, {"d", datapath.Post, -1, nil, false}}, 0, "a * c(0) d(0)"},
		{"a pre hook denies", 1, []scripted{{"a", datapath.Pre, 0, nil, false}, {"b", datapath.Post, 1, nil, false}, {"c", datapath.Observer, 1, nil, false}}, 0, "a c(0)"},
		{"a pre hook allows and ends the run", 0, []scripted{{"a", datapath.Pre, 1, []int32{-1}, false}, {"b", datapath.Post, 1, nil, false}, {"c", datapath.Observer, 1, nil, false}}, 1, "a c(1)"},
		{"a post hook denies", 1, []scripted{{"b", datapath.Post, 0, nil, false}, {"c", datapath.Post, 1, nil, false}, {"d", datapath.Observer, 1, nil, false}}, 0, "* b(1) d(0)"},
		{"a post hook allows what was denied", 0, []scripted{{"b", datapath.Post, 1, []int32{-1}, false}, {"d", datapath.Observer, 1, nil, false}}, 1, "* b(0) d(1)"},
		{"what is out of range denies", 1, []scripted{{"a", datapath.Pre, 77, nil, false}, {"d", datapath.Observer, 1, nil, false}}, 0, "a d(0)"},
		{"in the middle too", 1, []scripted{{"a", datapath.Post, -77, nil, false}, {"d", datapath.Observer, 1, nil, false}}, 0, "* a(1) d(0)"},
		{"observers return what they like", 1, []scripted{{"d", datapath.Observer, 77, nil, false}}, 1, "* d(1)"},
		{"only pre hooks", 1, []scripted{{"a", datapath.Pre, 1, nil, false}, {"b", datapath.Pre, 99, nil, false}}, 0, "a b"},
		{"after the end", 1, []scripted{{"a", datapath.Pre, 0, nil, false}, {"b", datapath.Post, -1, nil, true}, {"c", datapath.Post, 1, []int32{-1}, false}, {"d", datapath.Post, 1, []int32{-1}, true}}, 1, "a b(0) d(0)"},
	}
}

func TestVerdicts(t *testing.T) {
	testenv.BPF(t)
	for _, k := range runnable() {
		cases := openCases()
		if len(k.proceed) > 1 {
			cases = rangedCases()
		}
		for _, tc := range cases {
			t.Run(k.name+"/"+tc.name, func(t *testing.T) {
				for _, composition := range []datapath.Composition{datapath.Pasted, datapath.Called} {
					for _, o := range []datapath.Options{{}, {CallOriginal: true}, {Counters: true}, {Counters: true, CallOriginal: true}} {
						for _, greedy := range []bool{false, true} {
							name := fmt.Sprintf("%v counted %v original called %v greedy %v", composition, o.Counters, o.CallOriginal, greedy)
							t.Run(name, func(t *testing.T) { tc.run(t, k, composition, o, greedy) })
						}
					}
				}
			})
		}
	}
}

// spend uses all registers that survive calls, and stack, so that pasted code leaves nothing to its surroundings.
func spend() asm.Instructions {
	insns := asm.Instructions{asm.StoreImm(asm.RFP, -8, 99, asm.Word), asm.StoreImm(asm.RFP, -64, 99, asm.Word)}
	for r := asm.R6; r <= asm.R9; r++ {
		insns = append(insns, asm.Mov.Imm(r, 99))
	}
	return insns
}

func (tc *verdictCase) run(t *testing.T, k kind, composition datapath.Composition, o datapath.Options, greedy bool) {
	trace := datapathtest.NewTrace(t)
	spec := k.spec(append(trace.Record('*'), asm.Mov.Imm(asm.R0, tc.original), asm.Return()))
	var hooks []datapath.Hook
	for i, s := range tc.hooks {
		hooks = append(hooks, datapath.Hook{
			Owner: "test", Name: s.name, Entrypoint: "entry", Kind: s.kind, Priority: i, Collection: s.collection(k, trace), Program: "entry",
			Composition: composition, Proceed: s.proceed, AfterTermination: s.always,
		})
	}
	if greedy {
		programs := []*ebpf.ProgramSpec{spec.Programs["entry"]}
		for _, h := range hooks {
			programs = append(programs, h.Collection.Programs["entry"])
		}
		for _, p := range programs {
			p.Instructions = append(spend(), p.Instructions...)
		}
	}
	plan, err := datapath.NewPlan(spec, hooks, o)
	require.NoError(t, err)
	collection := datapathtest.Load(t, plan.Build())
	assert.Equal(t, tc.verdict, k.run(t, collection.Programs["entry"]))
	got := tc.read(trace.Take(t))
	assert.Equal(t, tc.trace, got)
	if o.Counters {
		tc.checkCounters(t, plan, collection, k.proceed)
	}
}

// collection returns a hook's code.
func (s *scripted) collection(k kind, trace *datapathtest.Trace) *ebpf.CollectionSpec {
	return k.spec(link{kind: s.kind, returns: s.returns}.code(trace, int32(s.name[0])))
}

// read renders a trace.
func (tc *verdictCase) read(ids []int32) string {
	text := ""
	for i := 0; i < len(ids); i++ {
		if i > 0 {
			text += " "
		}
		text += string(ids[i])
		for _, s := range tc.hooks {
			if int32(s.name[0]) == ids[i] && s.kind != datapath.Pre && i+1 < len(ids) {
				i++
				text += fmt.Sprintf("(%d)", ids[i])
				break
			}
		}
	}
	return text
}

// checkCounters derives from the trace what hooks must have been counted for: of the hooks that ran, those that returned no
// verdict to proceed with ended something.
func (tc *verdictCase) checkCounters(t *testing.T, plan *datapath.Plan, collection *ebpf.Collection, proceed []int32) {
	counters, err := plan.ReadCounters(collection.Maps[datapath.CountersMap])
	require.NoError(t, err)
	var want []datapath.HookCounters
	for _, s := range tc.hooks {
		c := datapath.HookCounters{Entrypoint: "entry", Owner: "test", Hook: s.name, Verdicts: map[int32]uint64{}}
		goesOn := proceed
		if len(s.proceed) > 0 {
			goesOn = s.proceed
		}
		if strings.Contains(tc.trace, s.name) {
			c.Runs = 1
			if s.kind != datapath.Observer && !slices.Contains(goesOn, s.returns) {
				c.Terminations = 1
			}
			if s.returns < -1 || s.returns > 9 {
				c.Others = 1
			} else {
				c.Verdicts[s.returns] = 1
			}
		}
		want = append(want, c)
	}
	assert.Equal(t, want, counters)
}

// Verdicts in Proceed take the place of the default: -1 ends the run then, unless it is among them.
func TestProceedReplacesTheDefault(t *testing.T) {
	testenv.BPF(t)
	for _, tc := range []struct {
		proceed []int32
		want    int32
	}{{nil, 3}, {[]int32{2}, -1}, {[]int32{-1, 2}, 3}} {
		h := hook(datapath.Pre, "a", program(ebpf.XDP, 0, -1))
		h.Proceed = tc.proceed
		plan, err := datapath.NewPlan(program(ebpf.XDP, 0, 3), []datapath.Hook{h}, datapath.Options{})
		require.NoError(t, err)
		assert.Equal(t, tc.want, datapathtest.Run(t, datapathtest.Load(t, plan.Build()).Programs["entry"], make([]byte, 60)).Verdict, "%v", tc.proceed)
	}
}
