package datapath_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/datapath"
)

// compositions returns, of a printed plan, who is composed how: "original=pasted".
func compositions(t *testing.T, spec *ebpf.CollectionSpec, hooks []datapath.Hook, o datapath.Options) string {
	t.Helper()
	plan, err := datapath.NewPlan(spec, hooks, o)
	require.NoError(t, err)
	var texts []string
	for line := range strings.Lines(plan.String()) {
		fields := strings.Fields(line)
		switch {
		case fields[0] == "original":
			texts = append(texts, "original="+fields[2])
		case strings.HasPrefix(fields[1], "acme/"):
			texts = append(texts, strings.TrimPrefix(fields[1], "acme/")+"="+fields[2])
		}
	}
	return strings.Join(texts, " ")
}

func TestChoiceOfComposition(t *testing.T) {
	const xdp = ebpf.XDP
	pre, post := datapath.Pre, datapath.Post
	small := datapath.Options{Features: datapath.Features{SmallFrames: true}}
	code := func(before ...asm.Instruction) *ebpf.CollectionSpec { return program(xdp, 0, -1, before...) }
	forced := func(h datapath.Hook, c datapath.Composition) datapath.Hook { h.Composition = c; return h }
	for _, tc := range []struct {
		name    string
		spec    *ebpf.CollectionSpec
		hooks   []datapath.Hook
		options datapath.Options
		want    string
	}{
		{"small code is pasted", code(), []datapath.Hook{hook(pre, "a", code()), hook(post, "b", code())}, small, "a=pasted original=pasted b=pasted"},
		{"nothing waits for the original", code(), []datapath.Hook{hook(pre, "a", code())}, small, "a=pasted original=in"},
		{"not even for one that tail-calls", tailCall(xdp, 0, 2), []datapath.Hook{hook(pre, "a", code())}, small, "a=pasted original=in"},
		{"an original that tail-calls comes back", tailCall(xdp, 0, 2), []datapath.Hook{hook(post, "b", code())}, small, "original=called b=pasted"},
		{"a hook that tail-calls comes back", code(), []datapath.Hook{hook(pre, "a", tailCall(xdp, 0, -1)), hook(pre, "b", code())}, small, "a=called b=pasted original=in"},
		{"512 instructions", code(), []datapath.Hook{hook(pre, "a", code(long(510)...)), hook(pre, "b", code(long(511)...))}, small, "a=pasted b=called original=in"},
		{"another limit", code(), []datapath.Hook{hook(pre, "a", code(long(8)...)), hook(pre, "b", code(long(9)...))}, datapath.Options{PasteLimit: 10}, "a=pasted b=called original=in"},
		{"a large original", code(long(5000)...), []datapath.Hook{hook(post, "b", code())}, small, "original=called b=pasted"},
		{"as asked", code(), []datapath.Hook{forced(hook(pre, "a", code(long(600)...)), datapath.Pasted), forced(hook(post, "b", code()), datapath.Called)}, datapath.Options{CallOriginal: true}, "a=pasted original=called b=called"},
		{"a full frame is pasted when it is alone", code(), []datapath.Hook{hook(pre, "a", code(using(512)))}, small, "a=pasted original=in"},
		{"a full frame above a called function", code(), []datapath.Hook{hook(pre, "a", code(using(512))), forced(hook(pre, "b", code(using(16))), datapath.Called)}, small, "a=called b=called original=in"},
		{"240 bytes above a tail call", tailCall(xdp, 0, 2), []datapath.Hook{hook(pre, "a", code(using(240))), hook(post, "b", code())}, small, "a=pasted original=called b=pasted"},
		{"248 bytes above a tail call", tailCall(xdp, 0, 2), []datapath.Hook{hook(pre, "a", code(using(248))), hook(post, "b", code())}, small, "a=called original=called b=pasted"},
		{"224 bytes above a tail call, before 6.9", tailCall(xdp, 0, 2), []datapath.Hook{hook(pre, "a", code(using(224))), hook(post, "b", code())}, datapath.Options{}, "a=pasted original=called b=pasted"},
		{"240 bytes above a tail call, before 6.9", tailCall(xdp, 0, 2), []datapath.Hook{hook(pre, "a", code(using(240))), hook(post, "b", code())}, datapath.Options{}, "a=called original=called b=pasted"},
		{"the original's frame above a tail call", code(using(300)), []datapath.Hook{hook(pre, "a", tailCall(xdp, 0, -1))}, small, "a=called original=called"},
		{"a large original with a full frame is too deep as a function, before 6.9", code(append(long(5000), using(512))...), []datapath.Hook{hook(post, "b", code())}, datapath.Options{}, "original=pasted b=pasted"},
		{"480 bytes above a slot, before 6.9", code(), []datapath.Hook{hook(pre, "a", code(using(480))), hook(pre, "b", nil)}, datapath.Options{Features: datapath.Features{Freplace: true}}, "a=pasted b=slot original=in"},
		{"a full frame above a slot, since", code(), []datapath.Hook{hook(pre, "a", code(using(512))), hook(pre, "b", nil)}, datapath.Options{Features: datapath.Features{Freplace: true, SmallFrames: true}}, "a=pasted b=slot original=in"},
		{"and is one since", code(append(long(5000), using(512))...), []datapath.Hook{hook(post, "b", code())}, small, "original=called b=pasted"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			assert.Equal(t, tc.want, compositions(t, tc.spec, tc.hooks, tc.options))
		})
	}
}

// Jumps over pasted code reach some 32000 instructions. What is too much for that is called.
func TestManyLargeHooks(t *testing.T) {
	var hooks []datapath.Hook
	for i := range 100 {
		hooks = append(hooks, hook(datapath.Pre, fmt.Sprintf("%03d", i), program(ebpf.XDP, 0, -1, long(500)...)))
	}
	text := compositions(t, program(ebpf.XDP, 0, 2), hooks, datapath.Options{})
	assert.Contains(t, text, "000=pasted")
	assert.Contains(t, text, "099=called")
}

func TestTooManyFunctions(t *testing.T) {
	var hooks []datapath.Hook
	for i := range 254 {
		h := hook(datapath.Pre, fmt.Sprintf("%03d", i), program(ebpf.XDP, 0, -1))
		h.Composition = datapath.Called
		hooks = append(hooks, h)
	}
	calling := program(ebpf.XDP, 0, -1, asm.Call.Label("a"))
	calling.Programs["entry"].Instructions = append(calling.Programs["entry"].Instructions, asm.Mov.Imm(asm.R0, 0).WithSymbol("a"), asm.Return())
	hooks = append(hooks, hook(datapath.Pre, "last", calling))
	_, err := datapath.NewPlan(program(ebpf.XDP, 0, 2), hooks, datapath.Options{})
	require.NoError(t, err, "254 hooks, a function of the last one, and main")

	hooks[254].Composition = datapath.Called
	_, err = datapath.NewPlan(program(ebpf.XDP, 0, 2), hooks, datapath.Options{})
	require.ErrorContains(t, err, `hook "acme/last" at entrypoint "entry": brings 2 of 257 functions, of which the kernel takes 256: inline functions`)

	for i := range hooks { // none is more to blame than others
		hooks[i] = hook(datapath.Pre, hooks[i].Name, nil)
	}
	slots := datapath.Options{Features: datapath.Features{Freplace: true}}
	_, err = datapath.NewPlan(program(ebpf.XDP, 0, 2), hooks, slots)
	require.NoError(t, err)
	_, err = datapath.NewPlan(program(ebpf.XDP, 0, 2), append(hooks, hook(datapath.Post, "a", nil)), slots)
	require.ErrorContains(t, err, `entrypoint "entry": would have 257 functions, of which the kernel takes 256: inline functions, or have fewer hooks that are called or slots`)
}

// withMaps returns a program that uses arrays of its own.
func withMaps(n int) *ebpf.CollectionSpec {
	spec := program(ebpf.XDP, 0, -1)
	spec.Maps = map[string]*ebpf.MapSpec{}
	entry := spec.Programs["entry"]
	for i := range n {
		name := fmt.Sprintf("m%d", i)
		spec.Maps[name] = &ebpf.MapSpec{Name: name, Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1}
		entry.Instructions = append(asm.Instructions{asm.LoadMapPtr(asm.R1, 0).WithReference(name)}, entry.Instructions...)
	}
	return spec
}

func TestTooManyMaps(t *testing.T) {
	shared := withMaps(2)
	hooks := []datapath.Hook{hook(datapath.Pre, "a", withMaps(30)), hook(datapath.Pre, "b", shared), hook(datapath.Post, "c", shared)}
	plan := func(original int, o datapath.Options) error {
		_, err := datapath.NewPlan(withMaps(original), hooks, o)
		return err
	}
	require.NoError(t, plan(32, datapath.Options{}), "30, 2 that are shared, and 32")
	require.NoError(t, plan(31, datapath.Options{Counters: true}), "and the counters'")
	require.ErrorContains(t, plan(33, datapath.Options{}), `entrypoint "entry": brings 33 of 65 maps, of which the kernel takes 64: have hooks share maps`)
	require.ErrorContains(t, plan(32, datapath.Options{Counters: true}), "65 maps")
	hooks = append(hooks, hook(datapath.Pre, "d", withMaps(35)))
	require.ErrorContains(t, plan(0, datapath.Options{}), `hook "acme/d" at entrypoint "entry": brings 35 of 67 maps`)

	hooks = nil
	for i := range 65 {
		hooks = append(hooks, hook(datapath.Pre, fmt.Sprint(i), withMaps(1)))
	}
	require.ErrorContains(t, plan(0, datapath.Options{}), `entrypoint "entry": would have 65 maps, of which the kernel takes 64`)
}

// Maps that exist already count too, each once.
func TestMapsThatAreLoaded(t *testing.T) {
	with := func(from, to int) *ebpf.CollectionSpec {
		spec := program(ebpf.XDP, 0, -1)
		entry := spec.Programs["entry"]
		for fd := from; fd < to; fd++ {
			entry.Instructions = append(asm.Instructions{asm.LoadMapPtr(asm.R1, fd)}, entry.Instructions...)
		}
		return spec
	}
	_, err := datapath.NewPlan(with(0, 40), []datapath.Hook{hook(datapath.Pre, "a", with(20, 64))}, datapath.Options{})
	require.NoError(t, err)
	_, err = datapath.NewPlan(with(0, 40), []datapath.Hook{hook(datapath.Pre, "a", with(20, 65))}, datapath.Options{})
	require.ErrorContains(t, err, "65 maps")
}

// callChain returns a program that calls a function that calls a function, and so on, n functions in all.
func callChain(n int) *ebpf.CollectionSpec {
	spec := program(ebpf.XDP, 0, -1)
	var insns asm.Instructions
	for i := range n {
		first := asm.Mov.Imm(asm.R0, -1).WithSymbol(fmt.Sprintf("f%d", i))
		insns = append(insns, first)
		if i < n-1 {
			insns = append(insns, asm.Call.Label(fmt.Sprintf("f%d", i+1)))
		}
		insns = append(insns, asm.Return())
	}
	spec.Programs["entry"].Instructions = insns
	return spec
}

// Eight functions can be active at once. Pasted code has one less.
func TestDepthOfCalls(t *testing.T) {
	small := datapath.Options{Features: datapath.Features{SmallFrames: true}}
	plan := func(n int, c datapath.Composition) error {
		h := hook(datapath.Pre, "a", callChain(n))
		h.Composition = c
		_, err := datapath.NewPlan(program(ebpf.XDP, 0, 2), []datapath.Hook{h}, small)
		return err
	}
	require.NoError(t, plan(8, datapath.Pasted))
	require.NoError(t, plan(7, datapath.Called))
	require.ErrorContains(t, plan(9, datapath.Pasted), `hook "acme/a" at entrypoint "entry": makes 9 functions active at once, of which the kernel takes 8`)
	require.ErrorContains(t, plan(8, datapath.Called), "makes 9 functions active at once, of which the kernel takes 8: inline functions of it")
}

// Programs that can be interrupted on their processor count with a lock, others without.
func TestCountersLockWhereTheyMust(t *testing.T) {
	for typ, locked := range map[ebpf.ProgramType]bool{ebpf.XDP: false, ebpf.SchedCLS: false, ebpf.CGroupSKB: true, ebpf.SkLookup: true} {
		plan, err := datapath.NewPlan(program(typ, 0, 1), []datapath.Hook{hook(datapath.Pre, "a", program(typ, 0, 1))}, datapath.Options{Counters: true})
		require.NoError(t, err)
		atomic := 0
		for _, ins := range plan.Build().Programs["entry"].Instructions {
			if ins.OpCode.Mode() == asm.AtomicMode && ins.OpCode.Class() == asm.StXClass {
				atomic++
			}
		}
		assert.Equal(t, locked, atomic > 0, typ)
	}
}

// describe makes the hook's program an Extension, with BTF of a function of a context and numbers.
func describe(h *datapath.Hook, context string, numbers ...string) {
	proto := &btf.FuncProto{
		Return: &btf.Int{Name: "int", Size: 4, Encoding: btf.Signed},
		Params: []btf.FuncParam{{Name: "ctx", Type: &btf.Pointer{Target: &btf.Const{Type: &btf.Struct{Name: context}}}}},
	}
	for _, name := range numbers {
		proto.Params = append(proto.Params, btf.FuncParam{Name: "n", Type: &btf.Int{Name: name, Size: 4}})
	}
	p := h.Collection.Programs[h.Program]
	p.Type = ebpf.Extension
	p.Instructions[0] = btf.WithFuncMetadata(p.Instructions[0].WithSymbol("f"), &btf.Func{Name: "f", Type: proto, Linkage: btf.GlobalFunc})
}

// What BTF says about a hook is no reason to refuse it where it fits.
func TestHooksWithBTF(t *testing.T) {
	for kind, numbers := range map[datapath.Kind][]string{datapath.Pre: nil, datapath.Post: {"unsigned int"}, datapath.Observer: {"int"}} {
		h := hook(kind, "a", program(ebpf.XDP, 0, -1))
		describe(&h, "xdp_md", numbers...)
		_, err := datapath.NewPlan(program(ebpf.XDP, 0, 2), []datapath.Hook{h}, datapath.Options{})
		require.NoError(t, err, kind)
	}
	h := hook(datapath.Observer, "a", program(ebpf.XDP, 0, -1))
	describe(&h, "xdp_md")
	_, err := datapath.NewPlan(program(ebpf.XDP, 0, 2), []datapath.Hook{h}, datapath.Options{})
	require.NoError(t, err, "an observer that does not want the verdict")
}

// Both types of TC programs have the same context and the same verdicts, so hooks of one fit the other.
func TestHooksOfEitherTCType(t *testing.T) {
	for _, types := range [][2]ebpf.ProgramType{{ebpf.SchedCLS, ebpf.SchedACT}, {ebpf.SchedACT, ebpf.SchedCLS}} {
		plan, err := datapath.NewPlan(program(types[0], 0, 0), []datapath.Hook{hook(datapath.Pre, "a", program(types[1], 0, -1))}, datapath.Options{})
		require.NoError(t, err)
		assert.Equal(t, types[0], plan.Build().Programs["entry"].Type)
	}
}

func TestErrorsNameTheWayOut(t *testing.T) {
	const xdp = ebpf.XDP
	with := func(change func(h *datapath.Hook)) datapath.Hook {
		h := hook(datapath.Pre, "a", program(xdp, 0, -1))
		change(&h)
		return h
	}
	ext := datapath.Options{Features: datapath.Features{Freplace: true}}
	two := program(xdp, 0, 2)
	two.Programs["\n"] = two.Programs["entry"]
	for _, tc := range []struct {
		name        string
		spec        *ebpf.CollectionSpec
		hook        datapath.Hook
		options     datapath.Options
		reason, fix string
	}{
		{"no name", nil, with(func(h *datapath.Hook) { h.Name = "" }), ext, "lacks an owner or a name", "set Owner and Name"},
		{"slash", nil, with(func(h *datapath.Hook) { h.Owner = "a/b" }), ext, "owner with a slash", "without one"},
		{"no entrypoint", nil, with(func(h *datapath.Hook) { h.Entrypoint = "x" }), ext, "that the collection does not have", "set Entrypoint to entry"},
		{"no entrypoint of several", two, with(func(h *datapath.Hook) { h.Entrypoint = "x" }), ext, "that the collection does not have", "set Entrypoint to one of \"\\n\", entry"},
		{"no kind", nil, with(func(h *datapath.Hook) { h.Kind = 0 }), ext, "has no kind", "set Kind"},
		{"unknown composition", nil, with(func(h *datapath.Hook) { h.Composition = 9 }), ext, "unknown composition", "Auto"},
		{"constraint", nil, with(func(h *datapath.Hook) { h.After = []string{"x/"} }), ext, `has the constraint "x/", which names no hook`, "owner/name"},
		{"no code to paste", nil, with(func(h *datapath.Hook) { h.Collection, h.Composition = nil, datapath.Pasted }), ext, "brings no collection", "ask for a Slot"},
		{"observer with a mask", nil, with(func(h *datapath.Hook) { h.Kind, h.Proceed = datapath.Observer, []int32{1} }), ext, "is an observer", "make it a Post hook"},
		{"pre hook after the end", nil, with(func(h *datapath.Hook) { h.AfterTermination = true }), ext, "AfterTermination, which is for post hooks", "leave it out"},
		{"no program", nil, with(func(h *datapath.Hook) { h.Program = "x" }), ext, `without the program "x"`, "entry"},
		{"no program at all", nil, with(func(h *datapath.Hook) { h.Collection = &ebpf.CollectionSpec{} }), ext, `without the program "entry"`, "the collection has none"},
		{"nil map", nil, with(func(h *datapath.Hook) { h.Collection.Maps = map[string]*ebpf.MapSpec{"m": nil} }), ext, `collection whose map "m" is nil`, "delete it"},
		{"egress of a device map", nil, with(func(h *datapath.Hook) { h.Collection = program(xdp, ebpf.AttachXDPDevMap, -1) }), ext, "attach type XDPDevMap, and the entrypoint is for None", "entrypoint's attach type"},
		{"post hook's code as a pre hook", nil, with(func(h *datapath.Hook) { describe(h, "xdp_md", "unsigned int") }), ext, "takes 2 arguments, and pre hooks get 1", "or make it a Post hook"},
		{"too many arguments", nil, with(func(h *datapath.Hook) { h.Kind = datapath.Post; describe(h, "xdp_md", "int", "int") }), ext, "takes 3 arguments, and post hooks get 2", "declare no more"},
		{"context of an Extension", nil, with(func(h *datapath.Hook) { describe(h, "__sk_buff") }), ext, "takes a __sk_buff, and the entrypoint's context is a xdp_md", "for the entrypoint's type"},
		{"interface of the hook", nil, with(func(h *datapath.Hook) { h.Collection.Programs["entry"].Ifindex = 7 }), ext, "for interface 7 alone, and the entrypoint is for interface 0", "leave Ifindex out"},
		{"type of the entrypoint", program(ebpf.Kprobe, 0, 0), with(func(*datapath.Hook) {}), ext, "is for a program of type Kprobe", "hook an XDP"},
		{"type of the hook", nil, with(func(h *datapath.Hook) { h.Collection = program(ebpf.SchedCLS, 0, -1) }), ext, "type SchedCLS, and the entrypoint is of type XDP", "as an Extension"},
		{
			"attach type of the hook", program(ebpf.CGroupSockAddr, ebpf.AttachCGroupInet4Connect, 1),
			with(func(h *datapath.Hook) {
				h.Collection = program(ebpf.CGroupSockAddr, ebpf.AttachCGroupInet6Connect, 1)
			}), ext, "attach type CGroupInet6Connect", "entrypoint's attach type",
		},
		{"no extensions", nil, with(func(h *datapath.Hook) { h.Collection = nil }), datapath.Options{}, "no program extensions", "set Features.Freplace if it has, or bring the hook's collection"},
		{"no extensions for a forced slot", nil, with(func(h *datapath.Hook) { h.Composition = datapath.Slot }), datapath.Options{}, "no program extensions", "set Features.Freplace if it has, or leave Composition at Auto"},
		{
			"a verdict that no extension returns", program(ebpf.CGroupSKB, ebpf.AttachCGroupInetIngress, 1),
			with(func(h *datapath.Hook) { h.Collection, h.Proceed = nil, []int32{-1} }), ext, "proceeds with PROCEED(-1), which no program extension", "take it from Proceed",
		},
		{
			"much stack in a function, before 6.9", nil, with(func(h *datapath.Hook) { h.Composition, h.Collection = datapath.Called, program(xdp, 0, -1, using(496)) }), ext,
			"uses 496 bytes of stack, which with what lies above it count as 544 of 512 (in steps of 32, as before Linux 6.9)",
			"use 32 less, or keep the data in a map; or, if the kernel is 6.9 or newer, set Options.Features by KernelFeatures",
		},
		{
			"much stack above a function, before 6.9", nil, with(func(h *datapath.Hook) { h.Composition, h.Collection = datapath.Pasted, program(xdp, 0, -1, using(496)) }), datapath.Options{CallOriginal: true},
			"uses 496 bytes of stack, which with what lies below it count as 544 of 512 (in steps of 32, as before Linux 6.9)", "by KernelFeatures",
		},
		{"an empty slot that cannot deny", nil, with(func(h *datapath.Hook) { h.Collection, h.Proceed = nil, []int32{1} }), ext, "proceeds with XDP_DROP(1), which a slot returns", "SlotsFailOpen"},
		{"pasted tail call", nil, with(func(h *datapath.Hook) { h.Collection, h.Composition = tailCall(xdp, 0, -1), datapath.Pasted }), ext, "cannot be pasted", "ask for Called"},
		{
			"pasted frame above a tail call", tailCall(xdp, 0, 2),
			with(func(h *datapath.Hook) {
				h.Kind, h.Composition, h.Collection = datapath.Post, datapath.Pasted, program(xdp, 0, -1, using(300))
			}), ext, "bytes of stack would lie above", "called instead",
		},
		{
			"pasted frame above a tail call, before 6.9", tailCall(xdp, 0, 2),
			with(func(h *datapath.Hook) {
				h.Kind, h.Composition, h.Collection = datapath.Post, datapath.Pasted, program(xdp, 0, -1, using(240))
			}), ext, "256 bytes of stack would lie above", "called instead; or, if the kernel is 6.9 or newer, set Options.Features by KernelFeatures",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			spec := tc.spec
			if spec == nil {
				spec = program(xdp, 0, 2)
			}
			_, err := datapath.NewPlan(spec, []datapath.Hook{tc.hook}, tc.options)
			var e *datapath.HookError
			require.ErrorAs(t, err, &e)
			assert.Equal(t, tc.hook.Entrypoint, e.Entrypoint)
			assert.Contains(t, e.Reason, tc.reason)
			assert.Contains(t, e.Fix, tc.fix)
		})
	}
}

// Too much stack is said of whoever uses most of it, in bytes of theirs and as they count; a newer kernel is a way out only where it helps.
func TestTooMuchStack(t *testing.T) {
	code := func(bytes int16) *ebpf.CollectionSpec { return program(ebpf.XDP, 0, -1, using(bytes)) }
	forced := func(name string, composition datapath.Composition, bytes int16) datapath.Hook {
		h := hook(datapath.Pre, name, code(bytes))
		h.Composition = composition
		return h
	}
	for _, tc := range []struct {
		hooks []datapath.Hook
		small bool
		want  string
	}{
		{
			[]datapath.Hook{forced("a", datapath.Pasted, 16), forced("b", datapath.Called, 512)}, false,
			`hook "acme/b" at entrypoint "entry": uses 512 bytes of stack, which with what lies above it count as 544 of 512 (in steps of 32, as before Linux 6.9): use 32 less, or keep the data in a map`,
		},
		{
			[]datapath.Hook{forced("a", datapath.Pasted, 16), forced("b", datapath.Called, 512)}, true,
			`hook "acme/b" at entrypoint "entry": uses 512 bytes of stack, which with what lies above it count as 528 of 512 (in steps of 16): use 16 less, or keep the data in a map`,
		},
		{
			[]datapath.Hook{forced("a", datapath.Called, 40), forced("b", datapath.Pasted, 480)}, true,
			`hook "acme/b" at entrypoint "entry": uses 480 bytes of stack, which with what lies below it count as 528 of 512 (in steps of 16): use 16 less, or keep the data in a map`,
		},
		{
			[]datapath.Hook{forced("a", datapath.Pasted, 520)}, true,
			`hook "acme/a" at entrypoint "entry": uses 520 bytes of stack, which count as 528 of 512 (in steps of 16): use 16 less, or keep the data in a map`,
		},
	} {
		_, err := datapath.NewPlan(program(ebpf.XDP, 0, 2), tc.hooks, datapath.Options{Features: datapath.Features{SmallFrames: tc.small}})
		require.EqualError(t, err, "plan hooks: "+tc.want)
	}
	features, err := datapath.KernelFeatures("6.18.44")
	require.NoError(t, err)
	hooks := []datapath.Hook{forced("a", datapath.Called, 496)}
	_, err = datapath.NewPlan(program(ebpf.XDP, 0, 2), hooks, datapath.Options{})
	require.ErrorContains(t, err, "if the kernel is 6.9 or newer, set Options.Features by KernelFeatures")
	_, err = datapath.NewPlan(program(ebpf.XDP, 0, 2), hooks, datapath.Options{Features: features})
	require.NoError(t, err, "the way out")
}

// A type that cannot deny has slots that proceed while they are empty: the original and the other hooks run.
func TestEmptySlotsOfTypesThatCannotDeny(t *testing.T) {
	for attach, verdict := range map[ebpf.AttachType]int32{ebpf.AttachCGroupUDP4Recvmsg: 1, ebpf.AttachCGroupUDP4Sendmsg: 0} {
		plan, err := datapath.NewPlan(program(ebpf.CGroupSockAddr, attach, 1), []datapath.Hook{hook(datapath.Pre, "a", nil)},
			datapath.Options{Features: datapath.Features{Freplace: true}})
		require.NoError(t, err)
		assert.Equal(t, verdict, plan.Slots()[0].Verdict, attach)
		assert.Contains(t, plan.Slots()[0].Hook.Proceed, int32(1))
	}
}

// A program that is bound to a device takes hooks that are bound to the same or to none, and stays bound.
func TestDeviceBoundPrograms(t *testing.T) {
	bound := func(ifindex uint32) *ebpf.CollectionSpec {
		spec := program(ebpf.XDP, 0, -1)
		spec.Programs["entry"].Ifindex = ifindex
		return spec
	}
	for _, tc := range []struct {
		entry uint32
		hooks []uint32
		fits  bool
	}{
		{7, []uint32{7}, true}, {7, []uint32{7, 7}, true}, {7, []uint32{0, 7}, true}, {0, []uint32{0}, true},
		{7, []uint32{7, 8}, false}, {0, []uint32{0, 7}, false},
	} {
		var hooks []datapath.Hook
		for i, ifindex := range tc.hooks {
			hooks = append(hooks, hook(datapath.Pre, fmt.Sprint(i), bound(ifindex)))
		}
		plan, err := datapath.NewPlan(bound(tc.entry), hooks, datapath.Options{})
		if tc.fits {
			require.NoError(t, err, "%v", tc)
			assert.Equal(t, tc.entry, plan.Build().Programs["entry"].Ifindex)
		} else {
			require.ErrorContains(t, err, "leave Ifindex out", "%v", tc)
		}
	}
}

func TestSlotsOfAProgramInAnArray(t *testing.T) {
	spec := tailCall(ebpf.XDP, 0, 2)
	spec.Maps["progs"].Contents = []ebpf.MapKV{{Key: uint32(0), Value: "entry"}}
	_, err := datapath.NewPlan(spec, []datapath.Hook{hook(datapath.Pre, "a", nil)}, datapath.Options{Features: datapath.Features{Freplace: true}})
	require.ErrorContains(t, err, `hook "acme/a" at entrypoint "entry": is a slot of a program that the map "progs" holds for tail calls`)
	require.ErrorContains(t, err, "bring the hook's collection")
	forced := hook(datapath.Pre, "a", program(ebpf.XDP, 0, -1))
	forced.Composition = datapath.Slot
	_, err = datapath.NewPlan(spec, []datapath.Hook{forced}, datapath.Options{Features: datapath.Features{Freplace: true}})
	require.ErrorContains(t, err, "leave Composition at Auto")
	_, err = datapath.NewPlan(spec, []datapath.Hook{hook(datapath.Pre, "a", program(ebpf.XDP, 0, -1))}, datapath.Options{})
	require.NoError(t, err)
}

func TestNoCollection(t *testing.T) {
	_, err := datapath.NewPlan(nil, nil, datapath.Options{})
	require.ErrorContains(t, err, "plan hooks: no collection")
	for what, spec := range map[string]*ebpf.CollectionSpec{
		`program "x"`:  {Programs: map[string]*ebpf.ProgramSpec{"x": nil}},
		`map "x"`:      {Maps: map[string]*ebpf.MapSpec{"x": nil}},
		`variable "x"`: {Variables: map[string]*ebpf.VariableSpec{"x": nil}},
	} {
		_, err := datapath.NewPlan(spec, nil, datapath.Options{})
		require.ErrorContains(t, err, what+" of the collection is nil")
	}
}

// Everything that is wrong is said at once.
func TestErrorsAreJoined(t *testing.T) {
	bad := hook(datapath.Pre, "a", program(ebpf.XDP, 0, -1))
	bad.Program = "x"
	worse := hook(datapath.Pre, "b", nil)
	_, err := datapath.NewPlan(program(ebpf.XDP, 0, 2), []datapath.Hook{bad, worse, hook(0, "c", nil)}, datapath.Options{})
	for _, name := range []string{`"acme/a"`, `"acme/b"`, `"acme/c"`} {
		require.ErrorContains(t, err, name)
	}
	twice := hook(datapath.Pre, "a", program(ebpf.XDP, 0, -1))
	_, err = datapath.NewPlan(program(ebpf.XDP, 0, 2), []datapath.Hook{twice, twice}, datapath.Options{})
	var e *datapath.HookError
	require.ErrorAs(t, err, &e)
	assert.Equal(t, "has the owner and name of another hook", e.Reason)
	assert.False(t, errors.As(err, new(*datapath.CycleError)))
}

func TestAnInstrumentedEntrypointIsRefused(t *testing.T) {
	plan, err := datapath.NewPlan(program(ebpf.XDP, 0, 2), []datapath.Hook{{
		Owner: "acme", Name: "a", Entrypoint: "entry", Kind: datapath.Pre, Collection: program(ebpf.XDP, 0, -1), Program: "entry", Composition: datapath.Called,
	}}, datapath.Options{})
	require.NoError(t, err)
	built := plan.Build()
	_, err = datapath.NewPlan(built, []datapath.Hook{hook(datapath.Pre, "b", program(ebpf.XDP, 0, -1))}, datapath.Options{})
	require.ErrorContains(t, err, `has the function "dp_pre_0", whose name is reserved`)
}
