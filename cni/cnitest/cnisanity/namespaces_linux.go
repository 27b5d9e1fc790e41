package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// noProc is the exit status of a first process that can have no /proc.
const noProc = 3

// marker is the variable by which the command knows that it is in its own namespaces:
// asRoot or asUser, and behind a space the mount namespace that it was started in. It
// ends in asFirst for the first process of a namespace for processes.
const (
	marker  = "CNISANITY_INSIDE"
	asRoot  = "root"
	asUser  = "user"
	asFirst = " first"
)

// inside does not trust the variable alone: what comes next hides directories.
func inside() bool {
	_, outer, found := strings.Cut(strings.TrimSuffix(os.Getenv(marker), asFirst), " ")
	here, err := mountNamespace()
	return found && err == nil && here != outer
}

// first reports whether this is the first process of a namespace, and no more than that.
func first() bool { return inside() && strings.HasSuffix(os.Getenv(marker), asFirst) }

// unprivileged reports whether rights are only those in a user namespace.
func unprivileged() bool { return strings.HasPrefix(os.Getenv(marker), asUser+" ") }

// mountNamespace names that of the process.
func mountNamespace() (string, error) { return os.Readlink("/proc/self/ns/mnt") }

// child is the command that is executed again. The configuration that was read goes
// along, on its standard input: what it came from may be read only once.
type child struct {
	args           []string
	config         []byte
	stdout, stderr io.Writer
}

// enter runs the command in namespaces of its own: for the network, mounts and processes,
// and for users if it is not root. Processes keep the machine's namespace where another
// one cannot be had, or would not be seen in /proc. The result is the exit status.
func (c child) enter(ctx context.Context) (int, error) {
	runtime.LockOSThread() // the child is told when this thread ends
	defer runtime.UnlockOSThread()
	status, err := c.enterAs(ctx, true)
	if status == noProc || errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOSPC) {
		status, err = c.enterAs(ctx, false)
	}
	return status, err
}

func (c child) enterAs(ctx context.Context, processes bool) (int, error) {
	if os.Geteuid() == 0 {
		status, err := c.run(ctx, asRoot, processes)
		if !errors.Is(err, unix.EPERM) {
			return status, err
		}
	}
	return c.run(ctx, asUser, processes)
}

// run returns the exit status. An error that matches [unix.EPERM] means that it may not
// have the namespaces.
func (c child) run(ctx context.Context, as string, processes bool) (int, error) {
	outer, err := mountNamespace()
	if err != nil {
		return unable, err
	}
	mark := as + " " + outer
	attr := &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS, Pdeathsig: unix.SIGTERM}
	if processes {
		mark += asFirst
		attr.Cloneflags |= unix.CLONE_NEWPID
	}
	if as == asUser {
		attr.Cloneflags |= unix.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	return c.wait(ctx, mark, attr)
}

func (c child) wait(ctx context.Context, mark string, attr *syscall.SysProcAttr) (int, error) {
	own, err := os.Executable()
	if err != nil {
		return unable, err
	}
	cmd := exec.CommandContext(ctx, own, c.args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(unix.SIGTERM) }
	cmd.WaitDelay = 20 * time.Second
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(c.config), c.stdout, c.stderr
	cmd.Env = append(os.Environ(), marker+"="+mark)
	cmd.SysProcAttr = attr
	if err := cmd.Start(); err != nil {
		return unable, refused(err)
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if status := cmd.ProcessState.ExitCode(); err == nil || errors.As(err, &exit) && status >= 0 {
		return status, nil
	}
	return unable, fmt.Errorf("examination ended early: %w", err)
}

// lead is the work of the first process: it has /proc show its namespace, and runs the
// command there. When it ends the kernel ends all others, daemons included. Orphans are
// not waited for; there are few, and they go then.
func (c child) lead(ctx context.Context) (int, error) {
	if err := keepMounts(); err != nil {
		return unable, err
	}
	const flags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	if err := unix.Mount("proc", "/proc", "proc", flags, ""); err != nil {
		return noProc, nil
	}
	runtime.LockOSThread() // as in enter
	defer runtime.UnlockOSThread()
	return c.wait(ctx, strings.TrimSuffix(os.Getenv(marker), asFirst), &syscall.SysProcAttr{Pdeathsig: unix.SIGTERM})
}

// keepMounts has nobody else see what is mounted from here on.
func keepMounts() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keep mounts private: %w\n%s", err, wayOut())
	}
	return nil
}
