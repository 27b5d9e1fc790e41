package datapath

import (
	"maps"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/datapath/datapathtest"
	"github.com/cnikit/cnikit/internal/testenv"
)

// suffix is how the program for a type is called in testdata/fragment.c.
func suffix(h host) string {
	return map[ebpf.ProgramType]string{ebpf.XDP: "_xdp", ebpf.SchedCLS: "_tc"}[h.random.Type]
}

// What a compiler makes does the same as alone, in whatever way it gets into another program.
func TestCompiledFragmentsDoTheSameAsAlone(t *testing.T) {
	testenv.BPF(t)
	for version, flags := range map[string][]string{"v1": {"-mcpu=v1"}, "v3": nil, "small": {"-Os"}} {
		object := datapathtest.Compile(t, "testdata/fragment.c", flags...)
		for _, h := range hosts() {
			for program, pasted := range map[string]bool{"all": true, "kernel": true, "tail": false} {
				t.Run(version+"/"+program+suffix(h), func(t *testing.T) {
					spec := object.Copy()
					keepType(spec, h)
					assert.Equal(t, pasted, compareWays(t, h, spec, program+suffix(h)))
				})
			}
		}
	}
}

// keepType removes what belongs to other types, which the kernel would be given too.
func keepType(spec *ebpf.CollectionSpec, h host) {
	maps.DeleteFunc(spec.Programs, func(name string, _ *ebpf.ProgramSpec) bool { return !strings.HasSuffix(name, suffix(h)) })
	maps.DeleteFunc(spec.Maps, func(name string, _ *ebpf.MapSpec) bool {
		return strings.HasPrefix(name, "leaves") && !strings.HasSuffix(name, suffix(h))
	})
}

// Frames of compiled code are exactly what the kernel finds.
func TestCompiledFrames(t *testing.T) {
	testenv.BPF(t)
	spec := datapathtest.Compile(t, "testdata/fragment.c")
	for name := range spec.Programs {
		f, err := inspect(spec.Programs[name])
		require.NoError(t, err)
		for n, frame := range kernelFrames(t, spec, name) {
			if f.graph[n].frame != frame {
				frame -= 24 // bpf_loop was inlined
			}
			assert.Equal(t, frame, f.graph[n].frame, "%s, function %d", name, n)
		}
	}
}
