package datapath_test

import (
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	ebpflink "github.com/cilium/ebpf/link"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/cnikit/cnikit/datapath"
	"github.com/cnikit/cnikit/datapath/datapathtest"
	"github.com/cnikit/cnikit/internal/nl"
)

// wires are two pairs of veth devices. A frame that is sent at the one pair's near end arrives at its far end, where XDP in the driver gives it
// to a map that redirects.
type wires struct {
	sender, in, out, receiver int // indexes of the devices
	to                        *ebpf.Map
}

// newWires makes them in the namespace in which the caller is. They go with it.
func newWires(t *testing.T, of ebpf.MapType) *wires {
	t.Helper()
	conn, err := nl.Open()
	require.NoError(t, err)
	defer conn.Close()
	w := &wires{}
	w.sender, w.in = pair(t, conn, "in")
	w.out, w.receiver = pair(t, conn, "out")
	awake(t, w.sender, w.in)
	awake(t, w.out, w.receiver)
	w.to, err = ebpf.NewMap(&ebpf.MapSpec{Type: of, KeySize: 4, ValueSize: 8, MaxEntries: 1})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.to.Close()) })
	w.attach(t, w.in, w.redirecting())
	w.attach(t, w.receiver, returning(2)) // the driver takes redirected frames only where XDP is
	return w
}

func pair(t *testing.T, conn *nl.Conn, name string) (near, far int) {
	t.Helper()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name + "0"
	require.NoError(t, conn.AddLink(&netlink.Veth{LinkAttrs: attrs, PeerName: name + "1"}))
	indexes := [2]int{}
	for i, end := range []string{name + "0", name + "1"} {
		link, err := conn.Link(end)
		require.NoError(t, err)
		require.NoError(t, conn.SetUp(link))
		indexes[i] = link.Attrs().Index
	}
	return indexes[0], indexes[1]
}

// awake returns when frames pass. A device that just came up drops them until the kernel has given it its queue.
func awake(t *testing.T, from, to int) {
	t.Helper()
	receiver, sender := packetSocket(t, to), packetSocket(t, from)
	defer func() { assert.NoError(t, unix.Close(receiver)) }()
	defer func() { assert.NoError(t, unix.Close(sender)) }()
	frame := somePacket()
	for sent := false; !sent; sent = receives(receiver, frame, false) {
		require.NoError(t, unix.Sendto(sender, frame, 0, &unix.SockaddrLinklayer{Ifindex: from}))
	}
}

// redirecting is a program that redirects IPv4, and nothing that the kernel sends of its own.
func (w *wires) redirecting() asm.Instructions {
	load := asm.LoadMapPtr(asm.R1, w.to.FD())
	return asm.Instructions{
		asm.Mov.Imm(asm.R0, 2),
		asm.LoadMem(asm.R2, asm.R1, 0, asm.Word), asm.LoadMem(asm.R3, asm.R1, 4, asm.Word),
		asm.Mov.Reg(asm.R4, asm.R2), asm.Add.Imm(asm.R4, 14), asm.JGT.Reg(asm.R4, asm.R3, "pass"),
		asm.LoadMem(asm.R5, asm.R2, 12, asm.Byte), asm.JNE.Imm(asm.R5, 8, "pass"),
		asm.LoadMem(asm.R5, asm.R2, 13, asm.Byte), asm.JNE.Imm(asm.R5, 0, "pass"),
		load, asm.Mov.Imm(asm.R2, 0), asm.Mov.Imm(asm.R3, 1 /* XDP_DROP, when the map is empty */), asm.FnRedirectMap.Call(),
		asm.Return().WithSymbol("pass"),
	}
}

func (w *wires) attach(t *testing.T, device int, code asm.Instructions) {
	t.Helper()
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.XDP, License: "MIT", Instructions: code})
	require.NoError(t, err)
	attached, err := ebpflink.AttachXDP(ebpflink.XDPOptions{Interface: device, Program: program, Flags: ebpflink.XDPDriverMode})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, attached.Close())
		require.NoError(t, program.Close())
	})
}

// exchange sends a frame and waits for it at a device, unless it is expected to be dropped.
func (w *wires) exchange(t *testing.T, at int, arrives bool) error {
	t.Helper()
	receiver, sender := packetSocket(t, at), packetSocket(t, w.sender)
	defer func() { assert.NoError(t, unix.Close(receiver)) }()
	defer func() { assert.NoError(t, unix.Close(sender)) }()
	frame := somePacket()
	require.NoError(t, unix.Sendto(sender, frame, 0, &unix.SockaddrLinklayer{Ifindex: w.sender}))
	if !receives(receiver, frame, arrives) {
		return unix.EAGAIN
	}
	return nil
}

// TestRedirectPrograms runs the XDP programs of maps for devices and processors, on frames that XDP in a driver redirects there.
func TestRedirectPrograms(t *testing.T) {
	for _, c := range []struct {
		name    string
		program ebpf.AttachType
		of      ebpf.MapType
		number  func(w *wires) int // in the map
		arrives func(w *wires) int // the device
	}{
		{"device map", ebpf.AttachXDPDevMap, ebpf.DevMap, func(w *wires) int { return w.out }, func(w *wires) int { return w.receiver }},
		{"CPU map", ebpf.AttachXDPCPUMap, ebpf.CPUMap, func(*wires) int { return 16 }, func(w *wires) int { return w.in }},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLab(t)
			var w *wires
			l.do(t, func() { w = newWires(t, c.of) })
			k := runnable()[0]
			k.attach = c.program
			o := occasion{kind: k, deny: k.stop, denied: unix.EAGAIN}
			o.attachTo = func(t *testing.T, p *ebpf.Program) {
				// What such maps hold: a device or the length of a queue, and a program (bpf_devmap_val, bpf_cpumap_val).
				require.NoError(t, w.to.Put(uint32(0), [2]uint32{uint32(c.number(w)), uint32(p.FD())}))
			}
			o.provoke = func(t *testing.T) error { return w.exchange(t, c.arrives(w), l.arrives) }
			o.check(t, l)
		})
	}
}

// A program that is bound to an interface has hooks, but none that make tail calls: most kernels that know such programs refuse them arrays of others.
func TestBoundPrograms(t *testing.T) {
	l := newLab(t)
	l.do(t, func() {
		w := newWires(t, ebpf.DevMap)
		bound := runnable()[0].spec(returning(2))
		bound.Programs["entry"].Ifindex, bound.Programs["entry"].Flags = uint32(w.out), unix.BPF_F_XDP_DEV_BOUND_ONLY
		calling := runnable()[0].spec(append(asm.Instructions{
			asm.LoadMapPtr(asm.R2, 0).WithReference("calls"), asm.Mov.Imm(asm.R3, 0), asm.FnTailCall.Call(),
		}, returning(2)...))
		calling.Maps = map[string]*ebpf.MapSpec{"calls": {Type: ebpf.ProgramArray, KeySize: 4, ValueSize: 4, MaxEntries: 1}}

		plan, err := datapath.NewPlan(bound, []datapath.Hook{hook(datapath.Pre, "plain", runnable()[0].spec(returning(-1)))}, datapath.Options{})
		require.NoError(t, err)
		datapathtest.Load(t, plan.Build())

		_, err = datapath.NewPlan(bound, []datapath.Hook{hook(datapath.Pre, "calling", calling)}, datapath.Options{})
		requireHookErrors(t, err)
	})
}
