package datapath_test

import (
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/datapath"
	"github.com/cnikit/cnikit/datapath/datapathtest"
	"github.com/cnikit/cnikit/internal/testenv"
)

// Why what makes tail calls is a global function: of a static one 6.1 and 6.12 take the verdict of the way without tail call for the only one, and drop
// what the caller does with others (6.1.176 and 6.12.117 returned the wrong verdict for each type below; 6.18.44 the right one). By hand, and by the builder.
func TestGuestTailCallsComeBack(t *testing.T) {
	testenv.InGuest(t)
	for _, k := range runnable() {
		if k.name != "XDP" && k.name != "TC" && k.name != "cgroup_skb ingress" {
			continue
		}
		t.Run(k.name, func(t *testing.T) {
			global := k.run(t, datapathtest.Load(t, callingTailCaller(k, btf.GlobalFunc)).Programs["entry"])
			assert.Equal(t, k.pass, global, "the caller of a global function saw the verdict of the program that it tail-called")
			static := k.run(t, datapathtest.Load(t, callingTailCaller(k, btf.StaticFunc)).Programs["entry"])
			t.Logf("the caller of a static function returned %d, and should have returned %d", static, k.pass)

			override := link{name: "a", kind: datapath.Post, returns: k.pass, proceed: []int32{-1}}
			trace := datapathtest.NewTrace(t)
			plan, err := datapath.NewPlan(tailCalling(k, "twice", k.pass, k.stop), []datapath.Hook{
				{Owner: "o", Name: "a", Entrypoint: "entry", Kind: datapath.Post, Collection: k.spec(override.code(trace, 1)), Program: "entry", Proceed: []int32{-1}},
			}, datapath.Options{})
			require.NoError(t, err)
			assert.Equal(t, k.pass, k.run(t, datapathtest.Load(t, plan.Build()).Programs["entry"]))
			assert.Equal(t, []int32{1, k.stop}, trace.Take(t), "the post hook saw the verdict of the program that was tail-called")
		})
	}
}

// callingTailCaller calls a function that tail-calls a program that says stop, or else says pass; and turns what it is told around.
func callingTailCaller(k kind, linkage btf.FuncLinkage) *ebpf.CollectionSpec {
	spec := tailCalling(k, "once", k.pass, k.stop)
	entry := spec.Programs["entry"]
	proto := &btf.FuncProto{
		Return: &btf.Int{Name: "int", Size: 4, Encoding: btf.Signed},
		Params: []btf.FuncParam{{Name: "ctx", Type: &btf.Pointer{Target: &btf.Struct{Name: contextName(k)}}}},
	}
	function := func(name string, linkage btf.FuncLinkage, code asm.Instructions) asm.Instructions {
		first := btf.WithFuncMetadata(code[0].WithSymbol(name), &btf.Func{Name: name, Linkage: linkage, Type: proto})
		return append(asm.Instructions{first}, code[1:]...)
	}
	main := asm.Instructions{
		asm.Call.Label("callee"), asm.JEq.Imm32(asm.R0, k.stop, "stopped"), asm.Mov.Imm(asm.R0, k.stop), asm.Return(),
		asm.Mov.Imm(asm.R0, k.pass).WithSymbol("stopped"), asm.Return(),
	}
	entry.Instructions = append(function("main", btf.GlobalFunc, main), function("callee", linkage, entry.Instructions)...)
	return spec
}

func contextName(k kind) string {
	if k.program == ebpf.XDP {
		return "xdp_md"
	}
	return "__sk_buff"
}
