package datapath_test

import (
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

// programTypes are all types and attach types that have dispatchers, with a verdict that each may return.
func programTypes() map[ebpf.ProgramType]map[ebpf.AttachType]int32 {
	sockAddr := map[ebpf.AttachType]int32{}
	for _, attach := range []ebpf.AttachType{
		ebpf.AttachCGroupInet4Bind, ebpf.AttachCGroupInet6Bind,
		ebpf.AttachCGroupInet4Connect, ebpf.AttachCGroupInet6Connect, ebpf.AttachCgroupUnixConnect,
		ebpf.AttachCGroupUDP4Sendmsg, ebpf.AttachCGroupUDP6Sendmsg, ebpf.AttachCgroupUnixSendmsg,
		ebpf.AttachCGroupUDP4Recvmsg, ebpf.AttachCGroupUDP6Recvmsg, ebpf.AttachCgroupUnixRecvmsg,
		ebpf.AttachCgroupInet4GetPeername, ebpf.AttachCgroupInet6GetPeername, ebpf.AttachCgroupUnixGetpeername,
		ebpf.AttachCgroupInet4GetSockname, ebpf.AttachCgroupInet6GetSockname, ebpf.AttachCgroupUnixGetsockname,
	} {
		sockAddr[attach] = 1
	}
	return map[ebpf.ProgramType]map[ebpf.AttachType]int32{
		ebpf.XDP:      {ebpf.AttachNone: 2, ebpf.AttachXDP: 2},
		ebpf.SchedACT: {ebpf.AttachNone: 0},
		ebpf.SchedCLS: {
			ebpf.AttachNone: 0, ebpf.AttachTCXIngress: 0, ebpf.AttachTCXEgress: 0,
			ebpf.AttachNetkitPrimary: 0, ebpf.AttachNetkitPeer: 0,
		},
		ebpf.CGroupSKB: {ebpf.AttachCGroupInetIngress: 1, ebpf.AttachCGroupInetEgress: 1},
		ebpf.CGroupSock: {
			ebpf.AttachCGroupInetSockCreate: 1, ebpf.AttachCgroupInetSockRelease: 1,
			ebpf.AttachCGroupInet4PostBind: 1, ebpf.AttachCGroupInet6PostBind: 1,
		},
		ebpf.CGroupSockAddr: sockAddr,
		ebpf.SockOps:        {ebpf.AttachCGroupSockOps: 1},
		ebpf.SkLookup:       {ebpf.AttachSkLookup: 1},
	}
}

// The verifier accepts every composition for every type: ranges of verdicts, contexts, functions.
func TestEveryTypeLoads(t *testing.T) {
	testenv.BPF(t)
	options := datapath.Options{Counters: true, Features: datapath.Features{Freplace: true}}
	for typ, attachTypes := range programTypes() {
		for attach, verdict := range attachTypes {
			t.Run(typ.String()+"/"+attach.String(), func(t *testing.T) {
				for _, original := range []bool{false, true} {
					var hooks []datapath.Hook
					for _, kind := range []datapath.Kind{datapath.Pre, datapath.Post, datapath.Observer} {
						for _, c := range []datapath.Composition{datapath.Pasted, datapath.Called, datapath.Slot} {
							h := hook(kind, kind.String()+c.String(), program(typ, attach, 77))
							h.Composition = c
							hooks = append(hooks, h)
						}
					}
					options.CallOriginal = original
					plan, err := datapath.NewPlan(program(typ, attach, verdict), hooks, options)
					require.NoError(t, err)
					datapathtest.Load(t, plan.Build())
				}
			})
		}
	}
}

func TestEmptySlots(t *testing.T) {
	testenv.BPF(t)
	for _, k := range runnable() {
		for _, tc := range []struct {
			name  string
			kinds []datapath.Kind
			open  bool
			want  int32
		}{
			{"a pre hook's denies", []datapath.Kind{datapath.Pre}, false, k.stop},
			{"a post hook's denies", []datapath.Kind{datapath.Post}, false, k.stop},
			{"an observer's changes nothing", []datapath.Kind{datapath.Observer}, false, k.pass},
			{"open ones change nothing", []datapath.Kind{datapath.Pre, datapath.Post, datapath.Observer}, true, k.pass},
		} {
			t.Run(k.name+"/"+tc.name, func(t *testing.T) {
				var hooks []datapath.Hook
				for _, kind := range tc.kinds {
					hooks = append(hooks, hook(kind, kind.String(), nil))
				}
				plan, err := datapath.NewPlan(program(k.program, k.attach, k.pass), hooks, datapath.Options{
					SlotsFailOpen: tc.open, Features: datapath.Features{Freplace: true},
				})
				require.NoError(t, err)
				assert.Equal(t, tc.want, k.run(t, datapathtest.Load(t, plan.Build()).Programs["entry"]))
			})
		}
	}
}

func TestSlotsAreDescribed(t *testing.T) {
	spec := program(ebpf.XDP, ebpf.AttachXDP, 2)
	spec.Programs["entry"].Flags = hasFrags
	linked := hook(datapath.Pre, "linked", spec)
	plan, err := datapath.NewPlan(spec, []datapath.Hook{hook(datapath.Pre, "a", nil), linked, hook(datapath.Post, "b", nil)}, datapath.Options{Features: datapath.Features{Freplace: true}})
	require.NoError(t, err)
	slots := plan.Slots()
	require.Len(t, slots, 2)
	assert.Equal(t, "dp_pre_0", slots[0].Function)
	assert.Equal(t, "dp_post_0", slots[1].Function)
	for i, s := range slots {
		assert.Equal(t, []string{"a", "b"}[i], s.Hook.Name)
		assert.Equal(t, "entry", s.Entrypoint)
		assert.Equal(t, ebpf.XDP, s.Type)
		assert.Equal(t, ebpf.AttachXDP, s.AttachType)
		assert.Equal(t, int32(1), s.Verdict)
		assert.True(t, s.Frags)
		assert.Len(t, s.Proto.Params, i+1)
	}
}

// BTF holds no string with a zero byte, and a line break in a name would break the plan's columns.
func TestSlotsAndEntrypointsHaveAnyNames(t *testing.T) {
	testenv.BPF(t)
	const name = "a\x00\n\t\xffé"
	spec := program(ebpf.XDP, 0, 2)
	spec.Programs[name] = spec.Programs["entry"]
	delete(spec.Programs, "entry")
	slot := datapath.Hook{Owner: name, Name: name, Entrypoint: name, Kind: datapath.Pre}
	plan, err := datapath.NewPlan(spec, []datapath.Hook{slot}, datapath.Options{Features: datapath.Features{Freplace: true}})
	require.NoError(t, err)
	datapathtest.Load(t, plan.Build())
	assert.Contains(t, plan.String(), `"a\x00\n\t\xffé" (XDP)`)
	assert.Contains(t, plan.String(), `  pre       "a\x00\n\t\xffé/a\x00\n\t\xffé"  slot dp_pre_0`)
}

// What the caller gave stays as it was, and what has no hooks is as the caller gave it.
func TestBuildLeavesOthersAlone(t *testing.T) {
	spec := tailCall(ebpf.SchedCLS, ebpf.AttachTCXIngress, 0)
	spec.Programs["other"] = program(ebpf.XDP, 0, 2, using(8)).Programs["entry"]
	spec.Programs["entry"].SectionName, spec.Programs["entry"].License = "tcx/ingress", "GPL"
	code := program(ebpf.SchedCLS, 0, -1, asm.LoadMapPtr(asm.R1, 0).WithReference("progs"))
	code.Maps = map[string]*ebpf.MapSpec{"progs": {Name: "progs", Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1}}
	before, codeBefore := spec.Copy(), code.Copy()

	plan, err := datapath.NewPlan(spec, []datapath.Hook{hook(datapath.Pre, "a", code)}, datapath.Options{})
	require.NoError(t, err)
	built := plan.Build()
	assert.Equal(t, before, spec)
	assert.Equal(t, codeBefore, code)

	assert.Equal(t, spec.Programs["other"], built.Programs["other"])
	entry := built.Programs["entry"]
	assert.NotEqual(t, spec.Programs["entry"].Instructions, entry.Instructions)
	entry.Instructions = spec.Programs["entry"].Instructions
	assert.Equal(t, spec.Programs["entry"], entry)

	names := plan.Maps("entry", "acme", "a")
	require.Len(t, names, 1)
	assert.Equal(t, ebpf.Array, built.Maps[names["progs"]].Type, "the hook's map has another name than the entrypoint's")
	assert.Equal(t, ebpf.ProgramArray, built.Maps["progs"].Type)
	assert.Nil(t, plan.Maps("entry", "acme", "b"))

	again := plan.Build()
	built = plan.Build()
	assert.Equal(t, built, again)
	again.Maps["progs"].MaxEntries = 99
	again.Programs["entry"].Instructions[0].Constant = 99
	third := plan.Build()
	assert.Equal(t, built, third, "what was built belongs to the caller")
}

// The library's copies of maps share the bytes that they begin with.
func TestBuildCopiesWhatMapsBeginWith(t *testing.T) {
	spec := program(ebpf.XDP, 0, 2)
	spec.Maps = map[string]*ebpf.MapSpec{".data": {
		Name: ".data", Type: ebpf.Array, KeySize: 4, ValueSize: 1, MaxEntries: 1, Contents: []ebpf.MapKV{{Key: uint32(0), Value: []byte{1}}},
	}}
	plan, err := datapath.NewPlan(spec, nil, datapath.Options{})
	require.NoError(t, err)
	begin := func(spec *ebpf.CollectionSpec) []byte {
		bytes, ok := spec.Maps[".data"].Contents[0].Value.([]byte)
		require.True(t, ok)
		return bytes
	}
	begin(plan.Build())[0] = 2
	assert.Equal(t, []byte{1}, begin(spec), "what the plan was made from")
	begin(spec)[0] = 3
	assert.Equal(t, []byte{1}, begin(plan.Build()), "another copy")
}

func TestNoHooks(t *testing.T) {
	spec := program(ebpf.XDP, 0, 2)
	plan, err := datapath.NewPlan(spec, nil, datapath.Options{})
	require.NoError(t, err)
	built := plan.Build()
	assert.Equal(t, spec.Programs, built.Programs)
	assert.True(t, strings.HasPrefix(plan.String(), "no hooks"))
}
