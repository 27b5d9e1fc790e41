package install

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/cnikit/cnikit/internal/disk"
	"github.com/cnikit/cnikit/reconcile"
)

// store is the managed part of a directory. Left-over temporary files are observed under their own names, so that they are
// deleted like any file that nobody wants.
type store struct {
	dir     string
	names   []string
	makeDir bool
}

var _ reconcile.Store[string, File] = (*store)(nil)

// Observe implements [reconcile.Store]. Without a directory there is nothing.
func (s *store) Observe(context.Context) (map[string]File, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list files: %w", err)
	}
	seen := map[string]File{}
	for _, e := range entries {
		if !s.manages(e.Name()) {
			continue
		}
		f, err := read(filepath.Join(s.dir, e.Name()))
		switch {
		case errors.Is(err, fs.ErrNotExist): // gone since the listing
		case err != nil:
			return nil, fmt.Errorf("read file: %w", err)
		default:
			seen[e.Name()] = f
		}
	}
	return seen, nil
}

// manages reports whether a name is one of ours, or that of one of our temporary files.
func (s *store) manages(name string) bool {
	if final, ok := tempOf(name); ok {
		name = final
	}
	return slices.Contains(s.names, name)
}

// read returns a file as it is. What is no regular file has no content and a mode that is never wanted.
func read(path string) (File, error) {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() {
		return File{Mode: modeOf(info)}, err
	}
	content, err := os.ReadFile(path)
	return File{Content: content, Mode: modeOf(info)}, err
}

// modeOf returns type and permission bits; no permission at all must not look like the default.
func modeOf(info fs.FileInfo) fs.FileMode {
	if info == nil {
		return 0
	}
	if m := info.Mode() & (fs.ModeType | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky | fs.ModePerm); m != 0 {
		return m
	}
	return fs.ModeIrregular
}

// Apply implements [reconcile.Store].
func (s *store) Apply(_ context.Context, name string, f File, _ *File) error {
	if !slices.Contains(s.names, name) {
		return fmt.Errorf("write %s: not among the managed names %v; add it to Options.Names", name, s.names)
	}
	if s.makeDir {
		if err := disk.MakeDir(s.dir, 0o755); err != nil {
			return fmt.Errorf("make directory: %w", err)
		}
	}
	return WriteFile(filepath.Join(s.dir, name), f)
}

// Delete implements [reconcile.Store]. A directory of the name is refused: it is none of ours.
func (s *store) Delete(_ context.Context, name string, _ File) error {
	path := filepath.Join(s.dir, name)
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil && info.IsDir():
		return fmt.Errorf("delete %s: is a directory; remove it by hand", path)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("delete file: %w", err)
	}
	if err := disk.SyncDir(s.dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("sync directory: %w", err)
	}
	return nil
}
