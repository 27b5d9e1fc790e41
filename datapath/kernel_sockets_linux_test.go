package datapath_test

import (
	"testing"

	"github.com/cilium/ebpf"
	ebpflink "github.com/cilium/ebpf/link"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestSocketPrograms runs programs of cgroup sock, sock_ops, cgroup_skb and sk_lookup on real sockets.
func TestSocketPrograms(t *testing.T) {
	l := newLab(t)
	for _, o := range l.socketOccasions(t) {
		t.Run(o.name, func(t *testing.T) { o.check(t, l) })
	}
}

func (l *lab) socketOccasions(t *testing.T) []occasion {
	yesno := func(name string, program ebpf.ProgramType, attach ebpf.AttachType) kind {
		return kind{name: name, program: program, attach: attach, proceed: []int32{1, -1}, low: 0, high: 1, pass: 1, stop: 0}
	}
	sock := func(name string, attach ebpf.AttachType, denied error, provoke func(t *testing.T) error) occasion {
		return occasion{kind: yesno(name, ebpf.CGroupSock, attach), attachTo: l.inCgroup(attach), provoke: provoke, denied: denied}
	}
	ops := occasion{
		kind: yesno("sock_ops", ebpf.SockOps, ebpf.AttachCGroupSockOps), attachTo: l.inCgroup(ebpf.AttachCGroupSockOps),
		provoke: func(t *testing.T) error { return connect(t, unix.AF_INET) },
	}
	lookup := occasion{
		kind: yesno("sk_lookup", ebpf.SkLookup, ebpf.AttachSkLookup), attachTo: l.inNamespace(t),
		provoke: func(t *testing.T) error { return connect(t, unix.AF_INET) }, denied: unix.ECONNREFUSED,
	}
	packets := func(name string, attach ebpf.AttachType, denied error) occasion {
		return occasion{
			kind: yesno(name, ebpf.CGroupSKB, attach), attachTo: l.inCgroup(attach), denied: denied,
			provoke: func(t *testing.T) error { return l.exchange(t, unix.AF_INET) },
		}
	}
	egress := packets("cgroup_skb egress", ebpf.AttachCGroupInetEgress, unix.EPERM)
	egress.high = 3
	return []occasion{
		sock("sock_create", ebpf.AttachCGroupInetSockCreate, unix.EPERM, openOnce),
		sock("sock_release", ebpf.AttachCgroupInetSockRelease, nil, openOnce),
		sock("post_bind4", ebpf.AttachCGroupInet4PostBind, unix.EPERM, func(t *testing.T) error { return bindOnce(t, unix.AF_INET) }),
		sock("post_bind6", ebpf.AttachCGroupInet6PostBind, unix.EPERM, func(t *testing.T) error { return bindOnce(t, unix.AF_INET6) }),
		ops, lookup, egress, packets("cgroup_skb ingress", ebpf.AttachCGroupInetIngress, unix.EAGAIN),
	}
}

func openOnce(*testing.T) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err == nil {
		err = unix.Close(fd)
	}
	return err
}

// inNamespace attaches to the lab's network namespace, in which the caller is.
func (l *lab) inNamespace(*testing.T) func(t *testing.T, p *ebpf.Program) {
	return func(t *testing.T, p *ebpf.Program) {
		t.Helper()
		fd, err := unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
		require.NoError(t, err)
		defer func() { _ = unix.Close(fd) }()
		attached, err := ebpflink.AttachNetNs(fd, p)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, attached.Close()) })
	}
}

// TestInterfacePrograms runs XDP and TCX programs on what a real socket sends over the loopback interface.
func TestInterfacePrograms(t *testing.T) {
	l := newLab(t)
	const loopback = 1
	kinds := map[string]kind{}
	for _, k := range runnable() {
		kinds[k.name] = k
	}
	on := func(name string, attach func(p *ebpf.Program) (ebpflink.Link, error)) occasion {
		return occasion{
			kind: kinds[name], deny: kinds[name].stop, denied: unix.EAGAIN,
			attachTo: func(t *testing.T, p *ebpf.Program) {
				attached, err := attach(p)
				require.NoError(t, err)
				t.Cleanup(func() { require.NoError(t, attached.Close()) })
			},
			provoke: func(t *testing.T) error { return l.exchange(t, unix.AF_INET) },
		}
	}
	tcx := func(name string, attach ebpf.AttachType) occasion {
		return on(name, func(p *ebpf.Program) (ebpflink.Link, error) {
			return ebpflink.AttachTCX(ebpflink.TCXOptions{Interface: loopback, Program: p, Attach: attach})
		})
	}
	xdp := on("XDP", func(p *ebpf.Program) (ebpflink.Link, error) {
		return ebpflink.AttachXDP(ebpflink.XDPOptions{Interface: loopback, Program: p, Flags: ebpflink.XDPGenericMode})
	})
	for _, o := range []occasion{tcx("TCX ingress", ebpf.AttachTCXIngress), tcx("TCX egress", ebpf.AttachTCXEgress), xdp} {
		t.Run(o.name, func(t *testing.T) { o.check(t, l) })
	}
}
