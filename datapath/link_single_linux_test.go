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

// withOne is a program, named "entry", that uses a map.
func withOne(k kind, m *ebpf.MapSpec) *ebpf.CollectionSpec {
	code := asm.Instructions{asm.LoadMapPtr(asm.R1, 0).WithReference("one")}
	if m.Type != ebpf.Arena {
		code = append(code, asm.Mov.Imm(asm.R2, 0), asm.FnGetLocalStorage.Call())
	}
	spec := k.spec(append(code, asm.Mov.Imm(asm.R0, k.proceed[0]), asm.Return()))
	spec.Programs["entry"].License = "GPL"
	spec.Maps = map[string]*ebpf.MapSpec{"one": m}
	return spec
}

// Of some types of maps the kernel gives a program one, so the parts of an entrypoint have to share it.
func TestSingleMaps(t *testing.T) {
	testenv.BPF(t)
	xdp, ingress := runnable()[0], runnable()[6]
	arena := &ebpf.MapSpec{Name: "arena", Type: ebpf.Arena, MaxEntries: 1, Flags: 1 << 10 /* BPF_F_MMAPABLE */, MapExtra: 1 << 44}
	storage := &ebpf.MapSpec{Name: "storage", Type: ebpf.CGroupStorage, KeySize: 8, ValueSize: 8}
	perCPU := &ebpf.MapSpec{Name: "storage", Type: ebpf.PerCPUCGroupStorage, KeySize: 8, ValueSize: 8}
	for _, c := range []struct {
		kind             kind
		original, others *ebpf.MapSpec
		reason           string // why a hook with another map like that is refused
	}{
		{ingress, storage, perCPU, `brings a second map of type PerCPUCGroupStorage ("dp_0_post_0_one" beside "dp_0_pre_0_one")`},
		{ingress, perCPU, storage, `brings a second map of type CGroupStorage ("dp_0_post_0_one" beside "dp_0_pre_0_one")`},
		{xdp, arena, nil, `brings a second map of type Arena ("dp_0_post_0_one" beside "one")`},
	} {
		entry := withOne(c.kind, c.original)
		shared := entry
		if c.others != nil {
			shared = withOne(c.kind, c.others)
		}
		hooks := []datapath.Hook{
			{Owner: "acme", Name: "a", Entrypoint: "entry", Kind: datapath.Pre, Collection: shared, Program: "entry"},
			{Owner: "acme", Name: "b", Entrypoint: "entry", Kind: datapath.Post, Collection: shared, Program: "entry"},
			{Owner: "acme", Name: "c", Entrypoint: "entry", Kind: datapath.Observer, Collection: entry, Program: "entry"},
		}
		plan, err := datapath.NewPlan(entry, hooks, datapath.Options{Features: hostFeatures(t)})
		require.NoError(t, err, "one of each type")
		datapathtest.Load(t, plan.Build())

		hooks[1].Collection = shared.Copy()
		_, err = datapath.NewPlan(entry, hooks, datapath.Options{})
		requireHookErrors(t, err)
		assert.ErrorContains(t, err, `hook "acme/b" at entrypoint "entry": `+c.reason)

		hooks[1].Collection = entry.Copy()
		_, err = datapath.NewPlan(entry, hooks[1:2], datapath.Options{})
		assert.ErrorContains(t, err, `("dp_0_post_0_one" beside "one")`, "the original has one, too")
	}
}

// A map that instructions have been given counts like one that they name, once.
func TestMapsThatAreAssociated(t *testing.T) {
	testenv.BPF(t)
	m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1})
	require.NoError(t, err)
	defer m.Close()
	load := asm.LoadMapPtr(asm.R1, 0)
	require.NoError(t, load.AssociateMap(m))
	hooks := []datapath.Hook{hook(datapath.Pre, "a", program(ebpf.XDP, 0, -1, load)), hook(datapath.Pre, "b", program(ebpf.XDP, 0, -1, load))}
	_, err = datapath.NewPlan(withMaps(63), hooks, datapath.Options{})
	require.NoError(t, err)
	_, err = datapath.NewPlan(withMaps(64), hooks, datapath.Options{})
	require.ErrorContains(t, err, "65 maps")
}

// A program of the collection that tail-calls shares its PROG_ARRAY with what the collection itself loads, and can be a hook of programs of its own kind alone.
func TestHookOfTheCollectionItselfTailCalls(t *testing.T) {
	testenv.BPF(t)
	for _, c := range []struct {
		hook    ebpf.ProgramType
		attach  ebpf.AttachType
		refused string // what would be shared
	}{
		{ebpf.SchedCLS, ebpf.AttachNone, ""},
		{ebpf.SchedCLS, ebpf.AttachTCXIngress, `PROG_ARRAY "tails"`},
		{ebpf.Extension, ebpf.AttachNone, ""}, // which has no array of its own kind
		{ebpf.Extension, ebpf.AttachTCXIngress, `program "tail"`},
	} {
		spec := &ebpf.CollectionSpec{
			Maps: map[string]*ebpf.MapSpec{"tails": {
				Name: "tails", Type: ebpf.ProgramArray, KeySize: 4, ValueSize: 4, MaxEntries: 1, Contents: []ebpf.MapKV{{Key: uint32(0), Value: "tail"}},
			}},
			Programs: map[string]*ebpf.ProgramSpec{
				"entry": {Type: ebpf.SchedCLS, AttachType: c.attach, License: "MIT", Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()}},
				"tail":  {Type: ebpf.SchedCLS, License: "MIT", Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 7), asm.Return()}},
				"hook": {Type: c.hook, License: "MIT", Instructions: asm.Instructions{
					asm.LoadMapPtr(asm.R2, 0).WithReference("tails"), asm.Mov.Imm(asm.R3, 0), asm.FnTailCall.Call(), asm.Mov.Imm(asm.R0, -1), asm.Return(),
				}},
			},
		}
		if c.hook != ebpf.Extension {
			datapathtest.Load(t, spec)
		}
		hook := datapath.Hook{Owner: "acme", Name: "jump", Entrypoint: "entry", Kind: datapath.Pre, Collection: spec, Program: "hook"}
		plan, err := datapath.NewPlan(spec, []datapath.Hook{hook}, datapath.Options{Features: hostFeatures(t)})
		if c.refused != "" {
			requireHookErrors(t, err)
			assert.ErrorContains(t, err, "its "+c.refused+" would be shared by programs of different types or attach types")
			hook.Collection = spec.Copy() // the way out
			delete(spec.Programs, "hook") // an Extension cannot be loaded
			plan, err = datapath.NewPlan(spec, []datapath.Hook{hook}, datapath.Options{Features: hostFeatures(t)})
		}
		require.NoError(t, err)
		assert.Equal(t, int32(7), onPacket(t, datapathtest.Load(t, plan.Build()).Programs["entry"]))
	}
}
