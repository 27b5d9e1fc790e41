package datapath_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/datapath"
	"github.com/cnikit/cnikit/datapath/datapathtest"
	"github.com/cnikit/cnikit/internal/testenv"
)

// features are the programs of testdata/features.c, and whether they can be pasted.
func features() map[string]bool {
	return map[string]bool{
		"firewall": true, "bytes": true, "loops": true, "lock": true, "timer": true,
		"text": false, "dynptr": false, // what they leave on the stack would be in the way of bytes
	}
}

// What kernels offer to C beyond maps and helpers works in an original and in hooks around it as in programs alone, whatever stands next to it.
func TestFeaturesNextToEachOther(t *testing.T) {
	testenv.BPF(t)
	from := datapathtest.Compile(t, filepath.Join("testdata", "features.c"))
	for suffix, k := range map[string]kind{"_xdp": runnable()[0], "_tc": runnable()[2]} {
		for original := range features() {
			for hook, pastable := range features() {
				t.Run(strings.TrimPrefix(suffix, "_")+"/"+hook+" around "+original, func(t *testing.T) {
					f := featured{kind: k, original: only(from, original+suffix), hook: only(from, hook+suffix), pastable: pastable}
					f.compare(t, datapath.Auto, datapath.Options{})
					if hook == original {
						f.compare(t, datapath.Called, datapath.Options{CallOriginal: true})
					}
				})
			}
		}
	}
}

// only is a collection with one program of another one, named "entry", and the maps that it loads.
func only(spec *ebpf.CollectionSpec, program string) *ebpf.CollectionSpec {
	c := spec.Copy()
	c.Programs = map[string]*ebpf.ProgramSpec{"entry": c.Programs[program]}
	used := map[string]bool{}
	for _, ins := range c.Programs["entry"].Instructions {
		used[ins.Reference()] = true
	}
	maps.DeleteFunc(c.Maps, func(name string, _ *ebpf.MapSpec) bool { return !used[name] })
	maps.DeleteFunc(c.Variables, func(_ string, v *ebpf.VariableSpec) bool { return !used[v.SectionName] })
	return c
}

// featured is a program with another one before and after it.
type featured struct {
	kind           kind
	original, hook *ebpf.CollectionSpec
	pastable       bool // the hook
}

// compare runs both ways: alone, one after the other, and as one program.
func (f featured) compare(t *testing.T, composition datapath.Composition, o datapath.Options) {
	t.Helper()
	o.Features = hostFeatures(t)
	hook := func(name string, kind datapath.Kind, composition datapath.Composition) datapath.Hook {
		return datapath.Hook{Owner: "c", Name: name, Entrypoint: "entry", Kind: kind, Collection: f.hook.Copy(), Program: "entry", Composition: composition}
	}
	_, err := datapath.NewPlan(f.original, []datapath.Hook{hook("pre", datapath.Pre, datapath.Pasted)}, o)
	if !f.pastable {
		requireHookErrors(t, err)
	} else {
		require.NoError(t, err)
	}
	hooks := []datapath.Hook{hook("pre", datapath.Pre, composition), hook("post", datapath.Post, composition), hook("observe", datapath.Observer, composition)}
	plan, err := datapath.NewPlan(f.original, hooks, o)
	require.NoError(t, err)
	together := datapathtest.Load(t, plan.Build())
	original := datapathtest.Load(t, f.original)
	alone := map[string]*ebpf.Collection{}
	var rules []rule
	for _, h := range hooks {
		alone[h.Name] = datapathtest.Load(t, f.hook)
	}
	for i := range 6 {
		packet := somePacket()
		packet[37] = byte(i * 3) // the port
		rules = rules[:0]
		for _, h := range hooks {
			rules = append(rules, rule{kind: h.Kind, run: func(int32) int32 { return datapathtest.Run(t, alone[h.Name].Programs["entry"], packet).Verdict }})
		}
		want := f.kind.outcome(func() int32 { return datapathtest.Run(t, original.Programs["entry"], packet).Verdict }, rules)
		require.Equal(t, want, datapathtest.Run(t, together.Programs["entry"], packet).Verdict, "%s", plan)
	}
	for name, m := range original.Maps {
		assert.Equal(t, contents(t, m), contents(t, together.Maps[name]), "the original's map %s", name)
	}
	for _, h := range hooks {
		for name, merged := range plan.Maps("entry", h.Owner, h.Name) {
			assert.Equal(t, contents(t, alone[h.Name].Maps[name]), contents(t, together.Maps[merged]), "the %s hook's map %s", h.Name, name)
		}
	}
}

// contents is what a map holds, of a per-CPU map on all processors together, and of one that is read once nothing.
func contents(t *testing.T, m *ebpf.Map) map[string]string {
	t.Helper()
	require.NotNil(t, m)
	all := map[string]string{}
	switch m.Type() {
	case ebpf.RingBuf:
	case ebpf.PerCPUHash:
		var key uint32
		var values []uint64
		for it := m.Iterate(); it.Next(&key, &values); {
			sum := uint64(0)
			for _, v := range values {
				sum += v
			}
			all[fmt.Sprint(key)] = fmt.Sprint(sum)
		}
	default:
		for key, value := range entries(t, m) {
			all[fmt.Sprintf("%x", key)] = fmt.Sprintf("%x", value)
		}
	}
	return all
}
