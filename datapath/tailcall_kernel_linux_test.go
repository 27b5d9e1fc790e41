package datapath_test

import (
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

// tailCallTo returns instructions that call the program at an index of "progs", with the context in r6.
func tailCallTo(index int32) asm.Instructions {
	return asm.Instructions{
		asm.Mov.Reg(asm.R1, asm.R6), asm.LoadMapPtr(asm.R2, 0).WithReference("progs"), asm.Mov.Imm(asm.R3, index), asm.FnTailCall.Call(),
	}
}

// tailCalling returns a collection of which "entry" tail-calls in a certain way; the programs at 0 and 1 return last, the second by way of the first, and
// that at 2 calls itself until the kernel has enough.
func tailCalling(k kind, way string, falls, last int32) *ebpf.CollectionSpec {
	spec := &ebpf.CollectionSpec{Programs: map[string]*ebpf.ProgramSpec{}, Maps: map[string]*ebpf.MapSpec{"progs": {
		Name: "progs", Type: ebpf.ProgramArray, KeySize: 4, ValueSize: 4, MaxEntries: 4,
		Contents: []ebpf.MapKV{{Key: uint32(0), Value: "last"}, {Key: uint32(1), Value: "between"}, {Key: uint32(2), Value: "again"}},
	}}}
	add := func(name string, parts ...asm.Instructions) {
		spec.Programs[name] = &ebpf.ProgramSpec{Name: name, Type: k.program, AttachType: k.attach, License: "MIT", Instructions: slices.Concat(parts...)}
	}
	keep := asm.Instructions{asm.Mov.Reg(asm.R6, asm.R1)}
	returns := func(verdict int32) asm.Instructions {
		return asm.Instructions{asm.Mov.Imm(asm.R0, verdict), asm.Return()}
	}
	add("last", returns(last))
	add("between", keep, tailCallTo(0), returns(falls))
	add("again", keep, tailCallTo(2), returns(falls))
	switch way {
	case "once":
		add("entry", keep, tailCallTo(0), returns(falls))
	case "twice":
		add("entry", keep, tailCallTo(1), returns(falls))
	case "to nothing":
		add("entry", keep, tailCallTo(3), returns(falls))
	case "without end":
		add("entry", keep, tailCallTo(2), returns(falls))
	case "from a function":
		below := slices.Concat(keep, tailCallTo(0), returns(falls))
		below[0] = below[0].WithSymbol("below")
		add("entry", asm.Instructions{asm.Call.Label("below"), asm.Return()}, below)
	}
	return spec
}

// A tail call that a function makes returns to who called the function, with the verdict of the last program.
func TestTailCallsComeBack(t *testing.T) {
	testenv.BPF(t)
	for _, k := range runnable() {
		for way, comesBack := range map[string]bool{"once": true, "twice": true, "from a function": true, "to nothing": false, "without end": false} {
			t.Run(k.name+"/original "+way, func(t *testing.T) {
				trace := datapathtest.NewTrace(t)
				watch := scripted{name: "w", kind: datapath.Observer}
				post := scripted{name: "p", kind: datapath.Post, returns: k.proceed[0]}
				plan, err := datapath.NewPlan(tailCalling(k, way, k.pass, k.stop), []datapath.Hook{
					hook(datapath.Pre, "tail", tailCalling(k, way, k.proceed[0], k.proceed[0])),
					{Owner: "test", Name: "p", Entrypoint: "entry", Kind: datapath.Post, Collection: post.collection(k, trace), Program: "entry"},
					{Owner: "test", Name: "w", Entrypoint: "entry", Kind: datapath.Observer, Collection: watch.collection(k, trace), Program: "entry"},
				}, datapath.Options{Counters: true})
				require.NoError(t, err)
				want := k.pass
				if comesBack {
					want = k.stop
				}
				assert.Equal(t, want, k.run(t, datapathtest.Load(t, plan.Build()).Programs["entry"]))
				assert.Equal(t, []int32{'p', want, 'w', want}, trace.Take(t))
			})
			t.Run(k.name+"/pre hook "+way, func(t *testing.T) {
				plan, err := datapath.NewPlan(program(k.program, k.attach, k.pass), []datapath.Hook{
					hook(datapath.Pre, "tail", tailCalling(k, way, k.proceed[0], k.stop)),
				}, datapath.Options{})
				require.NoError(t, err)
				want := k.pass
				if comesBack {
					want = k.stop
				}
				assert.Equal(t, want, k.run(t, datapathtest.Load(t, plan.Build()).Programs["entry"]))
			})
		}
	}
}

// With nothing but pre hooks an original that makes tail calls is the end of main, and its callee ends the run.
func TestTailCallsOfAnOriginalInPlace(t *testing.T) {
	testenv.BPF(t)
	for _, k := range runnable() {
		plan, err := datapath.NewPlan(tailCalling(k, "twice", 1, 0), []datapath.Hook{
			hook(datapath.Pre, "a", program(k.program, k.attach, k.proceed[0], using(480))),
		}, datapath.Options{})
		require.NoError(t, err)
		assert.Contains(t, plan.String(), "in place")
		assert.Equal(t, int32(0), k.run(t, datapathtest.Load(t, plan.Build()).Programs["entry"]), k.name)
	}
}
