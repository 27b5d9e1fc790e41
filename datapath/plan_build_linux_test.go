package datapath_test

import (
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/datapath"
	"github.com/cnikit/cnikit/datapath/datapathtest"
	"github.com/cnikit/cnikit/internal/testenv"
)

// Hooks may stand in the collection itself. What can be nothing but a hook is not loaded; what can stays.
func TestHooksOfTheCollectionItselfLoad(t *testing.T) {
	testenv.BPF(t)
	for _, tc := range []struct {
		name  string
		kind  datapath.Kind
		typ   ebpf.ProgramType
		stays bool
	}{
		{"a program of the entrypoint's type", datapath.Pre, ebpf.XDP, true},
		{"one that takes a verdict", datapath.Post, ebpf.XDP, false},
		{"an Extension", datapath.Pre, ebpf.Extension, false},
		{"an Extension that takes a verdict", datapath.Observer, ebpf.Extension, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			spec := program(ebpf.XDP, 0, 2)
			h := hook(tc.kind, "a", spec)
			h.Program = "hook"
			spec.Programs["hook"] = program(ebpf.XDP, 0, -1).Programs["entry"]
			if tc.kind == datapath.Pre {
				describe(&h, "xdp_md")
			} else {
				spec.Programs["hook"].Instructions[0] = asm.Mov.Reg(asm.R0, asm.R2)
				describe(&h, "xdp_md", "unsigned int")
			}
			spec.Programs["hook"].Type = tc.typ
			plan, err := datapath.NewPlan(spec, []datapath.Hook{h}, datapath.Options{})
			require.NoError(t, err)
			built := plan.Build()
			assert.Equal(t, tc.stays, built.Programs["hook"] != nil)
			assert.NotNil(t, spec.Programs["hook"], "what the caller gave stays as it was")
			assert.Equal(t, int32(2), onPacket(t, datapathtest.Load(t, built).Programs["entry"]))
		})
	}
}

// What a tail call leads to, and what has hooks itself, stays whatever else it is.
func TestHooksThatAreMoreThanHooksStay(t *testing.T) {
	for name, change := range map[string]func(spec *ebpf.CollectionSpec, h *datapath.Hook) []datapath.Hook{
		"in a PROG_ARRAY": func(spec *ebpf.CollectionSpec, _ *datapath.Hook) []datapath.Hook {
			spec.Maps["progs"].Contents = []ebpf.MapKV{{Key: uint32(0), Value: "hook"}}
			return nil
		},
		"an entrypoint": func(*ebpf.CollectionSpec, *datapath.Hook) []datapath.Hook {
			of := hook(datapath.Pre, "b", program(ebpf.XDP, 0, -1))
			of.Entrypoint = "hook"
			return []datapath.Hook{of}
		},
		"of the same name as another collection's": func(spec *ebpf.CollectionSpec, h *datapath.Hook) []datapath.Hook {
			h.Collection = spec.Copy()
			return nil
		},
		"an Extension with a target": func(spec *ebpf.CollectionSpec, _ *datapath.Hook) []datapath.Hook {
			spec.Programs["hook"].Type, spec.Programs["hook"].AttachTarget = ebpf.Extension, &ebpf.Program{}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			spec := tailCall(ebpf.XDP, 0, 2)
			h := hook(datapath.Post, "a", spec)
			h.Program = "hook"
			spec.Programs["hook"] = program(ebpf.XDP, 0, -1).Programs["entry"]
			describe(&h, "xdp_md", "unsigned int")
			spec.Programs["hook"].Type = ebpf.XDP
			plan, err := datapath.NewPlan(spec, append(change(spec, &h), h), datapath.Options{})
			require.NoError(t, err)
			assert.NotNil(t, plan.Build().Programs["hook"])
		})
	}
}

// When hooks change, maps and variables of those that stay are kept by the names that the two plans tell.
func TestMapsOutliveAChangeOfHooks(t *testing.T) {
	testenv.BPF(t)
	counting := func(verdict int32) *ebpf.CollectionSpec {
		spec := program(ebpf.XDP, 0, verdict,
			asm.LoadMapValue(asm.R1, 0, 0).WithReference(".bss"), asm.LoadMem(asm.R2, asm.R1, 0, asm.DWord), asm.Add.Imm(asm.R2, 1), asm.StoreMem(asm.R1, 0, asm.R2, asm.DWord))
		spec.Maps = map[string]*ebpf.MapSpec{".bss": {Name: ".bss", Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1, Contents: []ebpf.MapKV{{Key: uint32(0), Value: make([]byte, 8)}}}}
		spec.Variables = map[string]*ebpf.VariableSpec{"runs": {Name: "runs", SectionName: ".bss", Value: make([]byte, 8)}}
		return spec
	}
	original, stays := counting(2), counting(-1)
	require.NoError(t, stays.Variables["runs"].Set(uint64(100)))
	load := func(old *ebpf.Collection, oldPlan *datapath.Plan, hooks ...datapath.Hook) (*ebpf.Collection, *datapath.Plan) {
		plan, err := datapath.NewPlan(original, hooks, datapath.Options{})
		require.NoError(t, err)
		kept := map[string]*ebpf.Map{}
		if old != nil {
			kept[".bss"] = old.Maps[".bss"]
			before := oldPlan.Maps("entry", "acme", "stays")
			for own, name := range plan.Maps("entry", "acme", "stays") {
				kept[name] = old.Maps[before[own]]
			}
		}
		collection, err := ebpf.NewCollectionWithOptions(plan.Build(), ebpf.CollectionOptions{MapReplacements: kept})
		require.NoError(t, err)
		t.Cleanup(collection.Close)
		onPacket(t, collection.Programs["entry"])
		return collection, plan
	}
	runs := func(c *ebpf.Collection, name string) (n uint64) {
		require.NoError(t, c.Variables[name].Get(&n))
		return n
	}
	first, plan := load(nil, nil, hook(datapath.Pre, "stays", stays))
	second, next := load(first, plan, hook(datapath.Pre, "new", counting(-1)), hook(datapath.Pre, "stays", stays))
	name := next.Variables("entry", "acme", "stays")["runs"]
	assert.Equal(t, uint64(102), runs(second, name), "the hook that stayed")
	assert.Equal(t, uint64(2), runs(second, "runs"), "the original, whose variable has the same name")
	assert.Equal(t, uint64(1), runs(second, next.Variables("entry", "acme", "new")["runs"]), "the new hook")
}

// A program's name need not be one of BTF, which takes letters, digits and underscores, and no digit first.
func TestEntrypointsOfAnyNameLoad(t *testing.T) {
	testenv.BPF(t)
	for _, name := range []string{"", "0day", "a-b.c", "日本", "dp_pre_0"} {
		spec := program(ebpf.XDP, 0, 2)
		spec.Programs["entry"].Name = name
		called := hook(datapath.Post, "a", program(ebpf.XDP, 0, -1))
		called.Composition = datapath.Called
		plan, err := datapath.NewPlan(spec, []datapath.Hook{called}, datapath.Options{CallOriginal: true})
		require.NoError(t, err, name)
		assert.Equal(t, int32(2), onPacket(t, datapathtest.Load(t, plan.Build()).Programs["entry"]), name)
	}
}

// What the caller does to hooks and specs once the plan is made does not reach it.
func TestPlansDoNotChange(t *testing.T) {
	spec, code := tailCall(ebpf.XDP, 0, 2), program(ebpf.XDP, 0, -1)
	h := hook(datapath.Pre, "a", code)
	h.Before, h.After, h.Proceed = []string{"gone"}, []string{"other"}, []int32{-1, 2}
	slot := hook(datapath.Post, "b", nil)
	slot.Proceed = []int32{-1, 3}
	hooks := []datapath.Hook{h, slot}
	plan, err := datapath.NewPlan(spec, hooks, datapath.Options{Features: datapath.Features{Freplace: true}})
	require.NoError(t, err)
	printed, built, ignored, slots := plan.String(), plan.Build(), plan.Ignored(), plan.Slots()
	h.Before[0], h.After[0], h.Proceed[1], slot.Proceed[1] = "b", "b", 7, 7
	hooks[0].Name, hooks[1].Kind = "changed", datapath.Observer
	code.Programs["entry"].Instructions[0] = asm.Mov.Imm(asm.R0, 7)
	code.Programs["entry"].Type = ebpf.SchedCLS
	spec.Programs["entry"].Instructions[0], spec.Maps["progs"].MaxEntries = asm.Mov.Imm(asm.R0, 7), 7
	delete(spec.Programs, "entry")
	slots[0].Hook.Proceed[1] = 7
	assert.Equal(t, printed, plan.String())
	assert.Equal(t, built, plan.Build())
	assert.Equal(t, ignored, plan.Ignored())
	assert.Equal(t, []int32{-1, 3}, plan.Slots()[0].Hook.Proceed)
}

// An original in place is as large as the kernel lets it be: no jump leads over it.
func TestLargeOriginalInPlace(t *testing.T) {
	testenv.BPF(t)
	for _, counters := range []bool{false, true} {
		plan, err := datapath.NewPlan(program(ebpf.XDP, 0, 2, long(40000)...), []datapath.Hook{hook(datapath.Pre, "a", program(ebpf.XDP, 0, -1))}, datapath.Options{Counters: counters})
		require.NoError(t, err)
		assert.Equal(t, int32(2), onPacket(t, datapathtest.Load(t, plan.Build()).Programs["entry"]))
	}
}
