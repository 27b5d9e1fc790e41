package datapath_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	ebpflink "github.com/cilium/ebpf/link"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/cnikit/cnikit/datapath"
	"github.com/cnikit/cnikit/datapath/datapathtest"
	"github.com/cnikit/cnikit/internal/netns"
	"github.com/cnikit/cnikit/internal/testenv"
)

// lab is a cgroup that the test process is in, and a network namespace with a loopback interface.
type lab struct {
	cgroup  string
	ns      *netns.NS
	arrives bool // what is sent next; if not, a receiver waits for it a moment only
}

// newLab moves the process into a cgroup of its own, for the time of the test.
func newLab(t *testing.T) *lab {
	t.Helper()
	testenv.BPF(t)
	testenv.Root(t)
	l := &lab{cgroup: enterCgroup(t)}
	ns, err := netns.New()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, ns.Close()) })
	l.ns = ns
	l.do(t, func() { loopbackUp(t) })
	return l
}

// do runs f in the namespace.
func (l *lab) do(t *testing.T, f func()) {
	t.Helper()
	require.NoError(t, l.ns.Do(func() error {
		f()
		return nil
	}))
}

// enterCgroup mounts the hierarchy of cgroups at a place of the test's own, makes one below the cgroup of the process and moves the process there.
func enterCgroup(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	require.NoError(t, unix.Mount("none", root, "cgroup2", 0, ""))
	t.Cleanup(func() { require.NoError(t, unix.Unmount(root, 0)) })
	own, err := os.ReadFile("/proc/self/cgroup")
	require.NoError(t, err)
	_, path, ok := strings.Cut("\n"+string(own), "\n0::")
	require.True(t, ok, "the process is in no cgroup of version 2:\n%s", own)
	path, _, _ = strings.Cut(path, "\n")
	home := filepath.Join(root, path)
	cgroup, err := os.MkdirTemp(home, "cnikit-datapath-")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.Remove(cgroup)) })
	require.NoError(t, os.WriteFile(filepath.Join(cgroup, "cgroup.procs"), []byte("0"), 0))
	t.Cleanup(func() { require.NoError(t, os.WriteFile(filepath.Join(home, "cgroup.procs"), []byte("0"), 0)) })
	return cgroup
}

func loopbackUp(t *testing.T) {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	require.NoError(t, err)
	defer func() { _ = unix.Close(fd) }()
	lo, err := unix.NewIfreq("lo")
	require.NoError(t, err)
	lo.SetUint16(unix.IFF_UP)
	require.NoError(t, unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo))
}

// occasion is a program type that has no test run, with something that makes the kernel run such programs once.
type occasion struct {
	kind
	attachTo func(t *testing.T, p *ebpf.Program)
	provoke  func(t *testing.T) error // within the namespace; the error is of the call that the programs judge
	deny     int32                    // the verdict that denies
	denied   error                    // what provoke returns when they deny; nil when nothing is to be seen
}

// chains are run at each occasion. What they return is seen by the observer, and by who made the call.
func (o *occasion) chains() map[string]chain {
	with := func(original int32, links ...link) chain {
		return chain{kind: o.kind, original: original, links: links}
	}
	proceed := o.proceed[0]
	return map[string]chain{
		"all proceed":        with(o.pass, preLink("a", proceed), postLink("b", proceed), observerLink("c")),
		"a pre hook ends":    with(o.pass, preLink("a", proceed), preLink("b", o.deny), postLink("c", proceed), observerLink("d")),
		"a post hook denies": with(o.pass, preLink("a", -1), postLink("b", o.deny), postLink("c", proceed), observerLink("d")),
		"the original says":  with(o.stop, preLink("a", proceed), postLink("b", -1), observerLink("c")),
		"a post hook passes": with(o.stop, link{name: "a", kind: datapath.Post, returns: o.pass, proceed: []int32{-1}}, observerLink("b")),
	}
}

// check attaches each chain in turn, in each composition, and provokes a run.
func (o *occasion) check(t *testing.T, l *lab) {
	for name, c := range o.chains() {
		for _, composition := range []datapath.Composition{datapath.Pasted, datapath.Called} {
			t.Run(fmt.Sprintf("%s, %s", name, composition), func(t *testing.T) {
				trace := datapathtest.NewTrace(t)
				program := c.load(t, trace, composition, datapath.Options{Counters: composition == datapath.Called})
				want, verdict := c.expect()
				l.arrives = verdict != o.deny
				l.do(t, func() {
					o.attachTo(t, program)
					trace.Take(t)
					err := o.provoke(t)
					if o.denied != nil && verdict == o.deny {
						require.ErrorIs(t, err, o.denied)
					} else {
						require.NoError(t, err)
					}
				})
				o.compare(t, want, trace.Wait(t, len(want)))
			})
		}
	}
}

// compare wants the trace to be one run; of a connection, whose life consists of several events, some.
func (o *occasion) compare(t *testing.T, want, got []int32) {
	t.Helper()
	if o.program != ebpf.SockOps {
		assert.Equal(t, want, got)
		return
	}
	require.NotEmpty(t, got)
	for len(got) > 0 {
		require.GreaterOrEqual(t, len(got), len(want))
		require.Equal(t, want, got[:len(want)])
		got = got[len(want):]
	}
}

// inCgroup attaches to the lab's cgroup, until the test's end.
func (l *lab) inCgroup(attach ebpf.AttachType) func(t *testing.T, p *ebpf.Program) {
	return func(t *testing.T, p *ebpf.Program) {
		t.Helper()
		attached, err := ebpflink.AttachCgroup(ebpflink.CgroupOptions{Path: l.cgroup, Attach: attach, Program: p})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, attached.Close()) })
	}
}

// address is one of the loopback interface, of a family.
func address(family, port int) unix.Sockaddr {
	if family == unix.AF_INET6 {
		return &unix.SockaddrInet6{Port: port, Addr: [16]byte{15: 1}}
	}
	return &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}
}

// socket is closed at the test's end.
func socket(t *testing.T, family, kind int) int {
	t.Helper()
	fd, err := unix.Socket(family, kind, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = unix.Close(fd) })
	return fd
}

// exchange sends a datagram from a new socket to another new one and returns the first error.
func (l *lab) exchange(t *testing.T, family int) error {
	t.Helper()
	to, from := socket(t, family, unix.SOCK_DGRAM), socket(t, family, unix.SOCK_DGRAM)
	patience := unix.Timeval{Usec: 50_000}
	if l.arrives {
		patience = unix.Timeval{Sec: 60}
	}
	require.NoError(t, unix.SetsockoptTimeval(to, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &patience))
	if err := unix.Bind(to, address(family, 4000)); err != nil {
		return err
	}
	if err := unix.Sendto(from, []byte("x"), 0, address(family, 4000)); err != nil {
		return err
	}
	var buffer [8]byte
	for {
		n, _, err := unix.Recvfrom(to, buffer[:], 0)
		if errors.Is(err, unix.EINTR) { // with a time-out it is not begun anew by the kernel (signal(7))
			continue
		}
		if err == nil && !bytes.Equal(buffer[:n], []byte("x")) {
			return errors.New("received something else")
		}
		return err
	}
}

// connect makes a TCP connection to a port on which a new socket listens, and ends it from both sides. Who has seen the other's end has seen all
// that was before it, so that neither programs nor packets of the connection are left for later.
func connect(t *testing.T, family int) error {
	t.Helper()
	listener, client := socket(t, family, unix.SOCK_STREAM), socket(t, family, unix.SOCK_STREAM)
	require.NoError(t, unix.SetsockoptInt(listener, unix.SOL_SOCKET, unix.SO_REUSEADDR, 1))
	require.NoError(t, unix.Bind(listener, address(family, 4001)))
	require.NoError(t, unix.Listen(listener, 1))
	if err := unix.Connect(client, address(family, 4001)); err != nil {
		return err
	}
	server, _, err := unix.Accept(listener)
	require.NoError(t, err)
	require.NoError(t, unix.Shutdown(client, unix.SHUT_WR))
	requireEnd(t, server)
	require.NoError(t, unix.Close(server))
	requireEnd(t, client)
	return nil
}

// requireEnd waits until the other side of a connection has ended it.
func requireEnd(t *testing.T, fd int) {
	t.Helper()
	n, err := unix.Read(fd, make([]byte, 1))
	require.NoError(t, err)
	require.Zero(t, n)
}
