package datapath_test

import (
	"testing"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/datapath"
	"github.com/cnikit/cnikit/datapath/datapathtest"
	"github.com/cnikit/cnikit/internal/testenv"
)

// Each entrypoint has counters of its own, and they add up. The verdict rules' test looks at single runs.
func TestCountersAddUp(t *testing.T) {
	testenv.BPF(t)
	spec := program(ebpf.XDP, 0, 2)
	spec.Programs["second"] = spec.Programs["entry"].Copy()
	var hooks []datapath.Hook
	for _, entrypoint := range []string{"entry", "second"} {
		for name, verdict := range map[string]int32{"a": -1, "b": 1} {
			h := hook(datapath.Pre, name, program(ebpf.XDP, 0, verdict))
			h.Entrypoint = entrypoint
			hooks = append(hooks, h)
		}
	}
	plan, err := datapath.NewPlan(spec, hooks, datapath.Options{Counters: true})
	require.NoError(t, err)
	collection := datapathtest.Load(t, plan.Build())
	packet := make([]byte, 64)
	for range 3 {
		datapathtest.Run(t, collection.Programs["entry"], packet)
	}
	datapathtest.Run(t, collection.Programs["second"], packet)

	counters, err := plan.ReadCounters(collection.Maps[datapath.CountersMap])
	require.NoError(t, err)
	count := func(entrypoint, hook string, runs, ends uint64, verdict int32) datapath.HookCounters {
		return datapath.HookCounters{Entrypoint: entrypoint, Owner: "acme", Hook: hook, Runs: runs, Terminations: ends, Verdicts: map[int32]uint64{verdict: runs}}
	}
	assert.Equal(t, []datapath.HookCounters{
		count("entry", "a", 3, 0, -1), count("entry", "b", 3, 3, 1), count("second", "a", 1, 0, -1), count("second", "b", 1, 1, 1),
	}, counters)
}

func TestReadCountersOfAnotherMap(t *testing.T) {
	testenv.BPF(t)
	hooks := []datapath.Hook{hook(datapath.Pre, "a", program(ebpf.XDP, 0, -1))}
	plan, err := datapath.NewPlan(program(ebpf.XDP, 0, 2), hooks, datapath.Options{Counters: true})
	require.NoError(t, err)
	_, err = plan.ReadCounters(nil)
	require.ErrorContains(t, err, "Options.Counters")

	own := *plan.Build().Maps[datapath.CountersMap]
	for what, change := range map[string]func(m *ebpf.MapSpec){
		"fewer hooks":      func(m *ebpf.MapSpec) { m.ValueSize /= 2 },
		"more hooks":       func(m *ebpf.MapSpec) { m.ValueSize *= 2 },
		"more entrypoints": func(m *ebpf.MapSpec) { m.MaxEntries++ },
		"another type":     func(m *ebpf.MapSpec) { m.Type = ebpf.Array },
	} {
		spec := own
		change(&spec)
		other, err := ebpf.NewMap(&spec)
		require.NoError(t, err)
		defer other.Close()
		_, err = plan.ReadCounters(other)
		require.ErrorContains(t, err, "take the map of the collection that this plan built", what)
	}

	taken := program(ebpf.XDP, 0, 2)
	taken.Maps = map[string]*ebpf.MapSpec{datapath.CountersMap: {Type: ebpf.Array, KeySize: 4, ValueSize: 4, MaxEntries: 1}}
	_, err = datapath.NewPlan(taken, hooks, datapath.Options{Counters: true})
	require.ErrorContains(t, err, "rename it")
}
