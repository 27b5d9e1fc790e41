package datapath_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/cilium/ebpf"
	ebpflink "github.com/cilium/ebpf/link"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// inCgroup makes a cgroup, moves this process into it for the time of the test, and attaches the program to it. Only a guest's
// processes may be moved like that.
func inCgroup(t *testing.T, attach ebpf.AttachType, program *ebpf.Program) ebpflink.Link {
	t.Helper()
	const root = "/sys/fs/cgroup"
	cgroup, err := os.MkdirTemp(root, "test-")
	require.NoError(t, err)
	move := func(to string) error {
		return os.WriteFile(filepath.Join(to, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0)
	}
	l, err := ebpflink.AttachCgroup(ebpflink.CgroupOptions{Path: cgroup, Attach: attach, Program: program})
	require.NoError(t, err)
	require.NoError(t, move(cgroup))
	t.Cleanup(func() {
		require.NoError(t, move(root))
		require.NoError(t, l.Close())
		require.NoError(t, os.Remove(cgroup))
	})
	return l
}

// useSockets does on loopback what each kind of cgroup program watches: bind, connect, send, receive and ask for names, with IPv4, IPv6 and Unix
// sockets, and close them.
func useSockets() error {
	for _, where := range []unix.Sockaddr{
		&unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}, &unix.SockaddrInet6{Addr: [16]byte{15: 1}}, &unix.SockaddrUnix{Name: "@cnikit-test"},
	} {
		if err := useStream(where); err != nil {
			return fmt.Errorf("stream to %T: %w", where, err)
		}
		if err := useDatagrams(where); err != nil {
			return fmt.Errorf("datagrams to %T: %w", where, err)
		}
	}
	return nil
}

func family(where unix.Sockaddr) int {
	switch where.(type) {
	case *unix.SockaddrInet4:
		return unix.AF_INET
	case *unix.SockaddrInet6:
		return unix.AF_INET6
	default:
		return unix.AF_UNIX
	}
}

// bound returns a socket that is bound, and where.
func bound(where unix.Sockaddr, typ int) (int, unix.Sockaddr, error) {
	fd, err := unix.Socket(family(where), typ|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, nil, err
	}
	if err := unix.Bind(fd, where); err != nil {
		return -1, nil, errors.Join(err, unix.Close(fd))
	}
	name, err := unix.Getsockname(fd)
	return fd, name, err
}

func useStream(where unix.Sockaddr) error {
	server, name, err := bound(where, unix.SOCK_STREAM)
	if err != nil {
		return err
	}
	client, err := unix.Socket(family(where), unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	err = errors.Join(unix.Listen(server, 1), unix.Connect(client, name))
	accepted, _, acceptErr := unix.Accept(server)
	_, nameErr := unix.Getpeername(client)
	return errors.Join(err, acceptErr, nameErr, unix.Close(client), unix.Close(server), unix.Close(accepted))
}

func useDatagrams(where unix.Sockaddr) error {
	server, name, err := bound(where, unix.SOCK_DGRAM)
	if err != nil {
		return err
	}
	another := where
	if _, ok := where.(*unix.SockaddrUnix); ok {
		another = &unix.SockaddrUnix{Name: "@cnikit-test-client"}
	}
	client, _, err := bound(another, unix.SOCK_DGRAM)
	if err != nil {
		return err
	}
	err = unix.Sendto(client, []byte("ping"), 0, name)
	_, _, receiveErr := unix.Recvfrom(server, make([]byte, 4), 0)
	return errors.Join(err, receiveErr, unix.Close(client), unix.Close(server))
}
