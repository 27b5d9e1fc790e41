//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package hostlocal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"syscall"
	"time"
)

// How long a waiter sleeps between two attempts: doubled from the first to the
// second, and jittered. The lock is held for a few file operations.
const (
	minWait = 200 * time.Microsecond
	maxWait = 5 * time.Millisecond
)

// lock is a held lock. The nil lock holds nothing.
type lock struct{ file *os.File }

// lockExclusive takes the lock of a directory alone, and creates the lock file
// as the reference plugin does.
func lockExclusive(ctx context.Context, path string) (*lock, error) {
	return acquire(ctx, path, os.O_RDONLY|os.O_CREATE, syscall.LOCK_EX)
}

// lockShared takes the lock together with other readers. An error matching
// fs.ErrNotExist says that no writer has ever been here.
func lockShared(ctx context.Context, path string) (*lock, error) {
	return acquire(ctx, path, os.O_RDONLY, syscall.LOCK_SH)
}

func (l *lock) unlock() {
	if l == nil {
		return
	}
	_ = syscall.Flock(int(l.file.Fd()), syscall.LOCK_UN) // at once, even if a child between fork and exec has the file
	_ = l.file.Close()
}

// acquire waits for the lock until ctx ends.
func acquire(ctx context.Context, path string, flag, how int) (*lock, error) {
	for wait := minWait; ; wait = min(2*wait, maxWait) {
		l, err := try(path, flag, how)
		if l != nil || err != nil {
			return l, err
		}
		select {
		case <-time.After(wait/2 + rand.N(wait)):
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for lock %s: %w", path, ctx.Err())
		}
	}
}

// try returns a nil lock when somebody else holds it. It opens the file anew, so
// that a waiter follows a directory that is replaced, and looks again when it has the
// lock: nobody is kept out by the lock of a directory that is gone.
func try(path string, flag, how int) (*lock, error) {
	f, info, err := open(path, flag)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
	if err == nil && current(info, path) {
		return &lock{f}, nil
	}
	_ = f.Close()
	if err != nil && !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return nil, nil
}

// open opens a regular file, and does not wait for the other end of what is a pipe.
func open(path string, flag int) (*os.File, fs.FileInfo, error) {
	f, err := os.OpenFile(path, flag|syscall.O_NONBLOCK, 0o750)
	if errors.Is(err, syscall.EISDIR) {
		return nil, nil, notRegular(path)
	}
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = notRegular(path)
	}
	if err != nil {
		_ = f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

func notRegular(path string) error {
	return fmt.Errorf("%s is not a regular file; remove it", path)
}

// current reports that a file still has its name.
func current(file fs.FileInfo, path string) bool {
	there, err := os.Stat(path)
	return err == nil && os.SameFile(file, there)
}
