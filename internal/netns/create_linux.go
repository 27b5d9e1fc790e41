package netns

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// New makes an anonymous network namespace. It lives as long as the handle, or
// whatever else holds it. It needs CAP_SYS_ADMIN in the current user namespace and
// no mount, so it also works inside "unshare -r".
func New() (*NS, error) {
	var n *NS
	err := onThread(func() (err error) {
		n, err = unshare()
		return err
	})
	return n, err
}

// unshare moves the calling thread to a new namespace.
func unshare() (*NS, error) {
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return nil, fmt.Errorf("create network namespace: %w", err)
	}
	return Current()
}

// Create makes a network namespace that is bind-mounted at path and lives until
// [Remove], as ip-netns(8) does: the directory is made when it is missing, and made
// a shared mount when it is not on one, so that mount namespaces copied from ours
// see the namespace come and go. A path that exists is an error that matches
// [fs.ErrExist]. Nothing stays behind on failure. Create needs CAP_SYS_ADMIN in the
// user namespace of the mount namespace.
func Create(path string) (*NS, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("create network namespace: %w", err)
	}
	if err := shareDir(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("create network namespace %s: %w", path, err)
	}
	file, err := os.OpenFile(path, os.O_RDONLY|os.O_CREATE|os.O_EXCL, 0o444)
	if err != nil {
		return nil, fmt.Errorf("create network namespace: %w", err)
	}
	_ = file.Close()
	n, err := createAt(path)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("create network namespace %s: %w", path, err), Remove(path))
	}
	return n, nil
}

func createAt(path string) (*NS, error) {
	var n *NS
	err := onThread(func() (err error) {
		if n, err = unshare(); err != nil {
			return err
		}
		if err = unix.Mount(threadPath, path, "none", unix.MS_BIND, ""); err != nil {
			_ = n.Close()
			return fmt.Errorf("bind mount: %w", err)
		}
		n.path = path
		return nil
	})
	return n, err
}

// Remove unmounts the namespace at path and removes the mount point. The namespace
// itself ends when nothing else holds it. Nothing at path is no error; a file with
// content or a directory is left alone and is an error that matches [ErrNotNetNS].
// A directory mount that [Create] made goes with the last namespace in it, except in
// the directories of ip-netns(8).
func Remove(path string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("remove network namespace: %w", err)
	}
	if err := unmountAll(path); err != nil {
		return fmt.Errorf("remove network namespace %s: %w", path, err)
	}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("remove network namespace: %w", err)
	case !info.Mode().IsRegular() || info.Size() > 0:
		return fmt.Errorf("remove network namespace %s: %w: left alone", path, ErrNotNetNS)
	}
	if err := unix.Unlink(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove network namespace %s: %w", path, err)
	}
	return unshareDir(filepath.Dir(path))
}

// unmountAll takes off every nsfs mount on path, and nothing else.
func unmountAll(path string) error {
	for {
		var fsys unix.Statfs_t
		err := unix.Statfs(path, &fsys)
		if errors.Is(err, fs.ErrNotExist) || err == nil && fsys.Type != unix.NSFS_MAGIC {
			return nil
		}
		if err != nil {
			return err
		}
		if err := unix.Unmount(path, unix.MNT_DETACH); err != nil {
			return fmt.Errorf("unmount: %w", err)
		}
	}
}
