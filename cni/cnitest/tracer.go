package cnitest

import "fmt"

// A traced command runs under ptrace(2), with all processes that it starts, so that
// every change that it makes to the world can be seen before it is made, and the
// command killed there.

// command is one execution of a program.
type command struct {
	path  string
	env   []string
	stdin []byte
}

// change is a system call that changes what outlives the process: the network, files,
// mounts. What only reads (a netlink dump) is none, nor is what would change nothing
// (to open a file that exists).
type change struct {
	by   string // the name of the program
	what string // "RTM_NEWLINK eth0", "rename /dir/a /dir/b"
}

func (c change) String() string { return c.by + ": " + c.what }

// moment is a point in the run of a traced command: before a change or after it. The
// changes of all processes of a command are counted together, from 1; the zero moment
// never comes. Just after a change the world is as it is just before the next one, so
// all moments before and the one after the last are all there are.
type moment struct {
	number int
	after  bool
}

func (m moment) String() string {
	if m.after {
		return fmt.Sprintf("after change %d", m.number)
	}
	return fmt.Sprintf("before change %d", m.number)
}

// traced is what a traced command did.
type traced struct {
	changes        []change // in order; a command killed before one did not make the last
	killed         bool     // at the moment asked for
	exit           int      // the exit status; -1 when a signal ended the command
	stdout, stderr []byte
}
