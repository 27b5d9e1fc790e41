package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// lockDir is where only root can make files. The plugins have their locks there too.
const lockDir = "/run/cnikit"

// Where an update starts the new agent a little before the old one has ended, the new one
// waits for it.
const (
	lockPatience = 5 * time.Second
	lockInterval = 50 * time.Millisecond
)

// busyError says that an agent of the network runs on this host.
type busyError struct {
	network string
	pid     int // 0: not seen from here, as in another container
}

func (e *busyError) Error() string {
	where := "not seen from here, perhaps in a container"
	if e.pid != 0 {
		where = fmt.Sprintf("pid %d", e.pid)
	}
	return fmt.Sprintf("an agent of network %q runs on this host (%s): end it first", e.network, where)
}

// lock waits until no other agent of the network runs on this host, see tryLock. Two would
// undo each other's work.
func (o options) lock(ctx context.Context, log *slog.Logger) (unlock func(), err error) {
	timeout := time.After(lockPatience)
	for said := false; ; said = true {
		unlock, err := tryLock(lockDir, o.network)
		var busy *busyError
		if !errors.As(err, &busy) {
			return unlock, err
		}
		if !said {
			log.Info("waits until the other agent ends", "pid", busy.pid, "longest", lockPatience)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-timeout:
			return nil, busy
		case <-time.After(lockInterval):
		}
	}
}
