//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// The time between two attempts to take a lock grows between these bounds. The lock is held for the copy of an executable.
const (
	minLockInterval = time.Millisecond
	maxLockInterval = 16 * time.Millisecond
)

// lockPatience is how long to wait for a lock. Whoever may read the directory can lock it, so an error has to tell of one that
// does not let go.
const lockPatience = time.Minute

// lockDir waits until nobody else, in this process or another, holds the lock of a directory, lockPatience is over or ctx ends.
// It is a flock(2) on the directory itself, so it needs no file and ends with the process.
func lockDir(ctx context.Context, dir string) (unlock func(), err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, lockPatience,
		fmt.Errorf("not free within %v; see which process has it open, for instance by lsof %s", lockPatience, dir))
	defer cancel()
	for interval := minLockInterval; ; interval = min(2*interval, maxLockInterval) {
		unlock, err := tryLock(dir)
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return unlock, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the lock of %s, which another installer holds: %w", dir, context.Cause(ctx))
		case <-time.After(interval):
		}
	}
}

// tryLock opens the directory anew, so that a waiter follows one that is replaced.
func tryLock(dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("lock directory: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("lock directory %s: %w", dir, err)
	}
	return func() {
		_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) // at once, even if a child between fork and exec has it
		_ = f.Close()
	}, nil
}
