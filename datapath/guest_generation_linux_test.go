package datapath_test

import (
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/cnikit/cnikit/datapath"
	"github.com/cnikit/cnikit/internal/testenv"
)

// egress is the kind whose programs decide about each datagram of this process, which is told.
func egress() kind {
	return kind{program: ebpf.CGroupSKB, attach: ebpf.AttachCGroupInetEgress, pass: 1, proceed: []int32{1}}
}

func egressDispatcher(t *testing.T) *dispatcher {
	t.Helper()
	return loadDispatcher(t, egress().spec(returning(1)), []datapath.Hook{hook(datapath.Pre, "a", nil)}, datapath.Options{})
}

// sender is a socket that sends to one on loopback. It belongs to the cgroup that the process was in when it was made.
type sender struct {
	from, to int
	name     unix.Sockaddr
}

func newSender(t *testing.T) *sender {
	t.Helper()
	loopback := &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}
	to, name, err := bound(loopback, unix.SOCK_DGRAM)
	require.NoError(t, err)
	from, _, err := bound(loopback, unix.SOCK_DGRAM)
	require.NoError(t, err)
	t.Cleanup(func() { _, _ = unix.Close(from), unix.Close(to) })
	return &sender{from: from, to: to, name: name}
}

// send sends a datagram and takes it at the other end.
func (s *sender) send() error {
	if err := unix.Sendto(s.from, []byte("ping"), 0, s.name); err != nil {
		return err
	}
	for {
		_, _, err := unix.Recvfrom(s.to, make([]byte, 4), 0)
		if !errors.Is(err, unix.EINTR) { // of a socket with a time-out, by a signal of Go's runtime (signal(7))
			return err
		}
	}
}

// The order of a change to slots: load the new dispatcher, attach all extensions, then put it in place of the old one, wait until
// nothing runs in the old one, and close its extensions. Each other order shows: an empty slot denies.
func TestGuestOrderOfAChange(t *testing.T) {
	testenv.InGuest(t)
	proceed := func(datapath.SlotInfo) asm.Instructions { return returning(1) }
	first := egressDispatcher(t)
	first.fill(t, proceed)
	l := inCgroup(t, ebpf.AttachCGroupInetEgress, first.program)
	s := newSender(t)
	require.NoError(t, s.send())

	second := egressDispatcher(t)
	require.NoError(t, l.Update(second.program))
	require.ErrorIs(t, s.send(), unix.EPERM, "in place before its slot is filled")
	second.fill(t, proceed)
	require.NoError(t, s.send(), "the slot is filled")

	third := egressDispatcher(t)
	third.fill(t, proceed)
	require.NoError(t, second.links[0].Close())
	require.ErrorIs(t, s.send(), unix.EPERM, "emptied before it is replaced")
	require.NoError(t, l.Update(third.program))
	require.NoError(t, s.send(), "replaced")
}

// In that order, no packet is without the hook while one dispatcher after the other takes its place, and none is lost.
func TestGuestGenerations(t *testing.T) {
	testenv.InGuest(t)
	counter, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1})
	require.NoError(t, err)
	defer counter.Close()
	load := asm.LoadMapValue(asm.R1, 0, 0)
	require.NoError(t, load.AssociateMap(counter))
	count := append(asm.Instructions{load, asm.Mov.Imm(asm.R2, 1), asm.StoreXAdd(asm.R1, asm.R2, asm.DWord)}, returning(1)...)
	counting := func(datapath.SlotInfo) asm.Instructions { return slices.Clone(count) }

	current := egressDispatcher(t)
	current.fill(t, counting)
	l := inCgroup(t, ebpf.AttachCGroupInetEgress, current.program)
	s := newSender(t)
	begun, stop := make(chan struct{}, 1), make(chan struct{})
	var traffic sync.WaitGroup
	var sent uint64
	var failed error
	traffic.Go(func() {
		for ; failed == nil; sent++ {
			select {
			case <-stop:
				return
			default:
				failed = s.send()
				select {
				case begun <- struct{}{}:
				default:
				}
			}
		}
	})
	<-begun
	for range testenv.Scale(t, 20) {
		next := egressDispatcher(t)
		next.fill(t, counting)
		require.NoError(t, l.Update(next.program))
		const global = 1 // MEMBARRIER_CMD_GLOBAL: returns after a grace period
		_, _, errno := unix.Syscall(unix.SYS_MEMBARRIER, global, 0, 0)
		require.Zero(t, errno)
		require.NoError(t, current.links[0].Close())
		current = next
	}
	close(stop)
	traffic.Wait()
	require.NoError(t, failed)
	var seen uint64
	require.NoError(t, counter.Lookup(uint32(0), &seen))
	assert.Equal(t, sent, seen, "packets that the hook saw")
	assert.NotZero(t, sent)
}
