package netns

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// shareDir makes dir and sees to it that dir is on a shared mount: when the mount
// that holds it is private, dir is bind-mounted on itself and shared.
func shareDir(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return withLock(dir, func(dir string) error {
		m, err := mountOf(dir)
		if err != nil || m.shared {
			return err
		}
		if m.point != dir {
			if err := unix.Mount(dir, dir, "none", unix.MS_BIND|unix.MS_REC, ""); err != nil {
				return fmt.Errorf("bind mount %s on itself: %w", dir, err)
			}
		}
		if err := unix.Mount("", dir, "none", unix.MS_SHARED|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("share mount %s: %w", dir, err)
		}
		return nil
	})
}

// unshareDir undoes shareDir when dir is empty. Busy or gone is fine: somebody else
// uses it, or cleaned up.
func unshareDir(dir string) error {
	err := withLock(dir, func(dir string) error {
		if dir == "/run/netns" || dir == "/var/run/netns" {
			return nil
		}
		for {
			entries, err := os.ReadDir(dir)
			if err != nil || len(entries) > 0 {
				return err
			}
			if self, err := onItself(dir); err != nil || !self {
				return err
			}
			if err := unix.Unmount(dir, unix.UMOUNT_NOFOLLOW); err != nil {
				return err
			}
		}
	})
	if errors.Is(err, unix.EBUSY) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// withLock serialises users of dir, across processes. fn gets dir without symbolic
// links. The lock is on the parent directory: a descriptor on dir itself would keep
// its mount busy.
func withLock(dir string, fn func(dir string) error) error {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	lock, err := os.Open(filepath.Dir(dir))
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	return fn(dir)
}

// mount is what /proc/self/mountinfo says of one mount (proc_pid_mountinfo(5)).
type mount struct {
	device string // major:minor
	root   string // the directory of the file system that is mounted
	point  string
	shared bool
}

// mountOf returns the topmost mount that holds path.
func mountOf(path string) (mount, error) {
	above, err := mountsAbove(path)
	if err != nil || len(above) == 0 {
		return mount{}, err
	}
	return above[len(above)-1], nil
}

// onItself reports whether the topmost mount on dir shows the directory that dir
// would be without it.
func onItself(dir string) (bool, error) {
	above, err := mountsAbove(dir)
	if err != nil || len(above) < 2 {
		return false, err
	}
	top, below := above[len(above)-1], above[len(above)-2]
	rel, err := filepath.Rel(below.point, dir)
	if err != nil {
		return false, nil
	}
	return top.point == dir && top.device == below.device && top.root == filepath.Join(below.root, rel), nil
}

// mountsAbove lists the mounts on path and its parents, outermost first and, on the
// same mount point, the covering one last.
func mountsAbove(path string) ([]mount, error) {
	file, err := os.Open("/proc/thread-self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	var above []mount
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		m, ok := parseMount(lines.Text())
		if !ok || !holds(m.point, path) {
			continue
		}
		at := len(above)
		for at > 0 && len(above[at-1].point) > len(m.point) {
			at--
		}
		above = append(above[:at], append([]mount{m}, above[at:]...)...)
	}
	return above, lines.Err()
}

func holds(point, path string) bool {
	return point == "/" || path == point || strings.HasPrefix(path, point+"/")
}

func parseMount(line string) (mount, bool) {
	before, _, ok := strings.Cut(line, " - ")
	fields := strings.Fields(before)
	if !ok || len(fields) < 6 {
		return mount{}, false
	}
	m := mount{device: fields[2], root: unescape(fields[3]), point: unescape(fields[4])}
	for _, optional := range fields[6:] {
		m.shared = m.shared || strings.HasPrefix(optional, "shared:")
	}
	return m, true
}

// unescape undoes the octal escapes of mountinfo.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}
