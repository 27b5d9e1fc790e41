package cnitest

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// mounts is a mount namespace that nobody is in, but the processes that are started
// there: what is mounted for them, nobody else sees.
type mounts struct{ file *os.File }

// newMounts copies the mounts of this process and has fn change the copy. Where the kernel
// allows it /sys shows the devices of the node there, as it does on a real one. It takes
// the rights of root, be it in a user namespace.
func newMounts(node *Namespace, fn func() error) (*mounts, error) {
	m := &mounts{}
	err := node.Do(func() error {
		runtime.LockOSThread() // once more than Do: this thread is not used again
		if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
			return fmt.Errorf("new mount namespace: %w", err)
		}
		err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
		if err == nil {
			showDevices()
			err = fn()
		}
		if err == nil {
			m.file, err = os.Open("/proc/thread-self/ns/mnt")
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("mounts of its own for the plugin: %w", err)
	}
	return m, nil
}

// showDevices mounts a /sys of the network namespace that the thread is in, and on it what
// was mounted on the old one: a sysfs has the devices of the namespace that it was mounted
// in. What is refused stays as it was.
func showDevices() {
	points, err := mountPoints("/sys")
	if err != nil {
		return
	}
	const flags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	old := map[string]int{}
	for _, point := range points {
		if fd, err := unix.Open(point, unix.O_PATH|unix.O_CLOEXEC, 0); err == nil && point != "/sys" {
			old[point] = fd
		}
	}
	err = unix.Mount("sysfs", "/sys", "sysfs", flags, "")
	for point, fd := range old {
		if err == nil {
			_ = unix.Mount(fmt.Sprintf("/proc/self/fd/%d", fd), point, "", unix.MS_BIND, "")
		}
		_ = unix.Close(fd)
	}
}

// do runs fn in the node with these mounts.
func (m *mounts) do(node *Namespace, fn func() error) error {
	return node.Do(func() error {
		runtime.LockOSThread() // as in newMounts
		if err := unix.Unshare(unix.CLONE_FS); err != nil {
			return err
		}
		if err := unix.Setns(int(m.file.Fd()), unix.CLONE_NEWNS); err != nil {
			return fmt.Errorf("enter mount namespace: %w", err)
		}
		return fn()
	})
}

func (m *mounts) close() { _ = m.file.Close() }

// readOnly makes what is below the directories read-only.
func readOnly(dirs []string) error {
	for _, dir := range dirs {
		if err := unix.Mount(dir, dir, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("bind mount %s: %w", dir, err)
		}
		if err := unix.MountSetattr(unix.AT_FDCWD, dir, unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
			return fmt.Errorf("make %s read-only: %w", dir, err)
		}
	}
	return nil
}

// small mounts an empty file system with little room on each directory.
func small(dirs []string) error {
	for _, dir := range dirs {
		if err := unix.Mount("cnitest", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=1m,mode=0755"); err != nil {
			return fmt.Errorf("mount tmpfs on %s: %w", dir, err)
		}
	}
	return nil
}

// noRoom reports whether an error says that a file system is full.
func noRoom(err error) bool { return errors.Is(err, unix.ENOSPC) }
