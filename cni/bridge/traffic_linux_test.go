package bridge_test

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// trafficTimeout is long: tests of other packages may hold the kernel's lock on network
// configuration for seconds.
const trafficTimeout = time.Minute

// listen opens a UDP socket in the namespace, on all addresses.
func listen(t *testing.T, s *space) *net.UDPConn {
	t.Helper()
	var conn *net.UDPConn
	require.NoError(t, s.ns.Do(func() (err error) {
		conn, err = net.ListenUDP("udp", nil)
		return err
	}))
	t.Cleanup(func() { _ = conn.Close() })
	require.NoError(t, conn.SetDeadline(time.Now().Add(trafficTimeout)))
	return conn
}

// requireReach sends a datagram of that size to an address of another namespace and
// back.
func requireReach(t *testing.T, from, to *space, addr netip.Addr, size int) {
	t.Helper()
	here, there := listen(t, from), listen(t, to)
	port := there.LocalAddr().(*net.UDPAddr).AddrPort().Port()
	_, err := here.WriteToUDPAddrPort(make([]byte, size), netip.AddrPortFrom(addr, port))
	require.NoError(t, err)
	buf := make([]byte, 1<<16)
	n, sender, err := there.ReadFromUDPAddrPort(buf)
	require.NoError(t, err, "to %s", addr)
	require.Equal(t, size, n)
	_, err = there.WriteToUDPAddrPort(buf[:n], sender)
	require.NoError(t, err)
	n, sender, err = here.ReadFromUDPAddrPort(buf)
	require.NoError(t, err, "back from %s", addr)
	require.Equal(t, size, n)
	require.Equal(t, addr, sender.Addr().Unmap())
}

// requireTooLong sends a datagram that must not fit into one packet.
func requireTooLong(t *testing.T, from *space, addr netip.Addr, size int) {
	t.Helper()
	conn := listen(t, from)
	raw, err := conn.SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) {
		require.NoError(t, unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_MTU_DISCOVER, unix.IP_PMTUDISC_DO))
		require.NoError(t, unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_MTU_DISCOVER, unix.IPV6_PMTUDISC_DO))
	}))
	_, err = conn.WriteToUDPAddrPort(make([]byte, size), netip.AddrPortFrom(addr, 9))
	require.ErrorIs(t, err, unix.EMSGSIZE)
}

const testEtherType = 0x88b5 // for local experiments; IEEE 802

// packetSocket sends and receives frames of testEtherType on an interface.
func packetSocket(t *testing.T, s *space, ifName string) int {
	t.Helper()
	protocol := uint16(testEtherType>>8 | testEtherType&0xff<<8)
	var fd int
	require.NoError(t, s.ns.Do(func() (err error) {
		if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, int(protocol)); err != nil {
			return err
		}
		return unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: protocol, Ifindex: s.link(t, ifName).Attrs().Index})
	}))
	t.Cleanup(func() { _ = unix.Close(fd) })
	return fd
}

// receives reports whether a frame arrives within the time.
func receives(t *testing.T, fd int, timeout time.Duration) bool {
	t.Helper()
	tv := unix.NsecToTimeval(timeout.Nanoseconds())
	require.NoError(t, unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv))
	for buf := make([]byte, 2000); ; {
		_, from, err := unix.Recvfrom(fd, buf, 0)
		if err != nil {
			require.ErrorIs(t, err, unix.EAGAIN)
			return false
		}
		if from.(*unix.SockaddrLinklayer).Pkttype != unix.PACKET_OUTGOING {
			return true
		}
	}
}

func broadcast(t *testing.T, fd int) {
	t.Helper()
	frame := append([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 1, 1, 1, 1, 1, testEtherType >> 8, testEtherType & 0xff}, make([]byte, 46)...)
	_, err := unix.Write(fd, frame)
	require.NoError(t, err)
}
