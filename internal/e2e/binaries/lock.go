package binaries

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// lock takes the file as an exclusive lock and says on log whom it waits for. The kernel
// lets go of it when the process that holds it ends, in whatever way. Close the file to
// unlock.
func lock(ctx context.Context, path string, log io.Writer) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := acquire(ctx, f, log); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
	}
	// Who holds it is for people; a wrong or missing line harms nothing.
	if err := f.Truncate(0); err == nil {
		_, _ = f.WriteAt([]byte(fmt.Sprintf("process %d", os.Getpid())), 0)
	}
	return f, nil
}

// acquire asks again and again: a wait for flock in the kernel cannot be cancelled.
func acquire(ctx context.Context, f *os.File, log io.Writer) error {
	const interval = 100 * time.Millisecond
	for told := false; ; {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return err
		}
		if !told {
			fmt.Fprintf(log, "waiting for %s, which builds into the same cache\n", holder(f.Name()))
			told = true
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(interval):
		}
	}
}

func holder(path string) string {
	content, _ := os.ReadFile(path)
	if text := strings.TrimSpace(string(content)); text != "" {
		return text
	}
	return "another process"
}
