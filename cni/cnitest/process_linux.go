package cnitest

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// killed is how long a process may take to go after SIGKILL.
const killed = 30 * time.Second

// end signals through pidfds, so that a recycled PID is never hit.
func (n *Namespace) end(processes []Process, grace time.Duration) error {
	handles := map[int]Process{}
	defer func() {
		for fd := range handles {
			_ = unix.Close(fd)
		}
	}()
	for _, p := range processes {
		fd, err := unix.PidfdOpen(p.PID, 0)
		if errors.Is(err, unix.ESRCH) {
			continue
		}
		if err != nil {
			return fmt.Errorf("open %s: %w", p, err)
		}
		handles[fd] = p
		if !n.holds(p.PID) { // the PID went to another process since it was listed
			_ = unix.Close(fd)
			delete(handles, fd)
		}
	}
	return errors.Join(signal(handles, unix.SIGTERM, grace), signal(handles, unix.SIGKILL, killed), remaining(handles))
}

// signal sends to all, waits for them, and forgets those that exited in time.
func signal(handles map[int]Process, s unix.Signal, limit time.Duration) error {
	for fd, p := range handles {
		if err := unix.PidfdSendSignal(fd, s, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("send %s to %s: %w", unix.SignalName(s), p, err)
		}
	}
	deadline := time.Now().Add(limit)
	for fd := range handles {
		if exited(fd, time.Until(deadline)) {
			_ = unix.Close(fd)
			delete(handles, fd)
		}
	}
	return nil
}

// exited waits for the process behind a pidfd to exit.
func exited(fd int, limit time.Duration) bool {
	deadline := time.Now().Add(limit)
	for {
		left := max(time.Until(deadline), 0)
		ready, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(left.Milliseconds()))
		if !errors.Is(err, unix.EINTR) {
			return ready > 0
		}
	}
}

// remaining names those that even SIGKILL did not end.
func remaining(handles map[int]Process) error {
	var errs []error
	for _, p := range handles {
		errs = append(errs, fmt.Errorf("%s does not end", p))
	}
	return errors.Join(errs...)
}
