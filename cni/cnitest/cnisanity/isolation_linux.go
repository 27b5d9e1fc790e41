package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// refused explains why there are no namespaces, and what to do.
func refused(err error) error {
	if errors.Is(err, unix.ENOSPC) {
		err = fmt.Errorf("the limit of the kernel is reached: %w", err)
	}
	return fmt.Errorf("no namespaces to examine the plugin in: %w\n%s", err, wayOut())
}

// wayOut names the settings of the kernel that refuse namespaces.
func wayOut() string {
	var b strings.Builder
	for _, setting := range []struct{ name, refuses, allow string }{
		{"user/max_user_namespaces", "0", "15000"},
		{"user/max_net_namespaces", "0", "15000"},
		{"user/max_mnt_namespaces", "0", "15000"},
		{"kernel/unprivileged_userns_clone", "0", "1"},
		{"kernel/apparmor_restrict_unprivileged_userns", "1", "0"},
	} {
		value, err := os.ReadFile("/proc/sys/" + setting.name)
		if name := strings.ReplaceAll(setting.name, "/", "."); err == nil && strings.TrimSpace(string(value)) == setting.refuses {
			fmt.Fprintf(&b, "the kernel has %s=%s; allow namespaces with: sudo sysctl -w %s=%s\n", name, setting.refuses, name, setting.allow)
		}
	}
	b.WriteString("or run it as root, which needs no user namespace: sudo cnisanity …; in a container it takes --privileged")
	return b.String()
}

// hideMachine puts empty directories over those in which plugins keep state, so that
// nothing of the machine is seen or changed: /run, /var/lib, and those in which this
// one does. Only this process and its children see them. What is needed of the old
// ones stays.
func hideMachine(state, needed []string) error {
	if err := keepMounts(); err != nil {
		return err
	}
	if err := hideDevices(); err != nil {
		return err
	}
	hidden := []string{"/run", "/var/lib"}
	for _, dir := range hidden {
		if err := hide(dir, needed); err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("hide %s of this machine: %w\n%s", dir, err, wayOut())
		}
	}
	for _, dir := range state {
		if err := hideState(dir, hidden, needed); err != nil {
			return fmt.Errorf("flag -dir: %s: %w", dir, err)
		}
	}
	return nil
}

// hideDevices has /sys show the network of this process: that of the machine has the
// devices of the network in which it was mounted, to be set from anywhere. Where the
// kernel allows no other, it is made read-only.
func hideDevices() error {
	const flags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	err := unix.Mount("sysfs", "/sys", "sysfs", flags, "")
	if err == nil {
		return nil
	}
	only := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if readOnly := unix.MountSetattr(unix.AT_FDCWD, "/sys", unix.AT_RECURSIVE, &only); readOnly != nil && !unprivileged() {
		return fmt.Errorf("hide /sys of this machine: %w\n%s", errors.Join(err, readOnly), wayOut())
	}
	return nil // without root, nothing in it can be written anyway
}

// hideState makes a directory, or hides the one that is there.
func hideState(dir string, hidden, needed []string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	for _, above := range hidden {
		if strings.HasPrefix(dir, above+"/") {
			return os.MkdirAll(dir, 0o755)
		}
	}
	if dir, err = resolved(dir); err != nil {
		return fmt.Errorf("%w; make it first: only those below %s are made here", err, strings.Join(hidden, " and "))
	}
	return hide(dir, needed)
}

// hide puts an empty directory over one, and into it what is needed; not if all of it
// is.
func hide(dir string, needed []string) error {
	kept := map[string]int{}
	defer func() {
		for _, fd := range kept {
			_ = unix.Close(fd)
		}
	}()
	for _, path := range needed {
		path, err := resolved(path)
		if err == nil && path == dir {
			return nil
		}
		if err != nil || !strings.HasPrefix(path, dir+"/") {
			continue // one that is not there is missed by who needs it
		}
		fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("keep %s: %w", path, err)
		}
		if old, ok := kept[path]; ok {
			_ = unix.Close(old)
		}
		kept[path] = fd
	}
	if err := unix.Mount("cnisanity", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755"); err != nil {
		return err
	}
	for path, fd := range kept {
		if err := os.MkdirAll(path, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(fmt.Sprintf("/proc/self/fd/%d", fd), path, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("keep %s: %w", path, err)
		}
	}
	return nil
}

// resolved is the path of a directory without symbolic links.
func resolved(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(path)
}
