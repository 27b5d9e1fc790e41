//go:build amd64 || arm64

package cnitest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// tracer follows one command. All of it happens on one thread: for the kernel a tracer
// is a thread.
type tracer struct {
	at      moment
	leader  int             // the process that was started
	threads map[int]*thread // by thread ID: what is alive, as far as it was seen
	status  unix.WaitStatus // of the leader
	reaped  bool            // the leader ended; its number may be somebody else's now
	ending  bool            // everything was killed, or is as soon as it is seen
	done    traced
}

// thread is one thread of one traced process.
type thread struct {
	process int
	call    call // the last one
	again   bool // the kernel will make it once more
	last    bool // it is the one to kill after
}

// traceOn is [trace] on a thread that do chooses, such as one inside a namespace.
func traceOn(ctx context.Context, do func(func() error) error, c command, at moment) (done *traced, err error) {
	doErr := do(func() error {
		if childless() {
			done, err = trace(ctx, c, at)
		} else { // this thread is held meanwhile, so it is another one
			done, err = traceOn(ctx, do, c, at)
		}
		return nil
	})
	if doErr != nil {
		return nil, doErr
	}
	return done, err
}

// childless reports whether the calling thread is the parent of no process. The tracer
// waits for whatever its thread is the parent of.
func childless() bool {
	const look = unix.WEXITED | unix.WNOHANG | unix.WNOWAIT | unix.WALL | unix.WNOTHREAD
	return errors.Is(unix.Waitid(unix.P_ALL, 0, nil, look, nil), unix.ECHILD)
}

// trace runs the command until it ends or the moment comes; then it, and all that it
// started, is killed and gone. When the command itself ends or ctx does, what is left of
// its processes is killed too, daemons included. It must be called on a locked and childless thread.
// The error says that tracing failed; it matches [errors.ErrUnsupported] where it cannot
// be done.
func trace(ctx context.Context, c command, at moment) (*traced, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("trace %s: %w", c.path, err)
	}
	out, err := openStreams(c.stdin)
	if err != nil {
		return nil, fmt.Errorf("trace %s: %w", c.path, err)
	}
	defer out.close()
	t := &tracer{at: at, threads: map[int]*thread{}}
	if t.leader, err = seized(c, out); err == nil {
		err = t.follow(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("trace %s: %w", c.path, err)
	}
	t.done.exit = -1
	if t.status.Exited() {
		t.done.exit = t.status.ExitStatus()
	}
	if t.done.stdout, t.done.stderr, err = out.read(); err != nil {
		return nil, fmt.Errorf("trace %s: %w", c.path, err)
	}
	if !t.done.killed {
		err = ctx.Err()
	}
	return &t.done, err
}

// follow serves the stops of all threads until there is none left. The context ends the
// leader, and the end of the leader is the end of all.
func (t *tracer) follow(ctx context.Context) error {
	handle, err := unix.PidfdOpen(t.leader, 0)
	if err != nil {
		t.end()
	} else {
		defer func() { _ = unix.Close(handle) }()
		watching := context.AfterFunc(ctx, func() { _ = unix.PidfdSendSignal(handle, unix.SIGKILL, nil, 0) })
		defer watching()
	}
	failed := err
	for {
		var status unix.WaitStatus
		tid, err := unix.Wait4(-1, &status, unix.WALL|unix.WNOTHREAD, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.ECHILD):
			return failed
		case err != nil:
			return errors.Join(failed, err)
		}
		if err := t.event(tid, status); err != nil {
			failed = errors.Join(failed, err)
			t.end()
		}
	}
}

// end kills everything. What is not known yet is killed when it appears.
func (t *tracer) end() {
	t.ending = true
	if !t.reaped {
		_ = unix.Kill(t.leader, unix.SIGKILL)
	}
	for tid := range t.threads {
		_ = unix.Kill(tid, unix.SIGKILL)
	}
}

// seized starts the command and returns its process ID. It is stopped at its first
// instruction, and goes on when it gets SIGCONT, which it has been sent.
//
// A child can only ask to be traced in the old way (PTRACE_TRACEME), in which a stop by
// SIGSTOP is lost on it, so it is let go into such a stop and seized there.
func seized(c command, out *streams) (int, error) {
	pid, err := syscall.ForkExec(c.path, []string{c.path}, &syscall.ProcAttr{
		Env:   c.env,
		Files: []uintptr{out.stdin.Fd(), out.stdout.Fd(), out.stderr.Fd()},
		Sys:   &syscall.SysProcAttr{Ptrace: true, Setpgid: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return 0, refused(err)
	}
	if err := seize(pid); err != nil {
		_ = unix.Kill(pid, unix.SIGKILL)
		_, _ = await(pid)
		return 0, refused(err)
	}
	return pid, nil
}

func seize(pid int) error {
	status, err := await(pid)
	if err != nil {
		return err
	}
	if !status.Stopped() || status.StopSignal() != unix.SIGTRAP {
		return fmt.Errorf("the process does not stop at its start: status %#x", int(status))
	}
	if err := ptrace(unix.PTRACE_DETACH, pid, 0, uintptr(unix.SIGSTOP)); err != nil {
		return err
	}
	const options = unix.PTRACE_O_EXITKILL | unix.PTRACE_O_TRACESYSGOOD | unix.PTRACE_O_TRACEEXEC |
		unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_TRACEFORK | unix.PTRACE_O_TRACEVFORK
	if err := ptrace(unix.PTRACE_SEIZE, pid, 0, options); err != nil {
		return err
	}
	return unix.Kill(pid, unix.SIGCONT)
}

func await(pid int) (status unix.WaitStatus, err error) {
	for {
		_, err = unix.Wait4(pid, &status, unix.WALL, nil)
		if !errors.Is(err, unix.EINTR) {
			return status, err
		}
	}
}

// refused makes the errors of a kernel or a sandbox that does not allow tracing match
// [errors.ErrUnsupported].
func refused(err error) error {
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EIO) {
		return fmt.Errorf("%w: ptrace: %w", errors.ErrUnsupported, err)
	}
	return err
}

func ptrace(request, tid int, addr, data uintptr) error {
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, uintptr(request), uintptr(tid), addr, data, 0, 0)
	if errno != 0 {
		return fmt.Errorf("ptrace request %#x of %s: %w", request, programName(tid), errno)
	}
	return nil
}

// programName is the name of the executable of a thread, as far as /proc knows it.
func programName(tid int) string {
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", tid))
	if err != nil {
		return fmt.Sprintf("thread %d", tid)
	}
	return filepath.Base(exe)
}

// streams are the standard streams of a traced command. They are files in memory:
// nobody has to read while the command runs, and nothing holds them open afterwards.
type streams struct{ stdin, stdout, stderr *os.File }

func openStreams(stdin []byte) (*streams, error) {
	var s streams
	for name, file := range map[string]**os.File{"stdin": &s.stdin, "stdout": &s.stdout, "stderr": &s.stderr} {
		fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
		if err != nil {
			s.close()
			return nil, fmt.Errorf("create %s: %w", name, err)
		}
		*file = os.NewFile(uintptr(fd), name)
	}
	_, err := s.stdin.Write(stdin)
	if err == nil {
		_, err = s.stdin.Seek(0, io.SeekStart)
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return &s, nil
}

func (s *streams) read() (stdout, stderr []byte, err error) {
	if stdout, err = rewound(s.stdout); err == nil {
		stderr, err = rewound(s.stderr)
	}
	return stdout, stderr, err
}

func rewound(f *os.File) ([]byte, error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return io.ReadAll(f)
}

func (s *streams) close() {
	for _, file := range []*os.File{s.stdin, s.stdout, s.stderr} {
		if file != nil {
			_ = file.Close()
		}
	}
}
