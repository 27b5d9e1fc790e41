package fromskel

import (
	"fmt"
	"io"
	"math"
	"os"

	"golang.org/x/sys/unix"

	"github.com/cnikit/cnikit/cni"
)

// captured returns what is printed to standard output while fn runs, by this process
// and by those it starts. The file descriptor leads elsewhere meanwhile; os.Stdout,
// which other goroutines may read, stays. When fn panics, the text is printed. It is
// called in turn.
//
// The text goes to memory and not through a pipe, which a process that outlives fn
// would hold open.
func captured(fn func() error) (printed []byte, err error) {
	stdout := int(os.Stdout.Fd())
	memory, saved, err := redirect(stdout)
	if err != nil {
		return nil, cni.Errorf(cni.CodeIO, "capture standard output: %w", err)
	}
	returned := false
	defer func() {
		_ = unix.Dup3(saved, stdout, 0)
		_ = unix.Close(saved)
		printed, _ = io.ReadAll(io.NewSectionReader(memory, 0, math.MaxInt64))
		_ = memory.Close()
		if !returned {
			show(printed)
		}
	}()
	err = fn()
	returned = true
	return nil, err
}

// redirect makes the descriptor one of a file in memory, and returns another
// descriptor for what it was.
func redirect(stdout int) (memory *os.File, saved int, err error) {
	fd, err := unix.MemfdCreate("stdout", unix.MFD_CLOEXEC) // since Linux 3.17
	if err != nil {
		return nil, 0, fmt.Errorf("make a file in memory: %w", err)
	}
	memory = os.NewFile(uintptr(fd), "stdout")
	saved, err = unix.FcntlInt(uintptr(stdout), unix.F_DUPFD_CLOEXEC, 3)
	if err == nil {
		if err = unix.Dup3(fd, stdout, 0); err == nil {
			return memory, saved, nil
		}
		_ = unix.Close(saved)
	}
	_ = memory.Close()
	return nil, 0, fmt.Errorf("duplicate the descriptor: %w", err)
}
