package datapath_test

import (
	"testing"

	"github.com/cilium/ebpf"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestSocketAddressPrograms runs programs of every attach type of sock_addr, for both families and for Unix sockets.
func TestSocketAddressPrograms(t *testing.T) {
	l := newLab(t)
	for _, o := range l.addressOccasions() {
		t.Run(o.name, func(t *testing.T) { o.check(t, l) })
	}
}

// addressOccasions has one for each attach type.
func (l *lab) addressOccasions() []occasion {
	yesno := kind{program: ebpf.CGroupSockAddr, proceed: []int32{1, -1}, low: 0, high: 1, pass: 1, stop: 0}
	always := kind{program: ebpf.CGroupSockAddr, proceed: []int32{1, -1}, low: 1, high: 1, replaced: 1, pass: 1, stop: 1}
	var all []occasion
	add := func(name string, k kind, attach ebpf.AttachType, provoke func(t *testing.T) error) {
		k.name, k.attach = name, attach
		o := occasion{kind: k, attachTo: l.inCgroup(attach), provoke: provoke}
		if k.low != k.high {
			o.denied = unix.EPERM
		}
		all = append(all, o)
	}
	inet := func(family int, f func(t *testing.T, family int) error) func(t *testing.T) error {
		return func(t *testing.T) error { return f(t, family) }
	}
	bind := yesno
	bind.high = 3
	add("bind4", bind, ebpf.AttachCGroupInet4Bind, inet(unix.AF_INET, bindOnce))
	add("bind6", bind, ebpf.AttachCGroupInet6Bind, inet(unix.AF_INET6, bindOnce))
	add("connect4", yesno, ebpf.AttachCGroupInet4Connect, inet(unix.AF_INET, connectOnce))
	add("connect6", yesno, ebpf.AttachCGroupInet6Connect, inet(unix.AF_INET6, connectOnce))
	add("sendmsg4", yesno, ebpf.AttachCGroupUDP4Sendmsg, inet(unix.AF_INET, l.exchange))
	add("sendmsg6", yesno, ebpf.AttachCGroupUDP6Sendmsg, inet(unix.AF_INET6, l.exchange))
	add("recvmsg4", always, ebpf.AttachCGroupUDP4Recvmsg, inet(unix.AF_INET, l.exchange))
	add("recvmsg6", always, ebpf.AttachCGroupUDP6Recvmsg, inet(unix.AF_INET6, l.exchange))
	add("getpeername4", always, ebpf.AttachCgroupInet4GetPeername, inet(unix.AF_INET, peerOnce))
	add("getpeername6", always, ebpf.AttachCgroupInet6GetPeername, inet(unix.AF_INET6, peerOnce))
	add("getsockname4", always, ebpf.AttachCgroupInet4GetSockname, inet(unix.AF_INET, nameOnce))
	add("getsockname6", always, ebpf.AttachCgroupInet6GetSockname, inet(unix.AF_INET6, nameOnce))
	add("connect_unix", yesno, ebpf.AttachCgroupUnixConnect, unixConnect)
	add("sendmsg_unix", yesno, ebpf.AttachCgroupUnixSendmsg, unixExchange)
	add("recvmsg_unix", always, ebpf.AttachCgroupUnixRecvmsg, unixExchange)
	add("getpeername_unix", always, ebpf.AttachCgroupUnixGetpeername, unixPeer)
	add("getsockname_unix", always, ebpf.AttachCgroupUnixGetsockname, unixName)
	return all
}

func bindOnce(t *testing.T, family int) error {
	return unix.Bind(socket(t, family, unix.SOCK_DGRAM), address(family, 0))
}

func connectOnce(t *testing.T, family int) error {
	return unix.Connect(socket(t, family, unix.SOCK_DGRAM), address(family, 4000))
}

func peerOnce(t *testing.T, family int) error {
	fd := socket(t, family, unix.SOCK_DGRAM)
	require.NoError(t, unix.Connect(fd, address(family, 4000)))
	_, err := unix.Getpeername(fd)
	return err
}

func nameOnce(t *testing.T, family int) error {
	_, err := unix.Getsockname(socket(t, family, unix.SOCK_DGRAM))
	return err
}

// unixListener is a bound socket of Unix, with its address: of the network namespace, as a path has to be short (unix(7)).
func unixListener(t *testing.T, kind int) (int, unix.Sockaddr) {
	t.Helper()
	at := &unix.SockaddrUnix{Name: "@listener"}
	fd := socket(t, unix.AF_UNIX, kind)
	require.NoError(t, unix.Bind(fd, at))
	return fd, at
}

func unixConnect(t *testing.T) error {
	_, at := unixListener(t, unix.SOCK_DGRAM)
	return unix.Connect(socket(t, unix.AF_UNIX, unix.SOCK_DGRAM), at)
}

func unixExchange(t *testing.T) error {
	to, at := unixListener(t, unix.SOCK_DGRAM)
	from := socket(t, unix.AF_UNIX, unix.SOCK_DGRAM)
	// A sender without an address is not shown to programs at the receiver.
	require.NoError(t, unix.Bind(from, &unix.SockaddrUnix{Name: "@sender"}))
	if err := unix.Sendto(from, []byte("x"), 0, at); err != nil {
		return err
	}
	var buffer [8]byte
	_, _, err := unix.Recvfrom(to, buffer[:], 0)
	return err
}

func unixPeer(t *testing.T) error {
	_, at := unixListener(t, unix.SOCK_DGRAM)
	fd := socket(t, unix.AF_UNIX, unix.SOCK_DGRAM)
	require.NoError(t, unix.Connect(fd, at))
	_, err := unix.Getpeername(fd)
	return err
}

func unixName(t *testing.T) error {
	fd, _ := unixListener(t, unix.SOCK_DGRAM)
	_, err := unix.Getsockname(fd)
	return err
}
