package datapath_test

import (
	"encoding/binary"
	"path/filepath"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/cnikit/cnikit/datapath"
	"github.com/cnikit/cnikit/datapath/datapathtest"
)

// Ports of the test: one that programs change into the other.
const portFrom, portTo = 4100, 4101

// compiledSockets are programs of testdata/sockets.c on live sockets.
type compiledSockets struct {
	*lab
	spec *ebpf.CollectionSpec
}

// Programs from a compiler change addresses and watch sockets as an original and as hooks, twice in one dispatcher.
func TestCompiledSocketPrograms(t *testing.T) {
	c := &compiledSockets{newLab(t), datapathtest.Compile(t, filepath.Join("testdata", "sockets.c"))}
	for program, check := range map[string]func(t *testing.T, together *ebpf.Collection, variables map[string]string){
		"connect4": c.connects, "bind4": c.binds, "lookup": c.looksUp, "watch": c.watches, "egress": c.sends,
	} {
		for _, composition := range []datapath.Composition{datapath.Pasted, datapath.Called} {
			t.Run(program+", "+composition.String(), func(t *testing.T) {
				together, variables := c.load(t, program, composition)
				c.do(t, func() {
					if attach := c.spec.Programs[program].AttachType; attach == ebpf.AttachSkLookup {
						c.inNamespace(t)(t, together.Programs["entry"])
					} else {
						c.inCgroup(attach)(t, together.Programs["entry"])
					}
					check(t, together, variables)
				})
			})
		}
	}
}

// load makes a dispatcher of the program around itself, and returns what the hook's variables are called.
func (c *compiledSockets) load(t *testing.T, program string, composition datapath.Composition) (*ebpf.Collection, map[string]string) {
	t.Helper()
	original, hook := only(c.spec, program), only(c.spec, program)
	if v := hook.Variables["from"]; v != nil {
		port := func(n uint16) uint16 {
			if program == "lookup" {
				return n
			}
			return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, n))
		}
		require.NoError(t, v.Set(port(portFrom)))
		require.NoError(t, hook.Variables["to"].Set(port(portTo)))
	}
	h := datapath.Hook{Owner: "c", Name: "hook", Entrypoint: "entry", Kind: datapath.Pre, Collection: hook, Program: "entry", Composition: composition}
	plan, err := datapath.NewPlan(original, []datapath.Hook{h}, datapath.Options{Features: hostFeatures(t), CallOriginal: composition == datapath.Called})
	require.NoError(t, err)
	together := datapathtest.Load(t, plan.Build())
	if m := together.Maps[plan.Maps("entry", "c", "hook")["listener"]]; m != nil {
		c.do(t, func() { require.NoError(t, m.Put(uint32(0), uint64(listens(t, portTo)))) })
	}
	return together, plan.Variables("entry", "c", "hook")
}

func listens(t *testing.T, port int) int {
	t.Helper()
	fd := socket(t, unix.AF_INET, unix.SOCK_STREAM)
	require.NoError(t, unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1))
	require.NoError(t, unix.Bind(fd, address(unix.AF_INET, port)))
	require.NoError(t, unix.Listen(fd, 1))
	return fd
}

// read returns a variable of the original or, by its name in the built collection, of the hook.
func read[T any](t *testing.T, together *ebpf.Collection, name string) (value T) {
	t.Helper()
	require.Contains(t, together.Variables, name)
	require.NoError(t, together.Variables[name].Get(&value))
	return value
}

func (c *compiledSockets) connects(t *testing.T, together *ebpf.Collection, variables map[string]string) {
	listens(t, portTo)
	require.NoError(t, unix.Connect(socket(t, unix.AF_INET, unix.SOCK_STREAM), address(unix.AF_INET, portFrom)))
	c.requireChanged(t, together, variables)
}

func (c *compiledSockets) binds(t *testing.T, together *ebpf.Collection, variables map[string]string) {
	fd := socket(t, unix.AF_INET, unix.SOCK_DGRAM)
	require.NoError(t, unix.Bind(fd, address(unix.AF_INET, portFrom)))
	at, err := unix.Getsockname(fd)
	require.NoError(t, err)
	assert.Equal(t, portTo, at.(*unix.SockaddrInet4).Port)
	c.requireChanged(t, together, variables)
}

func (c *compiledSockets) looksUp(t *testing.T, together *ebpf.Collection, variables map[string]string) {
	require.NoError(t, unix.Connect(socket(t, unix.AF_INET, unix.SOCK_STREAM), address(unix.AF_INET, portFrom)))
	c.requireChanged(t, together, variables)
}

// requireChanged wants the hook to have changed the port, once, and the original, whose constants are its own, to have changed none.
func (c *compiledSockets) requireChanged(t *testing.T, together *ebpf.Collection, variables map[string]string) {
	t.Helper()
	assert.Equal(t, uint64(1), read[uint64](t, together, variables["changed"]), "by the hook")
	assert.Zero(t, read[uint64](t, together, "changed"), "by the original")
}

func (c *compiledSockets) watches(t *testing.T, together *ebpf.Collection, variables map[string]string) {
	require.NoError(t, connect(t, unix.AF_INET))
	original, hook := read[[16]uint64](t, together, "seen"), read[[16]uint64](t, together, variables["seen"])
	assert.NotZero(t, hook[3], "BPF_SOCK_OPS_TCP_CONNECT_CB")
	assert.Equal(t, hook, original)
}

func (c *compiledSockets) sends(t *testing.T, together *ebpf.Collection, variables map[string]string) {
	c.arrives = true
	require.NoError(t, c.exchange(t, unix.AF_INET))
	original, hook := read[[16]uint64](t, together, "seen"), read[[16]uint64](t, together, variables["seen"])
	assert.Equal(t, [16]uint64{1, 20 + 8 + 1}, hook, "one packet of IPv4 and UDP with one byte")
	assert.Equal(t, hook, original)
}
