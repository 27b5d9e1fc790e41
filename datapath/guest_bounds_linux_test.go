package datapath_test

import (
	"fmt"
	"os"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/datapath"
	"github.com/cnikit/cnikit/internal/testenv"
)

// stackRule is a rule about stack: what the builder says of a size, and a program written by hand of which the kernel says whether that is so.
type stackRule struct {
	name    string
	spec    func(size int16) *ebpf.CollectionSpec // the original
	hooks   func(size int16) []datapath.Hook
	byHand  func(size int16) *ebpf.CollectionSpec
	largest map[bool]int16 // by whether frames count in small steps (6.9 and newer)
}

// At every size from nothing to the whole stack, the builder refuses exactly what the kernel refuses, by the rules of the kernel's
// version; and what it does not refuse loads.
func TestGuestStackRules(t *testing.T) {
	testenv.InGuest(t)
	features, err := datapath.KernelFeatures(os.Getenv("CNIKIT_GUEST"))
	require.NoError(t, err)
	for _, rule := range stackRules() {
		t.Run(rule.name, func(t *testing.T) {
			largest := int16(0)
			for size := int16(8); size <= 512; size += 8 {
				plan, err := datapath.NewPlan(rule.spec(size), rule.hooks(size), datapath.Options{Features: features, CallOriginal: true})
				kernel := loadsAtAll(t, rule.byHand(size))
				if !assert.Equal(t, kernel, err == nil, "%d bytes: the kernel loads it: %v; the builder: %v", size, kernel, err) || err != nil {
					continue
				}
				largest = size
				assert.True(t, loadsAtAll(t, plan.Build()), "%d bytes: the builder says yes and the kernel no", size)
			}
			assert.Equal(t, rule.largest[features.SmallFrames], largest, "the largest size")
		})
	}
}

func loadsAtAll(t *testing.T, spec *ebpf.CollectionSpec) bool {
	t.Helper()
	collection, err := ebpf.NewCollection(spec)
	if err != nil {
		return false
	}
	collection.Close()
	return true
}

func stackRules() []stackRule {
	const xdp = ebpf.XDP
	with := func(spec *ebpf.CollectionSpec, size int16) *ebpf.CollectionSpec {
		entry := spec.Programs["entry"]
		entry.Instructions = append(asm.Instructions{using(size)}, entry.Instructions...)
		return spec
	}
	forced := func(h datapath.Hook, c datapath.Composition) datapath.Hook { h.Composition = c; return h }
	return []stackRule{
		{
			name: "an original that is called", largest: map[bool]int16{false: 480, true: 512},
			spec: func(size int16) *ebpf.CollectionSpec { return program(xdp, 0, 2, using(size)) },
			hooks: func(int16) []datapath.Hook {
				return []datapath.Hook{forced(hook(datapath.Post, "a", program(xdp, 0, -1)), datapath.Called)}
			},
			byHand: func(size int16) *ebpf.CollectionSpec { return calling(program(xdp, 0, 2, using(size)), 0) },
		},
		{
			name: "a hook that is called", largest: map[bool]int16{false: 480, true: 512},
			spec: func(int16) *ebpf.CollectionSpec { return program(xdp, 0, 2) },
			hooks: func(size int16) []datapath.Hook {
				return []datapath.Hook{forced(hook(datapath.Pre, "a", program(xdp, 0, -1, using(size))), datapath.Called)}
			},
			byHand: func(size int16) *ebpf.CollectionSpec { return calling(program(xdp, 0, 2, using(size)), 0) },
		},
		{
			name: "a pasted hook above an original that makes tail calls", largest: map[bool]int16{false: 224, true: 240},
			spec: func(int16) *ebpf.CollectionSpec { return tailCall(xdp, 0, 2) },
			hooks: func(size int16) []datapath.Hook {
				return []datapath.Hook{
					forced(hook(datapath.Pre, "a", program(xdp, 0, -1, using(size))), datapath.Pasted),
					forced(hook(datapath.Post, "b", program(xdp, 0, -1)), datapath.Called),
				}
			},
			byHand: func(size int16) *ebpf.CollectionSpec { return calling(tailCall(xdp, 0, 2), size) },
		},
		{
			name: "an original with stack that makes tail calls", largest: map[bool]int16{false: 480, true: 512},
			spec: func(size int16) *ebpf.CollectionSpec { return with(tailCall(xdp, 0, 2), size) },
			hooks: func(int16) []datapath.Hook {
				return []datapath.Hook{forced(hook(datapath.Post, "a", program(xdp, 0, -1)), datapath.Called)}
			},
			byHand: func(size int16) *ebpf.CollectionSpec { return calling(with(tailCall(xdp, 0, 2), size), 0) },
		},
	}
}

// calling puts a main function with a frame of its own above a program, which becomes a global function, and nothing else.
func calling(spec *ebpf.CollectionSpec, frame int16) *ebpf.CollectionSpec {
	proto := &btf.FuncProto{
		Return: &btf.Int{Name: "int", Size: 4, Encoding: btf.Signed},
		Params: []btf.FuncParam{{Name: "ctx", Type: &btf.Pointer{Target: &btf.Struct{Name: "xdp_md"}}}},
	}
	function := func(name string, code asm.Instructions) asm.Instructions {
		first := btf.WithFuncMetadata(code[0].WithSymbol(name), &btf.Func{Name: name, Linkage: btf.GlobalFunc, Type: proto})
		return append(asm.Instructions{first}, code[1:]...)
	}
	var main asm.Instructions
	if frame > 0 {
		main = asm.Instructions{using(frame)}
	}
	main = append(main, asm.Call.Label("callee"), asm.Return())
	entry := spec.Programs["entry"]
	entry.Instructions = append(function("main", main), function("callee", entry.Instructions)...)
	return spec
}

// As many functions as the kernel takes are accepted by both; the builder refuses one more.
func TestGuestFunctionRules(t *testing.T) {
	testenv.InGuest(t)
	hooks := func(n int) []datapath.Hook {
		var hooks []datapath.Hook
		for i := range n {
			h := hook(datapath.Pre, fmt.Sprintf("%03d", i), program(ebpf.XDP, 0, -1))
			h.Composition = datapath.Called
			hooks = append(hooks, h)
		}
		return hooks
	}
	plan, err := datapath.NewPlan(program(ebpf.XDP, 0, 2), hooks(255), datapath.Options{})
	require.NoError(t, err)
	assert.True(t, loadsAtAll(t, plan.Build()), "256 functions")
	_, err = datapath.NewPlan(program(ebpf.XDP, 0, 2), hooks(256), datapath.Options{})
	require.ErrorContains(t, err, "would have 257 functions")
}

// As many maps as the kernel takes are accepted by both. One more is refused by both.
func TestGuestMapRules(t *testing.T) {
	testenv.InGuest(t)
	hooks := []datapath.Hook{hook(datapath.Pre, "a", withMaps(32))}
	plan, err := datapath.NewPlan(withMaps(32), hooks, datapath.Options{})
	require.NoError(t, err)
	assert.True(t, loadsAtAll(t, plan.Build()), "64 maps")
	assert.True(t, loadsAtAll(t, withMaps(64)))
	assert.False(t, loadsAtAll(t, withMaps(65)))
	_, err = datapath.NewPlan(withMaps(33), hooks, datapath.Options{})
	require.ErrorContains(t, err, "65 maps")
}
