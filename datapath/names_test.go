package datapath_test

import (
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/datapath"
)

// counting returns a collection with a map and a global variable.
func counting() *ebpf.CollectionSpec {
	spec := program(ebpf.XDP, 0, -1, asm.LoadMapPtr(asm.R1, 0).WithReference("counts"), asm.LoadMapValue(asm.R1, 0, 0).WithReference(".data"))
	spec.Maps = map[string]*ebpf.MapSpec{
		"counts": {Name: "counts", Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1},
		".data":  {Name: ".data", Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1},
		"other":  {Name: "other", Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1},
	}
	spec.Variables = map[string]*ebpf.VariableSpec{
		"limit":  {Name: "limit", SectionName: ".data", Value: []byte{1, 0, 0, 0}},
		"beside": {Name: "beside", SectionName: ".bss", Value: []byte{0}},
	}
	return spec
}

// Hooks at two entrypoints have maps and variables of their own, unless they have the same collection.
func TestNamesOfMapsAndVariables(t *testing.T) {
	shared := counting()
	for _, tc := range []struct {
		name   string
		second *ebpf.CollectionSpec
		shares bool
	}{
		{"the same collection", shared, true},
		{"another one", counting(), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			spec := program(ebpf.XDP, 0, 2)
			spec.Programs["second"] = spec.Programs["entry"].Copy()
			first, second := hook(datapath.Pre, "a", shared), hook(datapath.Pre, "a", tc.second)
			second.Entrypoint = "second"
			plan, err := datapath.NewPlan(spec, []datapath.Hook{first, second}, datapath.Options{})
			require.NoError(t, err)
			built := plan.Build()

			maps, others := plan.Maps("entry", "acme", "a"), plan.Maps("second", "acme", "a")
			variables, otherVariables := plan.Variables("entry", "acme", "a"), plan.Variables("second", "acme", "a")
			if tc.shares {
				assert.Equal(t, maps, others)
				assert.Equal(t, variables, otherVariables)
				assert.Len(t, built.Maps, 2)
				assert.Len(t, built.Variables, 1)
			} else {
				assert.Len(t, built.Maps, 4)
				assert.Len(t, built.Variables, 2)
				assert.NotEqual(t, variables, otherVariables)
			}
			for _, names := range []map[string]string{maps, others} {
				assert.Len(t, names, 2, "the map that no program uses stays away")
				assert.Equal(t, uint32(8), built.Maps[names["counts"]].ValueSize)
			}
			for _, names := range []map[string]string{variables, otherVariables} {
				require.Len(t, names, 1, "the variable that no program uses stays away")
				assert.Contains(t, []string{maps[".data"], others[".data"]}, built.Variables[names["limit"]].SectionName)
			}
			assert.Nil(t, plan.Variables("entry", "acme", "b"))
		})
	}
}
