package netif

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnikit/cnikit/internal/netns"
	"github.com/cnikit/cnikit/internal/nl"
)

// The time between two attempts to take a lock grows between these bounds: dozens of
// plugins may wait, and each attempt costs whoever holds it.
const (
	minLockInterval = time.Millisecond
	maxLockInterval = 16 * time.Millisecond
)

// Namespace is a handle on one network namespace whose interfaces are read and
// changed. It is safe for concurrent use. [Namespace.Close] releases it.
type Namespace struct {
	ns   *netns.NS
	conn *nl.Conn
}

// Current returns a handle on the network namespace of the calling thread; in a plugin
// that is the node's.
func Current() (*Namespace, error) {
	ns, err := netns.Current()
	if err != nil {
		return nil, err
	}
	return openIn(ns)
}

// Open returns a handle on the network namespace at path, as CNI_NETNS has it. The
// error matches [io/fs.ErrNotExist] when nothing is there.
func Open(path string) (*Namespace, error) {
	ns, err := netns.Open(path)
	if err != nil {
		return nil, err
	}
	return openIn(ns)
}

func openIn(ns *netns.NS) (*Namespace, error) {
	conn, err := nl.OpenIn(ns)
	if err != nil {
		_ = ns.Close()
		return nil, err
	}
	return &Namespace{ns: ns, conn: conn}, nil
}

// Close releases the handle; the namespace and what was set up in it stay. No other
// method may be running or follow.
func (n *Namespace) Close() {
	n.conn.Close()
	_ = n.ns.Close()
}

// Lock waits until no other handle, in this process or another, holds the lock of the
// namespace, or ctx ends. Plugins hold it while they change what attachments share,
// such as a bridge and its addresses. The lock goes with unlock or the process; it is a
// flock(2) on the namespace itself and leaves no file.
func (n *Namespace) Lock(ctx context.Context) (unlock func(), err error) {
	lock, err := netns.Open(fmt.Sprintf("/proc/self/fd/%d", n.ns.Fd()))
	if err != nil {
		return nil, fmt.Errorf("lock network namespace: %w", err)
	}
	for interval := minLockInterval; ; interval = min(2*interval, maxLockInterval) {
		err := unix.Flock(lock.Fd(), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { _ = lock.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			_ = lock.Close()
			return nil, fmt.Errorf("lock network namespace: %w", err)
		}
		select {
		case <-ctx.Done():
			_ = lock.Close()
			return nil, fmt.Errorf("wait for the lock of the network namespace: %w", ctx.Err())
		case <-time.After(interval):
		}
	}
}
