package datapath

import "github.com/cilium/ebpf"

// CountersMap is the name of the map that [Options.Counters] adds.
const CountersMap = "dp_counters"

// HookCounters is what one hook did, summed over all processors.
type HookCounters struct {
	Entrypoint, Owner, Hook string
	Runs                    uint64
	Terminations            uint64           // runs that ended the chain: pre hooks that did not proceed, post hooks that changed the verdict
	Verdicts                map[int32]uint64 // by what the hook returned, for verdicts from -1 to 9
	Others                  uint64           // any other verdict
}

// ReadCounters reads the map named [CountersMap] of a loaded collection that was built from the plan.
func (p *Plan) ReadCounters(m *ebpf.Map) ([]HookCounters, error) { return nil, nil }
