package datapath_test

import (
	"testing"

	"github.com/cilium/ebpf/asm"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/datapath"
	"github.com/cnikit/cnikit/datapath/datapathtest"
	"github.com/cnikit/cnikit/internal/testenv"
)

// On a way that cannot be taken the verifier believes anything of a number, and of all that it knows to be the same or to differ by a constant: the verdict
// too. What comes out of a dispatcher is in range nevertheless.
func TestVerdictInRangeWhateverHooksCompare(t *testing.T) {
	testenv.BPF(t)
	for _, k := range runnable() {
		comparing := k.spec(asm.Instructions{
			asm.Mov.Reg(asm.R9, asm.R2), asm.Sub.Imm32(asm.R9, 67810119), asm.JSGT.Reg32(asm.R9, asm.R9, "never"),
			asm.Mov.Imm(asm.R0, k.proceed[0]), asm.Return(),
			asm.Mov.Imm(asm.R0, k.proceed[0]).WithSymbol("never"), asm.Return(),
		})
		for _, kind := range []datapath.Kind{datapath.Post, datapath.Observer} {
			for _, counters := range []bool{false, true} {
				hooks := []datapath.Hook{hook(datapath.Pre, "pre", k.spec(returning(k.proceed[0]))), hook(kind, "comparing", comparing)}
				plan, err := datapath.NewPlan(k.spec(returning(k.pass)), hooks, datapath.Options{Features: hostFeatures(t), Counters: counters, CallOriginal: true})
				require.NoError(t, err)
				assert.Equal(t, k.pass, k.run(t, datapathtest.Load(t, plan.Build()).Programs["entry"]), k.name)
			}
		}
	}
}
