package cnitest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// removeTree removes a directory with all that is in it, but not what a plugin mounted
// there, which belongs to somebody else: that is unmounted first, and as long as it is
// not, nothing is removed.
func removeTree(dir string) error {
	resolved, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return ignoreAbsent(err)
	}
	if err := unmountAll(resolved); err != nil {
		return fmt.Errorf("remove %s: %w", dir, err)
	}
	return os.RemoveAll(dir)
}

// unmountAll unmounts what is mounted at a directory and below.
func unmountAll(dir string) error {
	points, err := mountPoints(dir)
	if err != nil || len(points) == 0 {
		return err
	}
	var errs []error
	for _, point := range slices.Backward(points) { // the last mounted is on top
		if err := unix.Unmount(point, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
			errs = append(errs, fmt.Errorf("unmount %s: %w", point, err))
		}
	}
	left, err := mountPoints(dir) // one that went with another is no error
	if err != nil || len(left) == 0 {
		return err
	}
	return errors.Join(append(errs, fmt.Errorf("still mounted: %s", strings.Join(left, ", ")))...)
}

// mountPoints lists what is mounted at a directory and below, in the order of the kernel
// (proc_pid_mountinfo(5)).
func mountPoints(dir string) ([]string, error) {
	info, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	escapes := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	var points []string
	for line := range strings.Lines(string(info)) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			continue
		}
		if point := escapes.Replace(fields[4]); point == dir || strings.HasPrefix(point, dir+"/") {
			points = append(points, point)
		}
	}
	return points, nil
}
