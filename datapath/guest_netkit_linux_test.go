package datapath_test

import (
	"testing"
	"time"

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
	"github.com/cnikit/cnikit/internal/testenv"
)

// Dispatchers run on live netkit devices, at both ends, and each of their verdicts is obeyed: what a pre hook drops does not arrive.
func TestGuestNetkit(t *testing.T) {
	testenv.InGuest(t)
	if !guestIsAtLeast(t, 6, 7) {
		return // there is no netkit
	}
	conn, err := nl.Open()
	require.NoError(t, err)
	defer conn.Close()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = "primary"
	pair := &netlink.Netkit{LinkAttrs: attrs, Mode: netlink.NETKIT_MODE_L2, Policy: netlink.NETKIT_POLICY_FORWARD, PeerPolicy: netlink.NETKIT_POLICY_FORWARD}
	peer := netlink.NewLinkAttrs()
	peer.Name = "peer"
	pair.SetPeerAttrs(&peer)
	require.NoError(t, conn.AddLink(pair))
	ends := map[ebpf.AttachType]netlink.Link{}
	for attach, name := range map[ebpf.AttachType]string{ebpf.AttachNetkitPrimary: "primary", ebpf.AttachNetkitPeer: "peer"} {
		ends[attach], err = conn.Link(name)
		require.NoError(t, err)
		require.NoError(t, conn.SetUp(ends[attach]))
	}
	defer func() { require.NoError(t, conn.DelLink(ends[ebpf.AttachNetkitPrimary])) }()
	// The pair's two programs are attached at the primary; each runs on what its own end sends.
	primary := ends[ebpf.AttachNetkitPrimary].Attrs().Index
	other := map[ebpf.AttachType]ebpf.AttachType{ebpf.AttachNetkitPrimary: ebpf.AttachNetkitPeer, ebpf.AttachNetkitPeer: ebpf.AttachNetkitPrimary}
	for attach := range ends {
		for _, verdict := range []int32{-1, 2} {
			from, to := ends[attach].Attrs().Index, ends[other[attach]].Attrs().Index
			checkNetkit(t, attach, primary, from, to, verdict)
		}
	}
}

// checkNetkit sends a frame from one end to the other through a dispatcher whose pre hook, in a slot, returns a verdict.
func checkNetkit(t *testing.T, attach ebpf.AttachType, primary, from, to int, verdict int32) {
	t.Helper()
	trace := datapathtest.NewTrace(t)
	k := kind{program: ebpf.SchedCLS, attach: attach}
	post := hook(datapath.Post, "post", k.spec(append(trace.Record(3), returning(-1)...)))
	post.AfterTermination = true
	original := append(trace.Record(2), returning(0)...)
	d := loadDispatcher(t, k.spec(original), []datapath.Hook{hook(datapath.Pre, "pre", nil), post}, datapath.Options{})
	d.fill(t, func(datapath.SlotInfo) asm.Instructions { return append(trace.Record(1), returning(verdict)...) })
	l, err := ebpflink.AttachNetkit(ebpflink.NetkitOptions{Interface: primary, Program: d.program, Attach: attach})
	require.NoError(t, err)
	defer l.Close()

	receiver, sender := packetSocket(t, to), packetSocket(t, from)
	defer unix.Close(receiver)
	defer unix.Close(sender)
	trace.Take(t) // what the kernel itself has sent meanwhile
	frame := somePacket()
	err = unix.Sendto(sender, frame, 0, &unix.SockaddrLinklayer{Ifindex: from})
	want := []int32{1, 2, 3}
	if verdict == 2 {
		require.ErrorIs(t, err, unix.ENOBUFS) // so a socket is told that its device dropped the frame
		want = []int32{1, 3}
	} else {
		require.NoError(t, err)
	}
	arrived := receives(receiver, frame, verdict != 2)
	got := trace.Take(t)
	require.GreaterOrEqual(t, len(got), len(want))
	assert.Equal(t, want, got[:len(want)], "%s, verdict %d", attach, verdict)
	assert.Equal(t, verdict != 2, arrived, "%s, verdict %d: the frame arrived", attach, verdict)
}

func packetSocket(t *testing.T, ifindex int) int {
	t.Helper()
	const all = unix.ETH_P_ALL<<8 | unix.ETH_P_ALL>>8 // in network order
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, all&0xffff)
	require.NoError(t, err)
	require.NoError(t, unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all & 0xffff, Ifindex: ifindex}))
	return fd
}

// receives tells whether a frame comes. A netkit device delivers before the sender's call returns, but for a moment in which the
// frame waits for the processor that is to receive it: a moment is what one that is not expected gets.
func receives(fd int, frame []byte, expected bool) bool {
	patience := 200 * time.Millisecond
	if expected {
		patience = time.Minute
	}
	buffer := make([]byte, 2048)
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		polled := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		if n, err := unix.Poll(polled, 50); err != nil || n == 0 { // or interrupted by a signal of Go's runtime
			continue
		}
		n, _, err := unix.Recvfrom(fd, buffer, unix.MSG_DONTWAIT)
		if err == nil && string(buffer[:n]) == string(frame) {
			return true
		}
	}
	return false
}
