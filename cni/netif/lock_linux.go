package netif

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// lockDir is where only root can make lock files.
const lockDir = "/run/cnikit"

// The time between two attempts to take a lock grows between these bounds: dozens of
// plugins may wait, and each attempt costs whoever holds it.
const (
	minLockInterval = time.Millisecond
	maxLockInterval = 16 * time.Millisecond
)

// errLockBusy says that another holds the lock.
var errLockBusy = errors.New("lock is held by another")

// Lock waits until no other handle, in this process or another, holds the lock of the
// namespace, or ctx ends. Plugins hold it while they change what attachments share,
// such as a bridge and its addresses. The lock goes with unlock or the process.
//
// It is a flock(2) on a file in /run/cnikit that only root can open and that unlock
// removes: any process may open, and so lock, the namespace it is in. Processes exclude
// each other when they see the same /run; a container has to mount the node's
// /run/cnikit. Without the right to write there, as in a user namespace, the lock is on
// the network namespace itself, which whoever is in it can withhold until ctx ends.
func (n *Namespace) Lock(ctx context.Context) (unlock func(), err error) {
	for interval := minLockInterval; ; interval = min(2*interval, maxLockInterval) {
		unlock, err := n.tryLock(lockDir)
		if err == nil {
			return unlock, nil
		}
		if !errors.Is(err, errLockBusy) {
			return nil, fmt.Errorf("lock network namespace: %w", err)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the lock of the network namespace: %w", ctx.Err())
		case <-time.After(interval):
		}
	}
}

// TryLock takes the lock of that name of the namespace, one besides that of
// [Namespace.Lock] and independent of it, for what there may be one of on a node, such as
// a node agent. It does not wait: a [*LockedError] says that another handle, in this
// process or another, holds it. The lock goes with unlock or the process.
//
// Its file is as for [Namespace.Lock]. Without the right to write there, it is a name
// among the abstract sockets of the namespace, which any process in it can take.
func (n *Namespace) TryLock(name string) (unlock func(), err error) {
	return n.tryNamed(lockDir, name)
}

func (n *Namespace) tryNamed(dir, name string) (unlock func(), err error) {
	path, err := n.lockPath(dir, "-"+url.PathEscape(name))
	if err != nil {
		return nil, fmt.Errorf("lock %q: %w", name, err)
	}
	unlock, err = tryLockFile(path)
	if cannotWrite(err) {
		unlock, err = n.tryLockSocket(name)
	}
	if errors.Is(err, errLockBusy) {
		return nil, &LockedError{Name: name, PID: holder(path)}
	}
	if err != nil {
		return nil, fmt.Errorf("lock %q: %w", name, err)
	}
	return unlock, nil
}

func (n *Namespace) tryLock(dir string) (unlock func(), err error) {
	path, err := n.lockPath(dir, "")
	if err != nil {
		return nil, err
	}
	unlock, err = tryLockFile(path)
	if cannotWrite(err) {
		return n.tryLockItself()
	}
	return unlock, err
}

// lockPath is where a lock of the namespace has its file. The suffix is of its name.
func (n *Namespace) lockPath(dir, suffix string) (string, error) {
	var ns unix.Stat_t
	if err := unix.Fstat(n.ns.Fd(), &ns); err != nil {
		return "", err
	}
	return filepath.Join(dir, fmt.Sprintf("netns-%d-%d%s.lock", ns.Dev, ns.Ino, suffix)), nil
}

func cannotWrite(err error) bool {
	return errors.Is(err, os.ErrPermission) || errors.Is(err, unix.EROFS)
}

func tryLockFile(path string) (unlock func(), err error) {
	file, err := openLockFile(path)
	if err != nil {
		return nil, err
	}
	if err := flock(file); err != nil {
		_ = file.Close()
		return nil, err
	}
	if !isAt(file, path) { // its holder removed it after we had opened it
		_ = file.Close()
		return tryLockFile(path)
	}
	return func() {
		if isAt(file, path) {
			_ = os.Remove(path)
		}
		_ = file.Close()
	}, nil
}

// tryLockItself locks the namespace. A descriptor of its own makes the lock one of this
// call rather than of the handle.
func (n *Namespace) tryLockItself() (unlock func(), err error) {
	file, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", n.ns.Fd()))
	if err != nil {
		return nil, err
	}
	if err := flock(file); err != nil {
		_ = file.Close()
		return nil, err
	}
	return func() { _ = file.Close() }, nil
}

// tryLockSocket takes a name in the namespace.
func (n *Namespace) tryLockSocket(name string) (unlock func(), err error) {
	var taken net.Listener
	err = n.ns.Do(func() (err error) {
		taken, err = net.Listen("unix", "@cnikit/"+name)
		return err
	})
	if errors.Is(err, unix.EADDRINUSE) {
		return nil, errLockBusy
	}
	if err != nil {
		return nil, err
	}
	return func() { _ = taken.Close() }, nil
}

// holder is the process that holds the lock on a file, 0 for none that is seen from
// here: /proc/locks leaves out those of other PID namespaces (proc_locks(5)).
func holder(path string) int {
	var file unix.Stat_t
	if err := unix.Lstat(path, &file); err != nil {
		return 0
	}
	locks, err := os.ReadFile("/proc/locks")
	if err != nil {
		return 0
	}
	inode := fmt.Sprintf("%02x:%02x:%d", unix.Major(file.Dev), unix.Minor(file.Dev), file.Ino)
	for line := range strings.Lines(string(locks)) {
		// 1: FLOCK ADVISORY WRITE 4711 00:1a:42 0 EOF; one that waits has "->" behind the number
		if f := strings.Fields(line); len(f) == 8 && f[1] == "FLOCK" && f[5] == inode {
			pid, _ := strconv.Atoi(f[4])
			return max(pid, 0)
		}
	}
	return 0
}

// openLockFile makes the directory and the file where they are missing, and refuses
// those that anybody else could have put there.
func openLockFile(path string) (*os.File, error) {
	dir := filepath.Dir(path)
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, err
	}
	var there, opened unix.Stat_t
	err = errors.Join(unix.Lstat(dir, &there), unix.Fstat(int(file.Fd()), &opened))
	switch {
	case err != nil:
	case !private(there, unix.S_IFDIR, 0o022):
		err = fmt.Errorf("%s is no directory that only this user can write to; delete it", dir)
	case !private(opened, unix.S_IFREG, 0o077):
		err = fmt.Errorf("%s is no file that only this user can open; delete it", path)
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// private reports whether an inode is of this kind, belongs to this user and grants
// others none of the rights.
func private(s unix.Stat_t, kind, rights uint32) bool {
	return s.Mode&unix.S_IFMT == kind && s.Uid == uint32(os.Geteuid()) && s.Mode&rights == 0
}

// isAt reports whether path still leads to the open file.
func isAt(file *os.File, path string) bool {
	opened, err := file.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(path)
	return err == nil && os.SameFile(opened, there)
}

func flock(file *os.File) error {
	err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.EINTR) {
		return errLockBusy
	}
	return err
}
