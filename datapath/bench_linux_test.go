package datapath_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/datapath"
	"github.com/cnikit/cnikit/datapath/datapathtest"
	"github.com/cnikit/cnikit/internal/testenv"
)

// hookCounts are how many hooks the benchmarks run.
var hookCounts = []int{1, 4, 10, 32}

// BenchmarkDispatcher compares dispatchers of hooks that count packets with programs made by hand for the same work: one that has everything in a straight line,
// and one that calls a function for each hook. All are run in turns, and the least time of each counts.
func BenchmarkDispatcher(b *testing.B) {
	testenv.BPF(b)
	for _, k := range runnable() {
		if k.name == "XDP" || k.name == "TC" {
			b.Run(k.name, k.benchmark)
		}
	}
}

// race is what is timed together.
type race struct {
	programs map[string]*ebpf.Program
	least    map[string]float64 // nanoseconds a run
}

func newRace() *race { return &race{map[string]*ebpf.Program{}, map[string]float64{}} }

func (r *race) add(b *testing.B, name string, spec *ebpf.CollectionSpec) {
	b.Helper()
	r.programs[name] = datapathtest.Load(b, spec).Programs["entry"]
	r.least[name] = math.Inf(1)
}

// lap times each program once, by the kernel's clock: around a test run of an XDP program, it patches code for milliseconds. The figure is in whole nanoseconds.
func (r *race) lap(b *testing.B, packet []byte) {
	const runs = 20_000 // few, so that some laps are done without an interruption
	for _, name := range slices.Sorted(maps.Keys(r.programs)) {
		took := datapathtest.Time(b, r.programs[name], packet, runs)
		r.least[name] = min(r.least[name], float64(took.Nanoseconds()))
	}
}

func (r *race) over(name string) float64 { return r.least[name] - r.least["bare"] }

func (k kind) benchmark(b *testing.B) {
	ways := map[string]func(b *testing.B, hooks int) *ebpf.CollectionSpec{
		"pasted":                  k.dispatcher(datapath.Pasted, datapath.Options{}),
		"pasted, original called": k.dispatcher(datapath.Pasted, datapath.Options{CallOriginal: true}),
		"pasted, with counters":   k.dispatcher(datapath.Pasted, datapath.Options{Counters: true}),
		"called":                  k.dispatcher(datapath.Called, datapath.Options{}),
		"called, with counters":   k.dispatcher(datapath.Called, datapath.Options{Counters: true}),
		"by hand, straight":       func(_ *testing.B, hooks int) *ebpf.CollectionSpec { return k.straight(hooks) },
		"by hand, calls":          func(_ *testing.B, hooks int) *ebpf.CollectionSpec { return k.calls(hooks) },
	}
	r := newRace()
	r.add(b, "bare", k.spec(asm.Instructions{asm.Mov.Imm(asm.R0, k.pass), asm.Return()}))
	for way, build := range ways {
		for _, hooks := range hookCounts {
			r.add(b, fmt.Sprint(way, hooks), build(b, hooks))
		}
	}
	for b.Loop() {
		for range 30 {
			r.lap(b, somePacket())
		}
	}
	k.report(b, r, slices.Sorted(maps.Keys(ways)))
}

// report prints nanoseconds over the bare original, the slope of each way, and the ratios that are promised.
func (k kind) report(b *testing.B, r *race, ways []string) {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "ns over bare (%.0f)\t1\t4\t10\t32\ta hook\t\n", r.least["bare"])
	for _, way := range ways {
		fmt.Fprintf(w, "%s\t", way)
		for _, hooks := range hookCounts {
			fmt.Fprintf(w, "%.0f\t", r.over(fmt.Sprint(way, hooks)))
		}
		fmt.Fprintf(w, "%.2f\t\n", r.slope(way))
	}
	require.NoError(b, w.Flush())
	b.Logf("%s\n%s", k.name, &text)
	b.ReportMetric(r.slope("pasted"), "pasted-ns/hook")
	b.ReportMetric(r.slope("pasted, with counters")-r.slope("pasted"), "counters-ns/hook")
	b.ReportMetric(r.least["pasted32"]/r.least["by hand, straight32"], "pasted/straight")
	b.ReportMetric(r.slope("pasted")/r.slope("by hand, straight"), "pasted/straight-slopes")
	b.ReportMetric(r.least["called32"]/r.least["by hand, calls32"], "called/calls")
	b.ReportMetric(0, "ns/op") // of all laps of everything: it means nothing
}

// slope is the least-squares fit of the time over the number of hooks.
func (r *race) slope(way string) float64 {
	var n, x, y, xx, xy float64
	for _, hooks := range hookCounts {
		h, t := float64(hooks), r.least[fmt.Sprint(way, hooks)]
		n, x, y, xx, xy = n+1, x+h, y+t, xx+h*h, xy+h*t
	}
	return (n*xy - x*y) / (n*xx - x*x)
}

// countInto counts in a per-CPU map, and is what every hook does.
func countInto(name, done string) asm.Instructions {
	return asm.Instructions{
		asm.StoreImm(asm.RFP, -4, 0, asm.Word),
		asm.LoadMapPtr(asm.R1, 0).WithReference(name),
		asm.Mov.Reg(asm.R2, asm.RFP),
		asm.Add.Imm(asm.R2, -4),
		asm.FnMapLookupElem.Call(),
		asm.JEq.Imm(asm.R0, 0, done),
		asm.LoadMem(asm.R1, asm.R0, 0, asm.DWord),
		asm.Add.Imm(asm.R1, 1),
		asm.StoreMem(asm.R0, 0, asm.R1, asm.DWord),
	}
}

func addCounter(spec *ebpf.CollectionSpec, name string) {
	if spec.Maps == nil {
		spec.Maps = map[string]*ebpf.MapSpec{}
	}
	spec.Maps[name] = &ebpf.MapSpec{Name: name, Type: ebpf.PerCPUArray, KeySize: 4, ValueSize: 8, MaxEntries: 1}
}

// counting is a hook that counts.
func (k kind) counting() *ebpf.CollectionSpec {
	spec := k.spec(append(countInto("count", "done"), asm.Mov.Imm(asm.R0, k.proceed[0]).WithSymbol("done"), asm.Return()))
	addCounter(spec, "count")
	return spec
}

// dispatcher returns a builder of dispatchers with pre hooks that count.
func (k kind) dispatcher(composition datapath.Composition, o datapath.Options) func(b *testing.B, hooks int) *ebpf.CollectionSpec {
	return func(b *testing.B, hooks int) *ebpf.CollectionSpec {
		plan, err := datapath.NewPlan(k.spec(asm.Instructions{asm.Mov.Imm(asm.R0, k.pass), asm.Return()}), k.countingHooks(hooks, composition), o)
		require.NoError(b, err)
		return plan.Build()
	}
}

func (k kind) countingHooks(n int, composition datapath.Composition) []datapath.Hook {
	var hooks []datapath.Hook
	for i := range n {
		hooks = append(hooks, datapath.Hook{
			Owner: "bench", Name: fmt.Sprint(i), Entrypoint: "entry", Kind: datapath.Pre, Collection: k.counting(), Program: "entry", Composition: composition,
		})
	}
	return hooks
}

// straight is the program that somebody would write who has all hooks before him: nothing is called, and no verdict decided upon.
func (k kind) straight(hooks int) *ebpf.CollectionSpec {
	spec := k.spec(nil)
	var insns asm.Instructions
	for i := range hooks {
		name, done := fmt.Sprintf("count_%d", i), fmt.Sprintf("done_%d", i)
		addCounter(spec, name)
		code := countInto(name, done)
		if i > 0 {
			code[0] = code[0].WithSymbol(fmt.Sprintf("done_%d", i-1))
		}
		insns = append(insns, code...)
	}
	insns = append(insns, asm.Mov.Imm(asm.R0, k.pass).WithSymbol(fmt.Sprintf("done_%d", hooks-1)), asm.Return())
	insns[0] = k.function(insns[0], "entry")
	spec.Programs["entry"].Instructions = insns
	return spec
}

// function gives a function the type that compilers give it.
func (k kind) function(first asm.Instruction, name string) asm.Instruction {
	context := map[ebpf.ProgramType]string{ebpf.XDP: "xdp_md", ebpf.SchedCLS: "__sk_buff"}[k.program]
	return btf.WithFuncMetadata(first.WithSymbol(name), &btf.Func{Name: name, Linkage: btf.GlobalFunc, Type: &btf.FuncProto{
		Return: &btf.Int{Name: "int", Size: 4, Encoding: btf.Signed},
		Params: []btf.FuncParam{{Name: "ctx", Type: &btf.Pointer{Target: &btf.Struct{Name: context}}}},
	}})
}

// calls is a program that calls a global function for each hook, and looks at what it returns.
func (k kind) calls(hooks int) *ebpf.CollectionSpec {
	spec := k.spec(nil)
	main := asm.Instructions{k.function(asm.Mov.Reg(asm.R6, asm.R1), "entry")}
	var functions asm.Instructions
	for i := range hooks {
		name, done, count := fmt.Sprintf("hook_%d", i), fmt.Sprintf("done_%d", i), fmt.Sprintf("count_%d", i)
		addCounter(spec, count)
		main = append(main, asm.Mov.Reg(asm.R1, asm.R6), asm.Call.Label(name), asm.JNE.Imm32(asm.R0, k.proceed[0], "out"))
		body := append(countInto(count, done), asm.Mov.Imm(asm.R0, k.proceed[0]).WithSymbol(done), asm.Return())
		body[0] = k.function(body[0], name)
		functions = append(functions, body...)
	}
	main = append(main, asm.Mov.Imm(asm.R0, k.pass), asm.Return().WithSymbol("out"))
	spec.Programs["entry"].Instructions = append(main, functions...)
	return spec
}

// BenchmarkBuild compares planning, building and loading ten linked hooks with loading a program of the same work and the same maps, which was made by hand.
func BenchmarkBuild(b *testing.B) {
	testenv.BPF(b)
	const hooks = 10
	k := runnable()[0]
	for _, composition := range []datapath.Composition{datapath.Pasted, datapath.Called} {
		b.Run(composition.String(), func(b *testing.B) {
			hand := k.straight(hooks)
			if composition == datapath.Called {
				hand = k.calls(hooks)
			}
			build, given := k.dispatcher(composition, datapath.Options{}), k.countingHooks(hooks, composition)
			original := k.spec(asm.Instructions{asm.Mov.Imm(asm.R0, k.pass), asm.Return()})
			least := [3]time.Duration{math.MaxInt64, math.MaxInt64, math.MaxInt64}
			for b.Loop() {
				least[0] = min(least[0], timed(func() {
					plan, err := datapath.NewPlan(original, given, datapath.Options{})
					require.NoError(b, err)
					load(b, plan.Build())
				}))
				least[1] = min(least[1], timed(func() { load(b, hand) }))
				built := build(b, hooks)
				least[2] = min(least[2], timed(func() { load(b, built) }))
			}
			b.ReportMetric(float64(least[0].Microseconds()), "build+load-µs")
			b.ReportMetric(float64(least[1].Microseconds()), "by-hand-load-µs")
			b.ReportMetric(float64(least[2].Microseconds()), "load-µs")
			b.ReportMetric(float64(least[0])/float64(least[1]), "build+load/by-hand")
		})
	}
}

func load(b *testing.B, spec *ebpf.CollectionSpec) {
	collection, err := ebpf.NewCollection(spec)
	require.NoError(b, err)
	collection.Close()
}

func timed(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}
