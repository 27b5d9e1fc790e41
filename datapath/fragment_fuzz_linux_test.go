package datapath

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/datapath/datapathtest"
	"github.com/cnikit/cnikit/internal/testenv"
)

// FuzzFragmentLoads spoils random programs here and there. What the verifier still accepts alone, it accepts in every way that we
// offer, or we have said that we do not.
func FuzzFragmentLoads(f *testing.F) {
	testenv.BPF(f)
	for seed := range uint64(10) {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, program, changes uint64) { loadMutant(t, program, changes) })
}

// TestMutantsLoad is the fuzz target with as many seeds as the scale says.
func TestMutantsLoad(t *testing.T) {
	testenv.BPF(t)
	valid, mutants := 0, testenv.Scale(t, 300)
	for seed := range uint64(mutants) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			if loadMutant(t, seed, seed) {
				valid++
			}
		})
	}
	assert.Greater(t, valid, mutants/20, "nearly no changed program is valid")
}

// loadMutant says whether the program was still valid, alone.
func loadMutant(t *testing.T, program, changes uint64) bool {
	t.Helper()
	h := hosts()[program%2]
	spec := datapathtest.Random(rand.New(rand.NewPCG(program, 1)), h.random)
	mutate(rand.New(rand.NewPCG(changes, 2)), spec.Programs[datapathtest.RandomProgram].Instructions)
	if loads(t, spec) != nil {
		return false
	}
	main := &ebpf.ProgramSpec{Name: "main", Type: h.random.Type, License: "GPL"}
	f, _, err := newLinker(&ebpf.CollectionSpec{Programs: map[string]*ebpf.ProgramSpec{}}, &ebpf.CollectionSpec{}).hook(main, spec, datapathtest.RandomProgram, "dp_h0_")
	require.NoError(t, err, "the verifier accepts it")
	for name, way := range ways() {
		if f.unpastable != "" && name != "called" && name != "following" {
			continue
		}
		out, _, _, err := tryToAssemble(t, h, spec, datapathtest.RandomProgram, way)
		if err != nil { // a pointer that changes where it is kept may lead anywhere, for all that is measured
			requireRefusal(t, err)
			return false
		}
		if err := loads(t, out); err != nil {
			datapathtest.Load(t, out) // fails, and says why
			t.Errorf("%s: %v", name, err)
		}
	}
	return true
}

// loads loads a collection and lets it go. Without the verifier's words, which cost more than all else.
func loads(t *testing.T, spec *ebpf.CollectionSpec) error {
	t.Helper()
	collection, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{Programs: ebpf.ProgramOptions{LogDisabled: true}})
	if err == nil {
		collection.Close()
	}
	return err
}

// mutate changes a few instructions: a register, a distance, a constant, an operation, or the order of two.
func mutate(rng *rand.Rand, code asm.Instructions) {
	for range 1 + rng.IntN(3) {
		i := rng.IntN(len(code))
		ins := &code[i]
		switch rng.IntN(6) {
		case 0:
			ins.Dst = asm.Register(rng.IntN(11))
		case 1:
			if ins.Src <= asm.RFP && len(registers(ins)) == 2 {
				ins.Src = asm.Register(rng.IntN(11))
			}
		case 2:
			if ins.Reference() == "" {
				ins.Offset += int16(rng.IntN(65)) - 32
			}
		case 3:
			if ins.Reference() == "" && !ins.IsBuiltinCall() {
				ins.Constant = int64(int32(rng.Uint32()) >> rng.IntN(32))
			}
		case 4:
			if j := rng.IntN(len(code)); len(registers(ins)) > 0 && ins.OpCode.Class() == code[j].OpCode.Class() && ins.Reference() == "" && code[j].Reference() == "" {
				ins.OpCode = code[j].OpCode
			}
		case 5:
			if i+1 < len(code) && ins.Symbol() == "" && code[i+1].Symbol() == "" {
				code[i], code[i+1] = code[i+1], code[i]
			}
		}
	}
}
