package install

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/internal/disk"
	"github.com/cnikit/cnikit/reconcile"
)

// A folder is a directory with the names in it that are managed.
type folder struct {
	dir   string
	names []string
}

func newFolder(dir string, names []string) (folder, error) {
	if !filepath.IsAbs(dir) {
		return folder{}, &cni.FieldError{Key: "dir", Value: dir, Reason: "is not an absolute path", Fix: "start it with a slash"}
	}
	if len(names) == 0 {
		return folder{}, &cni.FieldError{Key: "names", Value: names, Reason: "is empty", Fix: "name every file to manage"}
	}
	for _, n := range names {
		if !isPlain(n) {
			return folder{}, &cni.FieldError{Key: "names", Value: n, Reason: "is no plain file name",
				Fix: "use a name without slashes that does not begin with a dot"}
		}
	}
	return folder{dir: filepath.Clean(dir), names: slices.Clone(names)}, nil
}

// isPlain reports whether n is the name of a file that is in the directory itself and not hidden.
func isPlain(n string) bool {
	return n != "" && !strings.HasPrefix(n, ".") && n == filepath.Base(n)
}

func (f folder) path(name string) string { return filepath.Join(f.dir, name) }

// list returns the names in the directory that are managed, or those of temporary files for them. Without a directory there
// are none.
func (f folder) list() ([]string, error) {
	entries, err := os.ReadDir(f.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list files: %w", err)
	}
	var names []string
	for _, e := range entries {
		if f.manages(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// manages reports whether a name is one of ours, or that of one of our temporary files.
func (f folder) manages(name string) bool {
	if final, ok := tempOf(name); ok {
		name = final
	}
	return slices.Contains(f.names, name)
}

// remove deletes a file, durably. A directory of the name is refused: it is none of ours.
func (f folder) remove(name string) error {
	info, err := os.Lstat(f.path(name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil && info.IsDir():
		return fmt.Errorf("delete %s: is a directory; remove it by hand", f.path(name))
	}
	if err := os.Remove(f.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("delete file: %w", err)
	}
	if err := disk.SyncDir(f.dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("sync directory: %w", err)
	}
	return nil
}

// watchFor calls trigger with the target whenever something happened to one of the files or to the directory, until ctx ends.
func (f folder) watchFor(ctx context.Context, t reconcile.Target, trigger func(...reconcile.Target)) error {
	if err := f.watch(ctx, func() { trigger(t) }); err != nil {
		return fmt.Errorf("watch %s: %w", f.dir, err)
	}
	return nil
}
