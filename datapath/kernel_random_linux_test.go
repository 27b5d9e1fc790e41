package datapath_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/cnikit/cnikit/datapath"
	"github.com/cnikit/cnikit/datapath/datapathtest"
	"github.com/cnikit/cnikit/internal/testenv"
)

// TestRandomPrograms compares dispatchers of random programs with the same programs, each loaded and run alone, one after the other as the rules say: verdicts,
// packets and maps have to agree after every run, whatever the composition. What the verifier refuses, the builder must have refused before.
func TestRandomPrograms(t *testing.T) {
	testenv.BPF(t)
	for _, k := range runnable() {
		if k.program == ebpf.SchedACT { // like SchedCLS, which the generator knows
			continue
		}
		t.Run(k.name, func(t *testing.T) {
			refused, seeds := 0, testenv.Scale(t, 25)
			for seed := range seeds {
				t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
					if !compareRandom(t, k, rand.New(rand.NewPCG(uint64(seed), 4))) {
						refused++
					}
				})
			}
			assert.LessOrEqual(t, refused, seeds/5, "the builder refuses too much")
		})
	}
}

// compareRandom is false when the builder refuses.
func compareRandom(t *testing.T, k kind, rng *rand.Rand) bool {
	parts := randomParts(t, rng, k)
	plan := planParts(t, rng, parts)
	if plan == nil {
		return false
	}
	together := datapathtest.Load(t, plan.Build())
	packet := somePacket()
	for range 4 {
		packet[len(packet)-1-rng.IntN(20)] = byte(rng.Uint32())
		want := runApart(t, k, parts, packet)
		got := k.runs(t, together.Programs["entry"], packet)
		if !assert.Equal(t, want, got) {
			break
		}
		compareMaps(t, plan, parts, together)
	}
	if t.Failed() {
		t.Log(plan)
	}
	return true
}

// compareMaps wants the maps of the parts to be as those of the dispatcher.
func compareMaps(t *testing.T, plan *datapath.Plan, parts []randomPart, together *ebpf.Collection) {
	t.Helper()
	for i, p := range parts {
		names := plan.Maps("entry", "owner", p.name)
		for name, m := range p.alone.Maps {
			if name == datapathtest.AloneVerdict || name == ".rodata" || m.Type() == ebpf.ProgramArray {
				continue
			}
			inDispatcher, ok := names[name]
			if i == 0 {
				inDispatcher, ok = name, true
			}
			want := entries(t, m)
			if !ok { // the program does not reach it
				for _, value := range want {
					require.Equal(t, make([]byte, len(value)), value, "map %s of %s, which the dispatcher lacks", name, p.name)
				}
				continue
			}
			assert.Equal(t, want, entries(t, together.Maps[inDispatcher]), "map %s of %s", name, p.name)
		}
	}
}

// randomPart is the original, which is the first one, or a hook.
type randomPart struct {
	name  string
	kind  datapath.Kind
	after bool
	spec  *ebpf.CollectionSpec
	alone *ebpf.Collection
}

func randomParts(t *testing.T, rng *rand.Rand, k kind) []randomPart {
	o := datapathtest.RandomOptions{
		Type: k.program, AttachType: k.attach, Statements: 1 + rng.IntN(16), TailCalls: rng.IntN(3) == 0, Writes: rng.IntN(2) == 0,
		Verdicts: append([]int32{k.pass, k.stop, k.other, k.proceed[0]}, k.proceed[0], k.proceed[0], k.proceed[0]),
	}
	kinds := []datapath.Kind{0}
	for range 1 + rng.IntN(5) {
		kinds = append(kinds, datapath.Kind(1+rng.IntN(3)))
	}
	var parts []randomPart
	for i, kind := range kinds {
		p := randomPart{name: fmt.Sprintf("hook-%d", i), kind: kind, after: kind == datapath.Post && rng.IntN(2) == 0}
		o.Post = kind == datapath.Post || kind == datapath.Observer
		p.spec = datapathtest.Random(rng, o)
		alone := p.spec
		if o.Post {
			alone = datapathtest.Alone(alone, datapathtest.RandomProgram)
		}
		p.alone = datapathtest.Load(t, alone)
		parts = append(parts, p)
	}
	return parts
}

// planParts makes the dispatcher, or nil. Pasting what cannot be pasted, and asking for more stack than there is, is refused by name.
func planParts(t *testing.T, rng *rand.Rand, parts []randomPart) *datapath.Plan {
	entry := parts[0].spec.Copy()
	entry.Programs["entry"] = entry.Programs[datapathtest.RandomProgram]
	delete(entry.Programs, datapathtest.RandomProgram)
	var hooks []datapath.Hook
	for i, p := range parts[1:] {
		hooks = append(hooks, datapath.Hook{
			Owner: "owner", Name: p.name, Entrypoint: "entry", Kind: p.kind, Priority: i, AfterTermination: p.after,
			Collection: p.spec, Program: datapathtest.RandomProgram, Composition: datapath.Composition(rng.IntN(3)),
		})
	}
	o := datapath.Options{Counters: rng.IntN(3) == 0, CallOriginal: rng.IntN(4) == 0, Features: hostFeatures(t)}
	for range 2 {
		plan, err := datapath.NewPlan(entry, hooks, o)
		if err == nil {
			return plan
		}
		requireHookErrors(t, err)
		for i := range hooks {
			hooks[i].Composition = datapath.Auto
		}
	}
	return nil
}

// requireHookErrors wants an error that names a hook or an entrypoint, with a reason and a way out.
func requireHookErrors(t *testing.T, err error) {
	t.Helper()
	var refused *datapath.HookError
	if !errors.As(err, &refused) {
		t.Fatalf("want a HookError, have %v", err)
	}
	require.NotEmpty(t, refused.Entrypoint)
	require.NotEmpty(t, refused.Reason)
	require.NotEmpty(t, refused.Fix)
}

// runApart is the dispatcher's work, done by the programs alone.
func runApart(t *testing.T, k kind, parts []randomPart, packet []byte) datapathtest.Result {
	run := func(p randomPart, verdict int32) int32 {
		if m := p.alone.Maps[datapathtest.AloneVerdict]; m != nil {
			require.NoError(t, m.Put(uint32(0), verdict))
		}
		result := k.runs(t, p.alone.Programs[datapathtest.RandomProgram], packet)
		if k.program == ebpf.XDP || k.program == ebpf.SchedCLS {
			packet = result.Packet
		}
		return result.Verdict
	}
	var rules []rule
	for _, p := range parts[1:] {
		rules = append(rules, rule{p.kind, nil, p.after, func(verdict int32) int32 { return run(p, verdict) }})
	}
	verdict := k.outcome(func() int32 { return run(parts[0], 0) }, rules)
	result := datapathtest.Result{Verdict: verdict, Packet: packet}
	switch k.program {
	case ebpf.CGroupSKB: // the kernel gives packets back without the header of Ethernet
		result.Packet = append(make([]byte, 14), packet[14:]...)
	case ebpf.SkLookup:
		result.Packet = nil
	}
	return result
}

// runs runs a program of the kind on a packet, or on a context where the kind has no packets.
func (k kind) runs(t *testing.T, p *ebpf.Program, packet []byte) datapathtest.Result {
	if k.program == ebpf.SkLookup {
		return datapathtest.RunContext(t, p, datapathtest.LookupContext{Family: 2, Protocol: uint32(packet[len(packet)-1])})
	}
	return datapathtest.Run(t, p, packet)
}

// entries reads an array or a hash.
func entries(t *testing.T, m *ebpf.Map) map[string][]byte {
	t.Helper()
	require.NotNil(t, m, "the dispatcher lacks a map")
	all := map[string][]byte{}
	var key, value []byte
	for it := m.Iterate(); it.Next(&key, &value); {
		all[string(key)] = append([]byte(nil), value...)
	}
	return all
}

// hostFeatures are those of the kernel that runs the tests.
func hostFeatures(t *testing.T) datapath.Features {
	t.Helper()
	var uname unix.Utsname
	require.NoError(t, unix.Uname(&uname))
	features, err := datapath.KernelFeatures(unix.ByteSliceToString(uname.Release[:]))
	require.NoError(t, err)
	return features
}

// FuzzDispatcher is TestRandomPrograms with choices that the fuzzer makes.
func FuzzDispatcher(f *testing.F) {
	kinds := runnable()
	for i := range kinds {
		f.Add(uint8(i), []byte("some choices"), uint64(i))
	}
	f.Fuzz(func(t *testing.T, which uint8, choices []byte, rest uint64) {
		testenv.BPF(t)
		k := kinds[int(which)%len(kinds)]
		if k.program != ebpf.SchedACT {
			compareRandom(t, k, rand.New(&chosen{choices, rand.NewPCG(rest, 6)}))
		}
	})
}

// chosen is a source of numbers that has some to begin with.
type chosen struct {
	first []byte
	rest  rand.Source
}

// Uint64 implements [rand.Source].
func (c *chosen) Uint64() uint64 {
	if len(c.first) < 8 {
		return c.rest.Uint64()
	}
	n := binary.NativeEndian.Uint64(c.first)
	c.first = c.first[8:]
	return n
}
