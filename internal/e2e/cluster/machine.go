package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/cnikit/cnikit/cni/cnitest"
)

// machine is a network, mount and PID namespace with an init process. It ends, with
// every process in it, when its init does: on [machine.off], and when this process ends.
type machine struct {
	name  string
	ns    *cnitest.Namespace
	group *os.File // the cgroup of its processes
	init  *exec.Cmd
	alive *os.File // init reads from it, and ends with it
	pidfd int      // of init; names the namespaces
	gone  chan struct{}
}

// newMachine starts the namespaces. The mounts are those of this process, none of which
// a mount in the machine changes.
func newMachine(ctx context.Context, name string, group *os.File) (*machine, error) {
	ns, err := cnitest.NewNamespace()
	if err != nil {
		return nil, fmt.Errorf("start machine %s: %w", name, err)
	}
	m := &machine{name: name, ns: ns, group: group, pidfd: -1, gone: make(chan struct{})}
	if err := m.startInit(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("start machine %s: %w", name, err), ns.Close())
	}
	if err := m.mountProc(); err != nil {
		return nil, errors.Join(fmt.Errorf("start machine %s: %w", name, err), m.off(context.WithoutCancel(ctx)))
	}
	return m, nil
}

// startInit starts the first process of the PID namespace. The kernel kills the others
// when it ends (pid_namespaces(7)). Its standard input is a pipe whose other end only
// this process has. Because it ignores SIGCHLD, the kernel itself reaps the orphans
// that it gets; execve keeps that.
func (m *machine) startInit(ctx context.Context) error {
	stdin, alive, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = stdin.Close() }()
	m.init = exec.Command("env", "--ignore-signal=CHLD", "cat")
	m.init.Stdin = stdin
	m.init.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID, Setsid: true,
		UseCgroupFD: true, CgroupFD: int(m.group.Fd()),
	}
	if err := m.ns.Do(m.init.Start); err != nil {
		return errors.Join(err, alive.Close())
	}
	m.alive = alive
	go func() {
		_ = m.init.Wait() // killed, or at the end of its input
		close(m.gone)
	}()
	if m.pidfd, err = unix.PidfdOpen(m.init.Process.Pid, 0); err != nil {
		return errors.Join(fmt.Errorf("open init: %w", err), m.kill(context.WithoutCancel(ctx)))
	}
	return nil
}

// mountProc cuts the propagation of mounts to the outside, keeps it between the mount
// namespaces inside (the kubelet's volumes have to reach containers), and mounts a /proc
// of the PID namespace, which only a process inside can.
func (m *machine) mountProc() error {
	err := m.enter(unix.CLONE_NEWNS, func() error {
		for _, propagation := range []uintptr{unix.MS_SLAVE, unix.MS_SHARED} {
			if err := unix.Mount("", "/", "", unix.MS_REC|propagation, ""); err != nil {
				return fmt.Errorf("change propagation of mounts: %w", err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	var out bytes.Buffer
	cmd := exec.Command("mount", "-t", "proc", "proc", "/proc")
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := m.start(cmd); err != nil {
		return err
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("mount /proc: %w: %s", err, &out)
	}
	return nil
}

// off kills everything in the machine, waits until it is gone, and gives up the network
// namespace. Off twice is no error.
func (m *machine) off(ctx context.Context) error {
	if err := m.kill(ctx); err != nil {
		return err
	}
	return m.ns.Remove()
}

// kill is off but for the network namespace.
func (m *machine) kill(ctx context.Context) error {
	_ = m.init.Process.Kill() // fails only when it has ended
	select {
	case <-m.gone: // the kernel reaps a PID namespace before its init
	case <-ctx.Done():
		return fmt.Errorf("power off machine %s: %w", m.name, ctx.Err())
	}
	if m.pidfd >= 0 {
		_ = unix.Close(m.pidfd)
		m.pidfd = -1
	}
	_ = m.alive.Close() // fails only the second time
	return nil
}

// pid is the PID of init, as seen from here.
func (m *machine) pid() int { return m.init.Process.Pid }

// start starts a process in all namespaces of the machine, as a child of this process
// that its terminal cannot interrupt. Without an environment it gets that of a service.
func (m *machine) start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, UseCgroupFD: true, CgroupFD: int(m.group.Fd())}
	if cmd.Env == nil {
		cmd.Env = environ()
	}
	return m.enter(unix.CLONE_NEWNS|unix.CLONE_NEWPID|unix.CLONE_NEWNET, cmd.Start)
}

// command prepares a process in all namespaces of the machine that needs nothing but
// its own methods. nsenter has to fork to get into the PID namespace; it ends as the
// child does. setpriv ends the child when somebody kills nsenter.
func (m *machine) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	enter := []string{
		"--target", strconv.Itoa(m.pid()), "--mount", "--net", "--pid", "--wd=/", "--",
		"setpriv", "--pdeathsig", "KILL", "--", name,
	}
	cmd := exec.CommandContext(ctx, "nsenter", append(enter, args...)...)
	cmd.Cancel = func() error { return killChild(cmd.Process) }
	cmd.Env = environ()
	return cmd
}

// killChild kills the child of a process that waits for it. Killing the parent first
// would make the child an orphan, and it would stay in the PID namespace, which then
// could not end, for as long as the machine's init does not reap it.
func killChild(p *os.Process) error {
	file := fmt.Sprintf("/proc/%d/task/%d/children", p.Pid, p.Pid)
	children, err := os.ReadFile(file) // none yet, or a kernel without CONFIG_PROC_CHILDREN
	child, parseErr := strconv.Atoi(strings.TrimSpace(string(children)))
	if err != nil || parseErr != nil {
		return p.Kill()
	}
	return unix.Kill(child, unix.SIGKILL)
}

// environ is what a system's init would give its services.
func environ(more ...string) []string {
	return append([]string{"PATH=" + systemPath, "HOME=/root"}, more...)
}

const systemPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// enter runs fn on a thread that has entered namespaces of the machine: the flags are
// those of setns(2). Of CLONE_NEWPID only the children that fn starts see something. The
// thread cannot be brought back and ends with fn.
func (m *machine) enter(flags int, fn func() error) error {
	done := make(chan error, 1)
	go onThread(func() error {
		if err := unix.Unshare(unix.CLONE_FS); err != nil { // or setns refuses CLONE_NEWNS
			return err
		}
		if err := unix.Setns(m.pidfd, flags); err != nil {
			return fmt.Errorf("enter machine %s: %w", m.name, err)
		}
		return fn()
	}, done)
	return <-done
}

// onThread runs fn on a thread that ends with it, and is not the main thread: /proc/PID
// shows the namespaces of that one.
func onThread(fn func() error, done chan<- error) {
	runtime.LockOSThread() // never unlocked
	if unix.Gettid() != unix.Getpid() {
		done <- fn()
		return
	}
	inner := make(chan error, 1)
	go onThread(fn, inner)
	done <- <-inner
	runtime.UnlockOSThread()
}
