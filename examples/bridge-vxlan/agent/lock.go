package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/cnikit/cnikit/cni/netif"
)

// Where an update starts the new agent a little before the old one has ended, the new one
// waits for it.
const (
	lockPatience = 10 * time.Second
	lockInterval = 50 * time.Millisecond
)

// tryLock takes the lock of the network on this host, which is a network namespace. An
// agent holds it as long as it runs, uninstall as long as it works. The error is a
// [*busyError] when another process has it.
func (o options) tryLock() (unlock func(), err error) {
	host, err := netif.Current()
	if err != nil {
		return nil, err
	}
	defer host.Close()
	unlock, err = host.TryLock("agent-" + o.network)
	var locked *netif.LockedError
	if errors.As(err, &locked) {
		return nil, &busyError{network: o.network, pid: locked.PID}
	}
	return unlock, err
}

// busyError says that an agent of the network runs on this host.
type busyError struct {
	network string
	pid     int // 0: not seen from here
}

func (e *busyError) Error() string {
	where := "not seen from here, perhaps in a container"
	if e.pid != 0 {
		where = fmt.Sprintf("pid %d", e.pid)
	}
	return fmt.Sprintf("an agent of network %q runs on this host (%s): end it first", e.network, where)
}

// lock waits until no other agent of the network runs on this host. Two would undo each
// other's work.
func (o options) lock(ctx context.Context, log *slog.Logger) (unlock func(), err error) {
	timeout := time.After(lockPatience)
	for said := false; ; said = true {
		unlock, err := o.tryLock()
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
