package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cnikit/cnikit/cni/cnitest"
)

// endGrace is how long processes may take to end after SIGTERM.
const endGrace = 3 * time.Second

// removed is what a clean-up found and removed.
type removed struct {
	namespaces int
	processes  []string
	files      int
}

func (r removed) nothing() bool { return r.namespaces == 0 && len(r.processes) == 0 && r.files == 0 }

func (r removed) String() string {
	return count(r.namespaces, "namespace") + ", " + count(len(r.processes), "process") + ", " + count(r.files, "file")
}

// remove ends every process of this lab and removes its namespaces and what is in its
// directory, whichever run they are of. The caller has the lock.
func (o options) remove() (removed, error) {
	var r removed
	paths, err := cnitest.FindNamespaces(namespaceDir, o.namespace(""))
	errs := []error{err}
	for _, path := range paths {
		ended, err := empty(path)
		r.processes = append(r.processes, ended...)
		errs = append(errs, err, cnitest.RemoveNamespace(path))
		r.namespaces++
	}
	entries, err := os.ReadDir(o.dir())
	if !errors.Is(err, fs.ErrNotExist) {
		errs = append(errs, err)
	}
	r.files = len(files(o.dir()))
	for _, entry := range entries {
		errs = append(errs, os.RemoveAll(filepath.Join(o.dir(), entry.Name())))
	}
	return r, errors.Join(errs...)
}

// empty ends the processes in a namespace.
func empty(path string) (ended []string, err error) {
	ns, err := cnitest.OpenNamespace(path)
	if err != nil {
		return nil, nil // a mount point without its namespace holds nothing
	}
	defer func() { _ = ns.Close() }()
	processes, err := ns.EndProcesses(endGrace)
	for _, p := range processes {
		ended = append(ended, brief(p))
	}
	return ended, err
}

// brief is a process by its number and the beginning of its command.
func brief(p cnitest.Process) string {
	const most = 48
	program, args, _ := strings.Cut(p.Command, " ")
	command := filepath.Base(program) + " " + args
	if len(command) > most {
		command = command[:most] + " …"
	}
	return fmt.Sprintf("process %d: %s", p.PID, command)
}

// removeLeftovers cleans up after a run that was killed, and says so.
func (l *lab) removeLeftovers() error {
	r, err := l.remove()
	if !r.nothing() {
		l.out.title("leftovers", "an earlier run did not clean up; removed "+r.String())
		for _, p := range r.processes {
			l.out.say("- %s", p)
		}
	}
	return err
}

// finish cleans up at the end of a run, however it went. It takes no context: what
// interrupts the lab must not interrupt its clean-up.
func (l *lab) finish(code int) int {
	r, err := l.remove()
	for _, n := range l.nodes {
		n.reap()
	}
	l.release()
	if err == nil {
		err = l.nothingLeft()
	}
	if err != nil {
		l.out.fail("clean-up", err, l.dir())
		return max(code, exitFailed)
	}
	if code == exitOK {
		l.out.title("done", "every step found what it had to; "+count(r.namespaces, "namespace")+" removed")
	} else {
		l.out.title("clean-up", "removed "+r.String())
	}
	return code
}

func (l *lab) nothingLeft() error {
	paths, err := cnitest.FindNamespaces(namespaceDir, l.namespace(""))
	if err == nil && len(paths) > 0 {
		err = fmt.Errorf("namespaces are left: %s", strings.Join(paths, ", "))
	}
	return err
}

// release gives up the handles of the run.
func (l *lab) release() {
	for _, n := range l.nodes {
		n.release()
	}
	if l.wire != nil {
		_ = l.wire.Close()
	}
}
