package cluster

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// home is the directory of a cluster that runs, DIR/ID, and the lock on it.
type home struct {
	id   string
	name string // prefix of namespaces and cgroups
	dir  string
	lock *os.File
}

const lockName = "lock"

// openHome removes what killed clusters left and makes a directory.
func openHome(ctx context.Context, dir string, groups hierarchies) (*home, error) {
	all, err := lockAll(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = all.Close() }()
	if err := sweep(ctx, dir, groups); err != nil {
		return nil, err
	}
	id := strings.ToLower(rand.Text()[:8])
	h := &home{id: id, name: prefix + id, dir: filepath.Join(dir, id)}
	if err := os.Mkdir(h.dir, 0o700); err != nil {
		return nil, fmt.Errorf("make directory of cluster: %w", err)
	}
	if h.lock, err = lock(filepath.Join(h.dir, lockName), 0); err != nil {
		return nil, errors.Join(err, os.RemoveAll(h.dir))
	}
	return h, nil
}

// remove removes the cgroups, with what is left in them, and then the directory: as long
// as that is there, the next sweep tries again.
func (h *home) remove(ctx context.Context, groups hierarchies) error {
	defer func() { _ = h.lock.Close() }()
	if err := groups.remove(ctx, h.name+"-*"); err != nil {
		return err
	}
	return os.RemoveAll(h.dir)
}

// Sweep removes what clusters with this [Options.Dir] left whose process was killed:
// processes, cgroups, directories. Namespaces and mounts end with the last process.
// Clusters that run are left alone. An empty dir is the default one.
func Sweep(ctx context.Context, dir string) error {
	if dir == "" {
		dir = defaultDir
	}
	groups, err := findHierarchies()
	if err != nil {
		return err
	}
	all, err := lockAll(dir)
	if err != nil {
		return err
	}
	defer func() { _ = all.Close() }()
	return sweep(ctx, dir, groups)
}

// sweep is called with the lock on all clusters: no directory without a lock can then
// be one that is about to get it.
func sweep(ctx context.Context, dir string, groups hierarchies) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("sweep %s: %w", dir, err)
	}
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		left := &home{id: entry.Name(), name: prefix + entry.Name(), dir: filepath.Join(dir, entry.Name())}
		left.lock, err = lock(filepath.Join(left.dir, lockName), unix.LOCK_NB)
		if errors.Is(err, unix.EWOULDBLOCK) {
			continue
		}
		if err == nil {
			err = left.remove(ctx, groups)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("sweep %s: %w", left.dir, err)
		}
	}
	return nil
}

// lockAll is held while clusters come and go.
func lockAll(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make directory of clusters: %w", err)
	}
	return lock(filepath.Join(dir, lockName), 0)
}

// lock takes a lock that ends with the file or the process. how is LOCK_NB or 0.
func lock(file string, how int) (*os.File, error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|how); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", file, err), f.Close())
	}
	return f, nil
}
