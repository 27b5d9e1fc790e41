package datapathtest_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/datapath/datapathtest"
	"github.com/cnikit/cnikit/internal/testenv"
)

// randomKinds are the types that random programs have, each with all that its type allows.
var randomKinds = []datapathtest.RandomOptions{
	{Type: ebpf.XDP, AttachType: ebpf.AttachXDP, Verdicts: []int32{-1, 1, 2, 3}, TailCalls: true, Writes: true},
	{Type: ebpf.SchedCLS, Verdicts: []int32{-1, 0, 2, 7}, TailCalls: true, Writes: true},
	{Type: ebpf.CGroupSKB, AttachType: ebpf.AttachCGroupInetIngress, Verdicts: []int32{0, 1}, TailCalls: true},
	{Type: ebpf.SkLookup, AttachType: ebpf.AttachSkLookup, Verdicts: []int32{0, 1}, TailCalls: true},
	{Type: ebpf.CGroupSockAddr, AttachType: ebpf.AttachCGroupInet4Connect, Verdicts: []int32{0, 1}, TailCalls: true},
	{Type: ebpf.CGroupSock, AttachType: ebpf.AttachCGroupInetSockCreate, Verdicts: []int32{0, 1}, TailCalls: true},
	{Type: ebpf.SockOps, AttachType: ebpf.AttachCGroupSockOps, Verdicts: []int32{0, 1}, TailCalls: true},
}

// The verifier accepts each random program, and each that takes a verdict, alone.
func TestRandomProgramsLoad(t *testing.T) {
	testenv.BPF(t)
	for _, o := range randomKinds {
		t.Run(o.Type.String(), func(t *testing.T) {
			for seed := range testenv.Scale(t, 40) {
				rng := rand.New(rand.NewPCG(uint64(seed), 1))
				o.Post = seed%2 == 1
				o.Statements = 1 + rng.IntN(30)
				spec := datapathtest.Random(rng, o)
				if o.Post {
					spec = datapathtest.Alone(spec, datapathtest.RandomProgram)
				}
				collection, err := ebpf.NewCollection(spec)
				require.NoError(t, err, "seed %d, %d statements, post %v", seed, o.Statements, o.Post)
				collection.Close()
			}
		})
	}
}

// A random program does the same whenever it is run anew on the same packet, and nothing but what it may.
func TestRandomProgramsAreDeterministic(t *testing.T) {
	testenv.BPF(t)
	packet := datapathtest.Packet(datapathtest.Ethernet{}, datapathtest.Payload(fmt.Sprintf("%200d", 7)))
	verdicts := map[int32]bool{}
	for seed := range testenv.Scale(t, 40) {
		o := randomKinds[seed%2]
		run := func() datapathtest.Result {
			collection := datapathtest.Load(t, datapathtest.Random(rand.New(rand.NewPCG(uint64(seed), 2)), o))
			return datapathtest.Run(t, collection.Programs[datapathtest.RandomProgram], packet)
		}
		first := run()
		assert.Equal(t, first, run(), "seed %d", seed)
		assert.Contains(t, o.Verdicts, first.Verdict)
		verdicts[first.Verdict] = true
	}
	assert.Greater(t, len(verdicts), 4, "the programs return nearly always the same")
}

// Alone hands on the verdict that is in its map.
func TestAloneHandsOnTheVerdict(t *testing.T) {
	testenv.BPF(t)
	spec := &ebpf.CollectionSpec{Maps: map[string]*ebpf.MapSpec{}, Programs: map[string]*ebpf.ProgramSpec{"post": {
		Name: "post", Type: ebpf.XDP, License: "MIT", Instructions: returnSecond(),
	}}}
	collection := datapathtest.Load(t, datapathtest.Alone(spec, "post"))
	assert.Len(t, spec.Programs["post"].Instructions, 2, "the input was changed")
	for _, verdict := range []int32{0, 2, 7} {
		require.NoError(t, collection.Maps[datapathtest.AloneVerdict].Put(uint32(0), verdict))
		assert.Equal(t, verdict, datapathtest.Run(t, collection.Programs["post"], make([]byte, 14)).Verdict)
	}
}
