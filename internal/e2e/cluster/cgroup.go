package cluster

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const cgroupRoot = "/sys/fs/cgroup"

// hierarchies are the mount points of the machine's cgroup hierarchies. Each node has a
// cgroup of one name in all of them, because runc refuses a parent that is missing in one.
type hierarchies struct {
	v2  string
	all []string // v2 too
}

// findHierarchies looks at the mounts of systemd's layouts: one cgroup2, or a tmpfs with
// the controllers of version 1 and a cgroup2 called unified.
func findHierarchies() (hierarchies, error) {
	var h hierarchies
	dirs, err := filepath.Glob(cgroupRoot + "/*") // of a pure cgroup2: cgroups and files, skipped below
	if err != nil {
		return h, err
	}
	for _, dir := range append([]string{cgroupRoot}, dirs...) {
		root, err := filepath.EvalSymlinks(dir) // cpu,cpuacct and the like
		if err != nil {
			return h, fmt.Errorf("find cgroups: %w", err)
		}
		var st unix.Statfs_t
		if err := unix.Statfs(root, &st); err != nil {
			return h, fmt.Errorf("find cgroups: %s: %w", root, err)
		}
		switch {
		case slices.Contains(h.all, root) || h.v2 == cgroupRoot:
		case st.Type == unix.CGROUP2_SUPER_MAGIC:
			h.v2, h.all = root, append(h.all, root)
		case st.Type == unix.CGROUP_SUPER_MAGIC:
			h.all = append(h.all, root)
		}
	}
	if h.v2 == "" {
		return h, fmt.Errorf("find cgroups: no cgroup2 at %s or %s/unified; mount one", cgroupRoot, cgroupRoot)
	}
	return h, nil
}

// create makes the cgroup name in each hierarchy, and in cgroup2 one below it for the
// machine's own processes, which it opens: a cgroup with children must have no processes
// (cgroups(7), "no internal processes").
func (h hierarchies) create(name string) (*os.File, error) {
	for _, root := range h.all {
		dir := filepath.Join(root, name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, fmt.Errorf("make cgroup: %w", err)
		}
		if err := inheritCPUs(root, dir); err != nil {
			return nil, fmt.Errorf("make cgroup: %w", err)
		}
	}
	system := filepath.Join(h.v2, name, "system")
	if err := os.MkdirAll(system, 0o755); err != nil {
		return nil, fmt.Errorf("make cgroup: %w", err)
	}
	return os.Open(system)
}

// inheritCPUs gives a cpuset of version 1 what its parent has; a new one has nothing and
// no process can be put into it (cpuset(7)).
func inheritCPUs(parent, dir string) error {
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		value, err := os.ReadFile(filepath.Join(parent, file))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, file), value, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// find returns the cgroups whose name matches the pattern of [filepath.Match], in each
// hierarchy.
func (h hierarchies) find(pattern string) ([]string, error) {
	var found []string
	for _, root := range h.all {
		dirs, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return nil, err
		}
		found = append(found, dirs...)
	}
	return found, nil
}

// remove kills what is in the cgroups whose name matches the pattern and removes them.
// No such cgroup is no error.
func (h hierarchies) remove(ctx context.Context, pattern string) error {
	dirs, err := h.find(pattern)
	if err != nil {
		return err
	}
	var errs []error
	for _, dir := range dirs {
		errs = append(errs, await(ctx, dir+" is gone", func(context.Context) error { return emptyAndRemove(dir) }))
	}
	return errors.Join(errs...)
}

// emptyAndRemove sends SIGKILL to the processes of a cgroup and those below it, and
// removes them all. It fails as long as a process is there.
func emptyAndRemove(dir string) error {
	var children []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			children = append(children, path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	for _, child := range slices.Backward(children) { // a parent is found before its children
		pids, err := processes(child)
		if err != nil {
			return err
		}
		for _, pid := range pids {
			_ = unix.Kill(pid, unix.SIGKILL) // fails only when it is gone
		}
		if err := unix.Rmdir(child); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove cgroup %s: %w", child, err)
		}
	}
	return nil
}

// processes lists the processes of one cgroup. A cgroup that is gone has none.
func processes(dir string) ([]int, error) {
	data, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENODEV) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var pids []int
	for field := range strings.FieldsSeq(string(data)) {
		pid, err := strconv.Atoi(field)
		if err != nil {
			return nil, err
		}
		if pid > 0 { // 0 is a process that this PID namespace cannot see
			pids = append(pids, pid)
		}
	}
	return pids, nil
}
