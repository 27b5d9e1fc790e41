package cni

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

const (
	nsfsMagic  = 0x6e736673 // NSFS_MAGIC, linux/magic.h
	nsGetType  = 0xb703     // NS_GET_NSTYPE, linux/nsfs.h; since Linux 4.11
	ownNetNS   = "/proc/thread-self/ns/net"
	openNSFlag = syscall.O_RDONLY | syscall.O_CLOEXEC
)

// lookNetNS tells what path is. Anything that is not in nsfs is not opened: the
// path may be a FIFO or a device.
func lookNetNS(path string) (netnsKind, error) {
	var fsys syscall.Statfs_t
	err := ignoringEINTR(func() error { return syscall.Statfs(path, &fsys) })
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ENAMETOOLONG):
		return netnsAbsent, nil
	case err != nil:
		return 0, fmt.Errorf("statfs: %w", err)
	case int64(fsys.Type) != nsfsMagic: //nolint:unconvert // the type depends on the architecture
		return netnsNone, nil
	}
	fd, err := syscall.Open(path, openNSFlag, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return netnsAbsent, nil
	}
	if err != nil {
		return 0, fmt.Errorf("open: %w", err)
	}
	defer syscall.Close(fd) //nolint:errcheck // opened for reading
	return kindOfNamespace(fd)
}

func kindOfNamespace(fd int) (netnsKind, error) {
	kind, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), nsGetType, 0)
	// ENOTTY: a kernel without the call. A namespace of another kind has another inode then.
	if errno != 0 && errno != syscall.ENOTTY {
		return 0, fmt.Errorf("ask for the kind of namespace: %w", errno)
	}
	if errno == 0 && kind != syscall.CLONE_NEWNET {
		return netnsNone, nil
	}
	var its, own syscall.Stat_t
	if err := syscall.Fstat(fd, &its); err != nil {
		return 0, fmt.Errorf("stat: %w", err)
	}
	if err := syscall.Stat(ownNetNS, &own); err != nil {
		return 0, fmt.Errorf("stat %s: %w", ownNetNS, err)
	}
	if its.Dev == own.Dev && its.Ino == own.Ino {
		return netnsOwn, nil
	}
	return netnsOther, nil
}

func ignoringEINTR(call func() error) error {
	for {
		if err := call(); err != syscall.EINTR { //nolint:errorlint // a system call returns it bare
			return err
		}
	}
}
