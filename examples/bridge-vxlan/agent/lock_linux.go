package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// tryLock takes the lock of a network on this host, which is a network namespace. An agent
// holds it as long as it runs, uninstall as long as it works. It goes with unlock or the
// process. The error is a [*busyError] when another process has it.
//
// It is a lock of fcntl(2), which tells who has it, on a file that only root can open;
// processes exclude each other when they see the same directory, so a container has to
// mount the node's. Who has no right to write there, as in a user namespace, takes a name
// among the abstract sockets of the network namespace, which any process in it could take.
func tryLock(dir, network string) (unlock func(), err error) {
	var ns unix.Stat_t
	if err := unix.Stat("/proc/self/ns/net", &ns); err != nil {
		return nil, fmt.Errorf("look at network namespace: %w", err)
	}
	path := filepath.Join(dir, fmt.Sprintf("agent-%d-%d-%s.lock", ns.Dev, ns.Ino, url.PathEscape(network)))
	file, err := openLock(path)
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS) {
		return tryName(network)
	}
	if err != nil {
		return nil, fmt.Errorf("lock network %q: %w", network, err)
	}
	if err := lockFile(file, network); err != nil {
		_ = file.Close()
		return nil, err
	}
	if !isAt(file, path) { // who had it removed it after it was opened here
		_ = file.Close()
		return tryLock(dir, network)
	}
	return func() {
		if isAt(file, path) {
			_ = os.Remove(path)
		}
		_ = file.Close()
	}, nil
}

func tryName(network string) (unlock func(), err error) {
	name, err := net.Listen("unix", "@cnikit-agent/"+network)
	if errors.Is(err, unix.EADDRINUSE) {
		return nil, &busyError{network: network}
	}
	if err != nil {
		return nil, fmt.Errorf("lock network %q: %w", network, err)
	}
	return func() { _ = name.Close() }, nil
}

func lockFile(file *os.File, network string) error {
	whole := unix.Flock_t{Type: unix.F_WRLCK}
	err := unix.FcntlFlock(file.Fd(), unix.F_SETLK, &whole)
	if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EACCES) {
		return err
	}
	if err := unix.FcntlFlock(file.Fd(), unix.F_GETLK, &whole); err != nil || whole.Type == unix.F_UNLCK {
		whole.Pid = 0
	}
	return &busyError{network: network, pid: int(whole.Pid)}
}

// openLock makes the directory and the file where they are missing, and refuses those that
// anybody else could have put there.
func openLock(path string) (*os.File, error) {
	dir := filepath.Dir(path)
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
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
	case !isOwn(there, unix.S_IFDIR, 0o022):
		err = fmt.Errorf("%s is no directory that only this user can write to; delete it", dir)
	case !isOwn(opened, unix.S_IFREG, 0o077):
		err = fmt.Errorf("%s is no file that only this user can open; delete it", path)
	}
	if err != nil {
		_ = file.Close()
		return nil, err
	}
	return file, nil
}

// isOwn reports whether an inode is of this kind, belongs to this user and grants others
// none of the rights.
func isOwn(s unix.Stat_t, kind, rights uint32) bool {
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
