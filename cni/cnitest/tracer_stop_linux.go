//go:build amd64 || arm64

package cnitest

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// syscallStop is the signal that PTRACE_O_TRACESYSGOOD shows at system calls.
const syscallStop = unix.SIGTRAP | 0x80

// event serves what wait4 reported of a thread. A thread that is killed meanwhile is no
// error: its end is reported next.
func (t *tracer) event(tid int, status unix.WaitStatus) error {
	if status.Exited() || status.Signaled() {
		delete(t.threads, tid)
		if tid == t.leader {
			t.status, t.reaped = status, true
			t.end()
		}
		return nil
	}
	if err := t.stop(tid, status); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	return nil
}

// stop serves a thread that stopped, and has it go on.
func (t *tracer) stop(tid int, status unix.WaitStatus) error {
	if err := t.know(tid); err != nil {
		return err
	}
	if t.ending {
		return unix.Kill(tid, unix.SIGKILL)
	}
	sig, event := status.StopSignal(), int(status)>>16
	switch {
	case sig == syscallStop:
		if err := t.call(tid); err != nil || t.ending {
			return err
		}
	case event == unix.PTRACE_EVENT_STOP && sig != unix.SIGTRAP:
		return ptrace(unix.PTRACE_LISTEN, tid, 0, 0) // stopped until SIGCONT, as it would be untraced
	case event == unix.PTRACE_EVENT_EXEC:
		if err := t.executed(tid); err != nil {
			return err
		}
	case event == 0:
		return ptrace(unix.PTRACE_SYSCALL, tid, 0, uintptr(sig)) // a signal is on its way to it
	}
	return ptrace(unix.PTRACE_SYSCALL, tid, 0, 0)
}

// know enters a thread that is seen for the first time.
func (t *tracer) know(tid int) error {
	if t.threads[tid] != nil {
		return nil
	}
	process, err := processOf(tid)
	if err != nil {
		return err
	}
	t.threads[tid] = &thread{process: process}
	return nil
}

// executed forgets the thread that called exec: it goes on under the number of its
// process, and all other threads of the process are gone.
func (t *tracer) executed(tid int) error {
	former, err := unix.PtraceGetEventMsg(tid)
	if err != nil {
		return fmt.Errorf("ptrace: %w", err)
	}
	if int(former) != tid {
		delete(t.threads, int(former))
	}
	*t.threads[tid] = thread{process: t.threads[tid].process}
	return nil
}

// call looks at a thread at the start or the end of a system call.
func (t *tracer) call(tid int) error {
	info, err := syscallInfo(tid)
	if err != nil {
		return err
	}
	thread := t.threads[tid]
	if info.op == syscallExit {
		thread.again = restarts(info.nr)
		if thread.last && !thread.again {
			t.done.killed = true
			t.end()
		}
		return nil
	}
	if info.arch != nativeArch {
		return fmt.Errorf("%w: %s is no %d-bit program", errors.ErrUnsupported, programName(tid), unsafe.Sizeof(uintptr(0))*8)
	}
	made := call{tid: tid, process: thread.process, nr: int(info.nr), args: info.args}
	if thread.again && made == thread.call {
		return nil // and counted already
	}
	thread.call, thread.last = made, false
	what, err := made.change()
	if err != nil || what == "" {
		return err
	}
	t.done.changes = append(t.done.changes, change{by: programName(tid), what: what})
	if len(t.done.changes) != t.at.number {
		return nil
	}
	if thread.last = t.at.after; !thread.last {
		t.done.killed = true
		t.end()
	}
	return nil
}

// restarts reports whether the kernel makes a call, which returned that, once more: a
// setting of the network is written when nobody else holds the lock.
func restarts(returned uint64) bool {
	const sys, noIntr, noHand, block = 512, 513, 514, 516 // ERESTART…, linux/errno.h
	switch -int64(returned) {
	case sys, noIntr, noHand, block:
		return true
	}
	return false
}

// info is struct ptrace_syscall_info (linux/ptrace.h).
type info struct {
	op   uint8
	_    [3]byte
	arch uint32
	_    [2]uint64 // instruction and stack pointer
	nr   uint64    // at the end of a call: what it returned
	args [6]uint64
	_    uint64
}

// Values of info.op.
const (
	syscallEntry = 1
	syscallExit  = 2
)

// syscallInfo tells start and end of a call apart, since Linux 5.3.
func syscallInfo(tid int) (info, error) {
	var i info
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_GET_SYSCALL_INFO, uintptr(tid),
		unsafe.Sizeof(i), uintptr(unsafe.Pointer(&i)), 0, 0)
	switch {
	case errno != 0:
		return info{}, refused(fmt.Errorf("ptrace: %w", errno))
	case i.op != syscallEntry && i.op != syscallExit:
		return info{}, fmt.Errorf("ptrace: unknown kind of system call stop %d", i.op)
	}
	return i, nil
}

// processOf is the process that a thread belongs to.
func processOf(tid int) (int, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", tid))
	if errors.Is(err, os.ErrNotExist) {
		return 0, unix.ESRCH
	}
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(status), "\nTgid:")
	var process int
	if _, err := fmt.Sscan(rest, &process); err != nil {
		return 0, fmt.Errorf("read /proc/%d/status: %w", tid, err)
	}
	return process, nil
}
