package datapath

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/datapath/datapathtest"
	"github.com/cnikit/cnikit/internal/testenv"
)

// kernelFrames loads the program and returns what the verifier says of its functions' stacks.
func kernelFrames(t *testing.T, c *ebpf.CollectionSpec, program string) []int {
	t.Helper()
	collection, err := ebpf.NewCollectionWithOptions(c, ebpf.CollectionOptions{Programs: ebpf.ProgramOptions{LogLevel: ebpf.LogLevelStats}})
	require.NoError(t, err)
	t.Cleanup(collection.Close)
	match := regexp.MustCompile(`stack depth ([0-9+]+)`).FindStringSubmatch(collection.Programs[program].VerifierLog)
	require.NotNil(t, match, "no stack in the verifier's statistics")
	var frames []int
	for text := range strings.SplitSeq(match[1], "+") {
		frame, err := strconv.Atoi(text)
		require.NoError(t, err)
		frames = append(frames, frame)
	}
	return frames
}

// Frames are as large as the kernel finds them, or larger, for whatever programs do to reach their stack.
func TestFramesAreThoseOfTheKernel(t *testing.T) {
	testenv.BPF(t)
	equal, all := 0, 0
	for seed := range testenv.Scale(t, 60) {
		rng := rand.New(rand.NewPCG(uint64(seed), 3))
		h := hosts()[seed%2]
		h.random.Statements = 1 + rng.IntN(30)
		spec := datapathtest.Random(rng, h.random)
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			f, err := inspect(spec.Programs[datapathtest.RandomProgram])
			require.NoError(t, err)
			for n, frame := range kernelFrames(t, spec, datapathtest.RandomProgram) {
				all++
				if loops(f, spec, n) {
					frame -= 24 // bpf_loop is inlined and saves three registers (optimize_bpf_loop), after the kernel's check
				}
				if f.graph[n].frame == frame {
					equal++
				}
				assert.GreaterOrEqual(t, f.graph[n].frame, frame, "function %q", f.graph[n].name)
			}
		})
	}
	assert.Greater(t, equal, all*9/10, "frames are overestimated")
}

// What the cases expect is what the kernel finds.
func TestFrameCasesAreThoseOfTheKernel(t *testing.T) {
	testenv.BPF(t)
	for _, c := range stackCases() {
		if c.loads {
			t.Run(c.name, func(t *testing.T) {
				spec := &ebpf.CollectionSpec{Programs: map[string]*ebpf.ProgramSpec{"stack": c.program()}}
				assert.Equal(t, c.frame, kernelFrames(t, spec, "stack")[0])
			})
		}
	}
}

// loops says whether the kernel inlines a call of bpf_loop in function n.
func loops(f facts, c *ebpf.CollectionSpec, n int) bool {
	functions, err := split(c.Programs[datapathtest.RandomProgram].Instructions)
	if err != nil || len(functions) != len(f.graph) {
		return false
	}
	for _, ins := range functions[n].code {
		if ins.IsBuiltinCall() && asm.BuiltinFunc(ins.Constant) == asm.FnLoop {
			return true
		}
	}
	return false
}

// The helpers that need a GPL-compatible licence are those of which the kernel says so.
func TestGPLOnlyHelpersAreThoseOfTheKernel(t *testing.T) {
	testenv.BPF(t)
	const helpers = 212 // of the newest kernel tried, 6.18
	found := 0
	for _, h := range []ebpf.ProgramSpec{
		{Type: ebpf.XDP}, {Type: ebpf.SchedCLS}, {Type: ebpf.CGroupSKB, AttachType: ebpf.AttachCGroupInetIngress},
		{Type: ebpf.CGroupSockAddr, AttachType: ebpf.AttachCGroupUDP4Sendmsg}, {Type: ebpf.CGroupSock, AttachType: ebpf.AttachCGroupInetSockCreate},
		{Type: ebpf.SockOps, AttachType: ebpf.AttachCGroupSockOps}, {Type: ebpf.SkLookup, AttachType: ebpf.AttachSkLookup},
	} {
		for id := asm.BuiltinFunc(1); id < helpers; id++ {
			h.License, h.Instructions = "MIT", asm.Instructions{id.Call(), asm.Mov.Imm(asm.R0, 1), asm.Return()}
			program, err := ebpf.NewProgram(&h)
			if err == nil {
				_ = program.Close()
			}
			refused := strings.Contains(fmt.Sprintf("%+v", err), "GPL-restricted")
			if refused {
				found++
			}
			if known := !strings.Contains(fmt.Sprintf("%+v", err), "unknown func") && !strings.Contains(fmt.Sprintf("%+v", err), "cannot use helper"); known || refused {
				assert.Equal(t, refused, gplOnlyHelper(id), "%s in %s", helperName(id), h.Type)
			}
		}
	}
	assert.Greater(t, found, 20)
}
