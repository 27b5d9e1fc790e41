package cnitest

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Process is a process that runs in a namespace.
type Process struct {
	PID     int
	Command string // its arguments, separated by spaces
}

func (p Process) String() string { return fmt.Sprintf("process %d (%s)", p.PID, p.Command) }

// Processes lists the processes whose network namespace this is, by their entries in
// /proc; the calling process is never listed. A process that only has a socket or a
// thread inside is not seen. A closed handle is an error that matches [fs.ErrClosed]: the
// kernel gives the number of a namespace that is gone to the next.
func (n *Namespace) Processes() ([]Process, error) {
	if n.ns.Fd() < 0 {
		return nil, fmt.Errorf("list processes in %s: %w", n.name, fs.ErrClosed)
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes in %s: %w", n.name, err)
	}
	var found []Process
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil || pid == os.Getpid() || !n.holds(pid) {
			continue
		}
		cmdline, _ := os.ReadFile(filepath.Join("/proc", entry.Name(), "cmdline"))
		command := strings.TrimSpace(strings.ReplaceAll(string(cmdline), "\x00", " "))
		found = append(found, Process{PID: pid, Command: command})
	}
	return found, nil
}

// holds reports whether the process lives in the namespace. A process that is gone, a
// zombie, or another user's lives in none.
func (n *Namespace) holds(pid int) bool {
	link, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid))
	return err == nil && link == fmt.Sprintf("net:[%d]", n.ns.Inode())
}

// EndProcesses ends the processes in the namespace, each by its PID: SIGTERM to all,
// and SIGKILL to those still there after the grace. It returns those it found. The
// caller must still wait for those that are its children.
func (n *Namespace) EndProcesses(grace time.Duration) ([]Process, error) {
	found, err := n.Processes()
	if err != nil {
		return nil, err
	}
	if err := n.end(found, grace); err != nil {
		return found, fmt.Errorf("end processes in %s: %w", n.name, err)
	}
	return found, nil
}
