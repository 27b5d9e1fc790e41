package datapath

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/datapath/datapathtest"
	"github.com/cnikit/cnikit/internal/testenv"
)

// around makes a program with a fragment in it, in one of the ways in which one can be.
type around func(t *testing.T, h host, f *fragment) asm.Instructions

// pastedAlone is nothing but the body: what remains of the exits is one.
func pastedAlone(t *testing.T, _ host, f *fragment) asm.Instructions {
	body, err := f.pasted(0)
	require.NoError(t, err)
	return append(body, asm.Return())
}

// pastedShifted keeps the top of the stack for itself, and looks that it is left alone.
func pastedShifted(t *testing.T, _ host, f *fragment) asm.Instructions {
	body, err := f.pasted(24)
	require.NoError(t, err)
	code := asm.Instructions{asm.Mov.Imm(asm.R0, 77), asm.StoreMem(asm.RFP, -8, asm.R0, asm.DWord), asm.StoreMem(asm.RFP, -24, asm.R0, asm.DWord)}
	code = append(code, body...)
	return append(code,
		asm.LoadMem(asm.R1, asm.RFP, -8, asm.DWord), asm.LoadMem(asm.R2, asm.RFP, -24, asm.DWord),
		asm.JNE.Imm(asm.R1, 77, "broken"), asm.JNE.Imm(asm.R2, 77, "broken"), asm.Return(),
		asm.Mov.Imm(asm.R0, 4711).WithSymbol("broken"), asm.Return(),
	)
}

// pastedKeeping keeps as many registers as the body can do without, and looks that they are left alone.
func pastedKeeping(t *testing.T, _ host, f *fragment) asm.Instructions {
	keep := []asm.Register{asm.R6, asm.R7, asm.R8, asm.R9}[:4-f.savedRegisters]
	body, err := f.pasted(8, keep...)
	require.NoError(t, err)
	var code asm.Instructions
	for _, r := range keep {
		code = append(code, asm.Mov.Imm(r, int32(r)*11))
	}
	code = append(code, body...)
	for _, r := range keep {
		code = append(code, asm.JNE.Imm(r, int32(r)*11, "broken"))
	}
	code = append(code, asm.Return())
	if len(keep) > 0 {
		code = append(code, asm.Mov.Imm(asm.R0, 4711).WithSymbol("broken"), asm.Return())
	}
	return code
}

// called calls the fragment as a function.
func called(t *testing.T, h host, f *fragment) asm.Instructions {
	code := asm.Instructions{asm.Call.Label("dp_body"), asm.Return()}
	body, err := f.called("dp_body", h.proto())
	require.NoError(t, err)
	return append(code, body...)
}

// follows puts the fragment behind something else.
func follows(t *testing.T, _ host, f *fragment) asm.Instructions {
	body, err := f.following()
	require.NoError(t, err)
	return append(asm.Instructions{asm.Mov.Imm(asm.R9, 1), asm.Mov.Imm(asm.R8, 2)}, body...)
}

func ways() map[string]around {
	return map[string]around{
		"pasted": pastedAlone, "shifted": pastedShifted, "keeping": pastedKeeping, "called": called, "following": follows,
	}
}

// assemble makes a collection whose program "main" has the fragment in it.
func assemble(t *testing.T, h host, c *ebpf.CollectionSpec, program string, way around) (*ebpf.CollectionSpec, map[string]string, *fragment) {
	t.Helper()
	out, names, f, err := tryToAssemble(t, h, c, program, way)
	require.NoError(t, err)
	return out, names, f
}

// tryToAssemble returns an error when the whole is too large for the kernel.
func tryToAssemble(t *testing.T, h host, c *ebpf.CollectionSpec, program string, way around) (*ebpf.CollectionSpec, map[string]string, *fragment, error) {
	t.Helper()
	main := &ebpf.ProgramSpec{Name: "main", Type: h.random.Type, License: "GPL"}
	out := &ebpf.CollectionSpec{Programs: map[string]*ebpf.ProgramSpec{"main": main}}
	f, names, err := newLinker(out, &ebpf.CollectionSpec{}).hook(main, c, program, "dp_h0_")
	require.NoError(t, err)
	main.Instructions = append(way(t, h, f), f.subs...)
	main.Instructions[0] = describe(main.Instructions[0].WithSymbol("main"), "main", &btf.Func{Type: h.proto(), Linkage: btf.GlobalFunc})
	whole, err := inspect(main)
	require.NoError(t, err)
	return out, names, f, checkProgram(main, whole.frame, true)
}

// outcome is all that a run leaves behind.
type outcome struct {
	results []string // verdicts and packets
	maps    map[string]string
}

func packets() [][]byte {
	var all [][]byte
	for _, size := range []int{0, 10, 300} {
		all = append(all, datapathtest.Packet(datapathtest.Ethernet{}, datapathtest.IPv4{}, datapathtest.UDP{}, datapathtest.Payload(fmt.Sprintf("%*d", size, size))))
	}
	return all
}

func runAll(t *testing.T, spec *ebpf.CollectionSpec, program string, names map[string]string) outcome {
	t.Helper()
	collection := datapathtest.Load(t, spec)
	o := outcome{maps: map[string]string{}}
	for _, packet := range packets() {
		result := datapathtest.Run(t, collection.Programs[program], packet)
		o.results = append(o.results, fmt.Sprintf("%d %x", result.Verdict, result.Packet))
	}
	for name, key := range names {
		o.maps[name] = dump(t, collection.Maps[key])
	}
	return o
}

// dump renders what a map holds; identifiers of maps and programs, which are others in each collection, are left out.
func dump(t *testing.T, m *ebpf.Map) string {
	t.Helper()
	if m.Type() == ebpf.ProgramArray || m.Type() == ebpf.ArrayOfMaps {
		return ""
	}
	entries := map[string]string{}
	key, value := make([]byte, m.KeySize()), make([]byte, m.ValueSize())
	for iterator := m.Iterate(); iterator.Next(&key, &value); {
		entries[fmt.Sprintf("%x", key)] = fmt.Sprintf("%x", value)
	}
	lines := make([]string, 0, len(entries))
	for _, k := range slices.Sorted(maps.Keys(entries)) {
		lines = append(lines, k+"="+entries[k])
	}
	return fmt.Sprint(lines)
}

// identity names each map as itself.
func identity(names map[string]string) map[string]string {
	same := map[string]string{}
	for name := range names {
		same[name] = name
	}
	return same
}

// Whatever way a program gets into another, it returns, writes and counts the same as alone.
func TestFragmentsDoTheSameAsAlone(t *testing.T) {
	testenv.BPF(t)
	for _, h := range hosts() {
		pasted, seeds := 0, testenv.Scale(t, 60)
		for seed := range seeds {
			t.Run(fmt.Sprintf("%s/%d", h.random.Type, seed), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(uint64(seed), 7))
				o := h.random
				o.Statements, o.TailCalls = 1+rng.IntN(30), seed%4 == 0
				if compareWays(t, h, datapathtest.Random(rng, o), datapathtest.RandomProgram) {
					pasted++
				}
			})
		}
		assert.Greater(t, pasted, seeds/2, "few programs could be pasted")
	}
}

// compareWays runs the program alone and in every way that it allows, and says whether it could be pasted.
func compareWays(t *testing.T, h host, spec *ebpf.CollectionSpec, program string) bool {
	t.Helper()
	untouched := spec.Copy()
	_, names, f := assemble(t, h, spec, program, called)
	want := runAll(t, spec, program, identity(names))
	for name, way := range ways() {
		if f.unpastable != "" && name != "called" && name != "following" {
			continue
		}
		out, names, _ := assemble(t, h, spec, program, way)
		require.Equal(t, want, runAll(t, out, "main", names), name)
	}
	require.Equal(t, untouched.Programs, spec.Programs, "the input was changed")
	require.Equal(t, untouched.Maps, spec.Maps, "the input was changed")
	return f.unpastable == ""
}
