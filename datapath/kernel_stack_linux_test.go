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

// Programs may read stack that they have not written (since Linux 6.3, with CAP_PERFMON). In a dispatcher it would hold pointers of other code there, with which
// they may not compute.
func TestStackThatNobodyWrote(t *testing.T) {
	testenv.BPF(t)
	for _, k := range runnable() {
		if k.program == ebpf.SkLookup {
			continue // takes no junk for a context, and knows no other stack
		}
		t.Run(k.name, func(t *testing.T) {
			var leaving asm.Instructions
			for place := int16(-8); place >= -64; place -= 8 {
				leaving = append(leaving, asm.StoreMem(asm.RFP, place, asm.R1, asm.DWord))
			}
			reading := func(verdict int32) *ebpf.CollectionSpec {
				return k.spec(asm.Instructions{
					asm.LoadMem(asm.R0, asm.RFP, -32, asm.DWord), asm.And.Imm(asm.R0, 0), asm.Add.Imm(asm.R0, verdict), asm.And.Imm(asm.R0, 3), asm.Return(),
				})
			}
			leaver := k.spec(append(leaving, returning(k.proceed[0])...))
			original := reading(k.pass)
			assert.Equal(t, k.pass, onPacket(t, datapathtest.Load(t, original).Programs["entry"]), "alone")

			pre := hook(datapath.Pre, "leaver", leaver)
			for name, hooks := range map[string][]datapath.Hook{
				"the original, in place": {pre},
				"the original":           {pre, hook(datapath.Observer, "observer", leaver)},
				"a hook":                 {pre, hook(datapath.Observer, "reader", reading(k.pass))},
			} {
				plan, err := datapath.NewPlan(original, hooks, datapath.Options{Features: hostFeatures(t)})
				require.NoError(t, err)
				assert.Equal(t, k.pass, onPacket(t, datapathtest.Load(t, plan.Build()).Programs["entry"]), name)
			}
			reader := hook(datapath.Pre, "reader", reading(k.pass))
			reader.Composition = datapath.Pasted
			_, err := datapath.NewPlan(original, []datapath.Hook{reader}, datapath.Options{})
			requireHookErrors(t, err)
		})
	}
}
