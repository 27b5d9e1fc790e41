package testenv

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// lock waits until no other call, of this process or another, has the directory locked.
// The lock is a flock(2) on the directory, which ends with the process at the latest.
func lock(dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EINTR) {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", dir, err), f.Close())
		}
	}
	return func() {
		_ = unix.Flock(int(f.Fd()), unix.LOCK_UN) // at once, even if a child between fork and exec has it
		_ = f.Close()
	}, nil
}
