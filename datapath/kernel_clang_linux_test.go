package datapath_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/datapath"
	"github.com/cnikit/cnikit/datapath/datapathtest"
	"github.com/cnikit/cnikit/internal/testenv"
)

// compiled are programs of testdata/entry.c as entrypoints, and of testdata/hook.c as hooks. Both files have maps, constants, static data and functions, of the same names.
type compiled struct {
	suffix              string // of the programs' names: xdp or tc
	kind                kind
	entry, hooks        *ebpf.CollectionSpec
	entryAlone, hkAlone *ebpf.Collection
}

// sources are both files, compiled.
type sources struct {
	entry, hooks *ebpf.CollectionSpec
}

func compile(t *testing.T) sources {
	t.Helper()
	testenv.BPF(t)
	return sources{datapathtest.Compile(t, filepath.Join("testdata", "entry.c")), datapathtest.Compile(t, filepath.Join("testdata", "hook.c"))}
}

// programs loads the programs of both files alone.
func (s sources) programs(t *testing.T, suffix string, k kind) *compiled {
	t.Helper()
	c := &compiled{suffix: suffix, kind: k, entry: s.entry.Copy(), hooks: s.hooks.Copy()}
	require.NoError(t, c.entry.Variables["verdict"].Set(uint32(datapathPass)))
	require.NoError(t, c.hooks.Variables["limit"].Set(uint32(90)))
	c.entryAlone = datapathtest.Load(t, c.entry)
	alone := c.hooks
	for _, name := range []string{"post_xdp", "observe_xdp", "post_tc", "observe_tc"} {
		alone = datapathtest.Alone(alone, name)
	}
	c.hkAlone = datapathtest.Load(t, alone)
	return c
}

// datapathPass is a verdict that entry.c returns and at which post hooks of hook.c say another.
const datapathPass = 2

// hook is one of hook.c, for the entrypoint.
func (c *compiled) hook(entry, name string, kind datapath.Kind, composition datapath.Composition) datapath.Hook {
	return datapath.Hook{
		Owner: "clang", Name: name, Entrypoint: entry + "_" + c.suffix, Kind: kind, Collection: c.hooks, Program: name + "_" + c.suffix, Composition: composition,
	}
}

// alone is a hook, or with no verdict to tell it a program of entry.c, run by itself.
func (c *compiled) alone(t *testing.T, collection *ebpf.Collection, name string, packet []byte) func(int32) int32 {
	return func(verdict int32) int32 {
		if collection == c.hkAlone {
			require.NoError(t, collection.Maps[datapathtest.AloneVerdict].Put(uint32(0), verdict))
		}
		return datapathtest.Run(t, collection.Programs[name+"_"+c.suffix], packet).Verdict
	}
}

// eachCompiled runs a test for XDP and TC, in each composition.
func eachCompiled(t *testing.T, f func(t *testing.T, c *compiled, composition datapath.Composition, o datapath.Options)) {
	from := compile(t)
	for suffix, name := range map[string]string{"xdp": "XDP", "tc": "TC"} {
		for _, k := range runnable() {
			if k.name != name {
				continue
			}
			t.Run(name, func(t *testing.T) {
				ways(t, func(t *testing.T, composition datapath.Composition, o datapath.Options) {
					o.Features = hostFeatures(t)
					f(t, from.programs(t, suffix, k), composition, o)
				})
			})
		}
	}
}

// packets differ in length, around the hook's limit, and in the first byte, which picks the program that is called.
func packets() [][]byte {
	var all [][]byte
	for i, length := range []int{60, 89, 90, 91, 14, 200} {
		packet := make([]byte, length)
		packet[0] = byte(i % 3)
		packet[length-1] = byte(i)
		all = append(all, packet)
	}
	return all
}

// A dispatcher of programs from a compiler does what the programs do alone: verdicts, and everything in their maps, global variables too.
func TestCompiledPrograms(t *testing.T) {
	eachCompiled(t, func(t *testing.T, c *compiled, composition datapath.Composition, o datapath.Options) {
		plan, err := datapath.NewPlan(c.entry, []datapath.Hook{
			c.hook("entry", "pre", datapath.Pre, composition),
			c.hook("entry", "post", datapath.Post, composition),
			c.hook("entry", "observe", datapath.Observer, composition),
		}, o)
		require.NoError(t, err)
		together := datapathtest.Load(t, plan.Build())
		for _, packet := range packets() {
			verdict := c.kind.outcome(func() int32 { return c.alone(t, c.entryAlone, "entry", packet)(0) }, []rule{
				{kind: datapath.Pre, run: c.alone(t, c.hkAlone, "pre", packet)},
				{kind: datapath.Post, run: c.alone(t, c.hkAlone, "post", packet)},
				{kind: datapath.Observer, run: c.alone(t, c.hkAlone, "observe", packet)},
			})
			assert.Equal(t, verdict, datapathtest.Run(t, together.Programs["entry_"+c.suffix], packet).Verdict)
			for _, name := range []string{"counts", "flows", ".bss", ".data", ".rodata"} {
				assert.Equal(t, entries(t, c.entryAlone.Maps[name]), entries(t, together.Maps[name]), "the original's map %s", name)
			}
			names := plan.Maps("entry_"+c.suffix, "clang", "pre")
			for _, name := range []string{"counts", ".bss", ".data", ".rodata"} {
				require.Contains(t, names, name)
				assert.Equal(t, entries(t, c.hkAlone.Maps[name]), entries(t, together.Maps[names[name]]), "the hooks' map %s", name)
			}
			assert.Equal(t, perCPU(t, c.hkAlone.Maps["percpu"]), perCPU(t, together.Maps[names["percpu"]]), "the hooks' per-CPU map")
		}
		var ofEntry, ofHooks uint64
		require.NoError(t, together.Variables["runs"].Get(&ofEntry))
		name := plan.Variables("entry_"+c.suffix, "clang", "pre")["runs"]
		require.Contains(t, together.Variables, name)
		require.NoError(t, together.Variables[name].Get(&ofHooks))
		assert.NotZero(t, ofEntry)
		assert.Greater(t, ofHooks, ofEntry, "both have a variable of this name; three hooks run where one original does")
	})
}

// perCPU is the sum over the entry of a per-CPU array.
func perCPU(t *testing.T, m *ebpf.Map) (sum uint64) {
	t.Helper()
	var values []uint64
	require.NoError(t, m.Lookup(uint32(0), &values))
	for _, v := range values {
		sum += v
	}
	return sum
}

// Hooks and originals from a compiler that tail-call: what is called comes back to the dispatcher. Only such hooks cannot be pasted.
func TestCompiledProgramsWithTailCalls(t *testing.T) {
	eachCompiled(t, func(t *testing.T, c *compiled, composition datapath.Composition, o datapath.Options) {
		jumping := c.hook("calling", "jumping", datapath.Pre, composition)
		hooks := []datapath.Hook{jumping, c.hook("calling", "post", datapath.Post, composition), c.hook("calling", "observe", datapath.Observer, composition)}
		if composition == datapath.Pasted {
			_, err := datapath.NewPlan(c.entry, hooks, o)
			requireHookErrors(t, err)
			require.ErrorContains(t, err, "clang/jumping")
			hooks[0].Composition = datapath.Auto
		}
		plan, err := datapath.NewPlan(c.entry, hooks, o)
		require.NoError(t, err)
		together := datapathtest.Load(t, plan.Build())
		verdicts := map[int32]bool{}
		for _, packet := range packets() {
			verdict := c.kind.outcome(func() int32 { return c.alone(t, c.entryAlone, "calling", packet)(0) }, []rule{
				{kind: datapath.Pre, run: c.alone(t, c.hkAlone, "jumping", packet)},
				{kind: datapath.Post, run: c.alone(t, c.hkAlone, "post", packet)},
				{kind: datapath.Observer, run: c.alone(t, c.hkAlone, "observe", packet)},
			})
			assert.Equal(t, verdict, datapathtest.Run(t, together.Programs["calling_"+c.suffix], packet).Verdict)
			assert.Equal(t, entries(t, c.entryAlone.Maps["counts"]), entries(t, together.Maps["counts"]))
			names := plan.Maps("calling_"+c.suffix, "clang", "jumping")
			assert.Equal(t, entries(t, c.hkAlone.Maps["counts"]), entries(t, together.Maps[names["counts"]]))
			verdicts[verdict] = true
		}
		assert.Len(t, verdicts, 2, "one of what is called, one of the original that calls nothing")
	})
}

// Both entrypoints of one collection, with the same hooks, and one entrypoint without any: it keeps its instructions.
func TestCompiledProgramsOfSeveralTypes(t *testing.T) {
	from := compile(t)
	for _, composition := range []datapath.Composition{datapath.Pasted, datapath.Called} {
		t.Run(composition.String(), func(t *testing.T) {
			c := from.programs(t, "xdp", runnable()[0])
			d := *c
			d.suffix = "tc"
			plan, err := datapath.NewPlan(c.entry, []datapath.Hook{
				c.hook("entry", "pre", datapath.Pre, composition), d.hook("entry", "pre", datapath.Pre, composition), d.hook("entry", "post", datapath.Post, composition),
			}, datapath.Options{Features: hostFeatures(t)})
			require.NoError(t, err)
			built := plan.Build()
			assert.Equal(t, fmt.Sprint(c.entry.Programs["calling_tc"].Instructions), fmt.Sprint(built.Programs["calling_tc"].Instructions), "nobody hooks it")
			together := datapathtest.Load(t, built)
			packet := make([]byte, 60)
			assert.Equal(t, int32(datapathPass), datapathtest.Run(t, together.Programs["entry_xdp"], packet).Verdict)
			assert.Equal(t, int32(7), datapathtest.Run(t, together.Programs["entry_tc"], packet).Verdict)
			shared := plan.Maps("entry_xdp", "clang", "pre")
			assert.Equal(t, shared["counts"], plan.Maps("entry_tc", "clang", "post")["counts"], "hooks with one collection share its maps")
		})
	}
}
