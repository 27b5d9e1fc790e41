package datapath_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	ebpflink "github.com/cilium/ebpf/link"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/cnikit/cnikit/datapath"
	"github.com/cnikit/cnikit/datapath/datapathtest"
	"github.com/cnikit/cnikit/internal/testenv"
)

// guestKernel returns the version of the kernel that the test runs on.
func guestKernel(t *testing.T) (major, minor int) {
	t.Helper()
	_, err := fmt.Sscanf(os.Getenv("CNIKIT_GUEST"), "%d.%d.", &major, &minor)
	require.NoError(t, err)
	return major, minor
}

func guestIsAtLeast(t *testing.T, wantMajor, wantMinor int) bool {
	t.Helper()
	major, minor := guestKernel(t)
	return major > wantMajor || major == wantMajor && minor >= wantMinor
}

// inSlots changes a kind into what extensions of its type can return: the verifier holds them to the range of the type.
func (k kind) inSlots() kind {
	k.proceed = k.proceed[:1]
	return k
}

// Filled slots do what linked hooks do, for every type that has test runs.
func TestGuestSlots(t *testing.T) {
	testenv.InGuest(t)
	for _, k := range runnable() {
		k := k.inSlots()
		observer := link{name: "o", kind: datapath.Observer, returns: k.pass}
		cases := map[string][]link{
			"all proceed":              {preLink("a", k.proceed[0]), preLink("b", k.proceed[0]), postLink("c", k.proceed[0]), postLink("d", k.proceed[0]), observer},
			"the first pre hook ends":  {preLink("a", k.stop), preLink("b", k.proceed[0]), postLink("c", k.stop), observer},
			"a post hook overrides":    {preLink("a", k.proceed[0]), postLink("c", k.stop), postLink("d", k.other), observer},
			"a post hook of the ended": {preLink("a", k.stop), {name: "c", kind: datapath.Post, returns: k.pass, after: true, proceed: []int32{k.stop}}, observer},
			"only observers":           {observer},
			"a mask of several":        {{name: "a", kind: datapath.Pre, returns: k.pass, proceed: []int32{k.proceed[0], k.pass}}, postLink("c", k.proceed[0])},
		}
		t.Run(k.name, func(t *testing.T) {
			for name, links := range cases {
				t.Run(name, func(t *testing.T) {
					for _, called := range []bool{false, true} {
						o := datapath.Options{CallOriginal: called, Counters: called, SlotsFailOpen: true}
						chain{kind: k, original: k.pass, links: links}.checkSlots(t, o)
					}
				})
			}
		})
	}
}

// Variables that make this test binary the other process of a test.
const (
	fillProgramID = "CNIKIT_TEST_FILL_PROGRAM_ID"
	fillFunction  = "CNIKIT_TEST_FILL_FUNCTION"
	fillPin       = "CNIKIT_TEST_FILL_PIN"
)

// TestGuestFiller is no test but the other process: it knows the ID of a program, the name of a function in it, and where to
// pin its extension. That is all a plugin of Cilium is told.
func TestGuestFiller(t *testing.T) {
	testenv.InGuest(t)
	if os.Getenv(fillPin) == "" {
		return
	}
	id, err := strconv.ParseUint(os.Getenv(fillProgramID), 10, 32)
	require.NoError(t, err)
	target, err := ebpf.NewProgramFromID(ebpf.ProgramID(id))
	require.NoError(t, err)
	plan, err := datapath.NewPlan(program(ebpf.SchedCLS, 0, 0), []datapath.Hook{hook(datapath.Pre, "a", nil)}, datapath.Options{Features: datapath.Features{Freplace: true}})
	require.NoError(t, err)
	s := plan.Slots()[0] // for the prototype alone
	s.Function = os.Getenv(fillFunction)
	ext, err := ebpf.NewProgram(extension(target, s, returning(5)))
	require.NoError(t, err)
	require.NoError(t, ext.Pin(os.Getenv(fillPin)))
}

// Another process fills the slot in the order of Cilium's protocol: it pins an extension, the owner of the dispatcher takes the pin
// away, attaches the extension and pins the link. The hook outlives both processes' handles.
func TestGuestSlotOfAnotherProcess(t *testing.T) {
	testenv.InGuest(t)
	d := loadDispatcher(t, program(ebpf.SchedCLS, 0, 0), []datapath.Hook{hook(datapath.Pre, "a", nil)}, datapath.Options{})
	info, err := d.program.Info()
	require.NoError(t, err)
	id, ok := info.ID()
	require.True(t, ok)
	s := d.plan.Slots()[0]
	pin := filepath.Join("/sys/fs/bpf", "entry_"+s.Function)
	other := exec.Command(os.Args[0], "-test.run=^TestGuestFiller$", "-test.v")
	other.Env = append(os.Environ(), fmt.Sprintf("%s=%d", fillProgramID, id), fillFunction+"="+s.Function, fillPin+"="+pin)
	out, err := other.CombinedOutput()
	require.NoError(t, err, "%s", out)

	ext, err := ebpf.LoadPinnedProgram(pin, nil)
	require.NoError(t, err)
	require.NoError(t, os.Remove(pin))
	l, err := ebpflink.AttachFreplace(d.program, s.Function, ext)
	require.NoError(t, err)
	require.NoError(t, l.Pin(pin))
	require.NoError(t, ext.Close())
	require.NoError(t, l.Close())
	assert.Equal(t, int32(5), datapathtest.Run(t, d.program, somePacket()).Verdict, "the hook's verdict")
	require.NoError(t, os.Remove(pin))
	assert.Equal(t, int32(2), datapathtest.Run(t, d.program, somePacket()).Verdict, "an empty slot denies")
}

// A slot can be replaced once: to change a hook is to load a new dispatcher.
func TestGuestSlotIsReplacedOnce(t *testing.T) {
	testenv.InGuest(t)
	d := loadDispatcher(t, program(ebpf.XDP, 0, 2), []datapath.Hook{hook(datapath.Pre, "a", nil)}, datapath.Options{})
	s := d.plan.Slots()[0]
	first, err := ebpf.NewProgram(extension(d.program, s, returning(-1)))
	require.NoError(t, err)
	defer first.Close()
	second, err := ebpf.NewProgram(extension(d.program, s, returning(1)))
	require.NoError(t, err)
	defer second.Close()
	l, err := ebpflink.AttachFreplace(d.program, s.Function, first)
	require.NoError(t, err)
	defer l.Close()
	_, err = ebpflink.AttachFreplace(d.program, s.Function, second)
	require.ErrorContains(t, err, "busy")
	require.Error(t, l.Update(second))
}

// Slots take hooks that change packets or make tail calls, because they contain a call that counts as such. A plain function takes none
// of them on kernels that look (6.12; not on 6.1).
func TestGuestSlotsTakeHooksThatChangePackets(t *testing.T) {
	testenv.InGuest(t)
	for _, k := range runnable() {
		if k.program == ebpf.XDP || k.program == ebpf.SchedCLS {
			t.Run(k.name, func(t *testing.T) {
				for name, code := range packetChangers(t, k) {
					t.Run(name, func(t *testing.T) { checkPacketChanger(t, k, code) })
				}
			})
		}
	}
}

// packetChangers is code that counts as changing packets, and proceeds.
func packetChangers(t *testing.T, k kind) map[string]asm.Instructions {
	t.Helper()
	programs, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.ProgramArray, KeySize: 4, ValueSize: 4, MaxEntries: 1})
	require.NoError(t, err)
	t.Cleanup(func() { _ = programs.Close() })
	array, change := asm.LoadMapPtr(asm.R2, 0), asm.FnSkbPullData
	require.NoError(t, array.AssociateMap(programs))
	if k.program == ebpf.XDP {
		change = asm.FnXdpAdjustHead
	}
	return map[string]asm.Instructions{
		"a helper":    append(asm.Instructions{asm.Mov.Imm(asm.R2, 0), change.Call()}, returning(-1)...),
		"a tail call": append(asm.Instructions{array, asm.Mov.Imm(asm.R3, 0), asm.FnTailCall.Call()}, returning(-1)...),
	}
}

func checkPacketChanger(t *testing.T, k kind, code asm.Instructions) {
	t.Helper()
	d := loadDispatcher(t, k.spec(returning(k.pass)), []datapath.Hook{hook(datapath.Pre, "a", nil), hook(datapath.Pre, "b", nil)}, datapath.Options{})
	d.fill(t, func(datapath.SlotInfo) asm.Instructions { return slices.Clone(code) })
	assert.Equal(t, k.pass, k.run(t, d.program))

	s := d.plan.Slots()[0]
	plain := k.spec(asm.Instructions{
		btf.WithFuncMetadata(asm.Call.Label(s.Function).WithSymbol("main"), &btf.Func{Name: "main", Linkage: btf.GlobalFunc, Type: s.Proto}),
		asm.Return(),
		btf.WithFuncMetadata(asm.Mov.Imm(asm.R0, -1).WithSymbol(s.Function), &btf.Func{Name: s.Function, Linkage: btf.GlobalFunc, Type: s.Proto}),
		asm.Return(),
	})
	ext, err := ebpf.NewProgram(extension(datapathtest.Load(t, plain).Programs["entry"], s, slices.Clone(code)))
	if guestIsAtLeast(t, 6, 12) {
		require.ErrorContains(t, err, "changes packet data")
		return
	}
	require.NoError(t, err)
	require.NoError(t, ext.Close())
}

// A program whose slot is filled and a PROG_ARRAY exclude each other, so the builder makes no slots in members of one. Kernels say so
// from 6.12 on (d6083f040d5d in 6.13, and 6.12.y); 6.1.176 does not.
func TestGuestSlotsAndProgArrays(t *testing.T) {
	testenv.InGuest(t)
	hooks := []datapath.Hook{hook(datapath.Pre, "a", nil)}
	array := &ebpf.MapSpec{Name: "progs", Type: ebpf.ProgramArray, KeySize: 4, ValueSize: 4, MaxEntries: 2}

	if guestIsAtLeast(t, 6, 12) {
		checkProgArrayExclusion(t, hooks, array)
	}
	spec := program(ebpf.SchedCLS, 0, 0)
	array.Contents = []ebpf.MapKV{{Key: uint32(0), Value: "entry"}}
	spec.Maps = map[string]*ebpf.MapSpec{"progs": array}
	_, err := datapath.NewPlan(spec, hooks, datapath.Options{Features: datapath.Features{Freplace: true}})
	require.ErrorContains(t, err, `the map "progs" holds for tail calls`)
}

func checkProgArrayExclusion(t *testing.T, hooks []datapath.Hook, array *ebpf.MapSpec) {
	t.Helper()
	filled := loadDispatcher(t, program(ebpf.SchedCLS, 0, 0), hooks, datapath.Options{})
	filled.fill(t, func(datapath.SlotInfo) asm.Instructions { return returning(-1) })
	programs, err := ebpf.NewMap(array)
	require.NoError(t, err)
	defer programs.Close()
	require.ErrorIs(t, programs.Put(uint32(0), filled.program), unix.EBUSY, "a member whose slot is filled")

	member := loadDispatcher(t, program(ebpf.SchedCLS, 0, 0), hooks, datapath.Options{})
	require.NoError(t, programs.Put(uint32(1), member.program), "a member whose slot is empty")
	s := member.plan.Slots()[0]
	ext, err := ebpf.NewProgram(extension(member.program, s, returning(-1)))
	require.NoError(t, err)
	defer ext.Close()
	_, err = ebpflink.AttachFreplace(member.program, s.Function, ext)
	require.ErrorIs(t, err, unix.EBUSY, "the slot of a member")
}
