package install

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/cnikit/cnikit/internal/disk"
	"github.com/cnikit/cnikit/reconcile"
)

// store is the managed part of a directory. Left-over temporary files are observed under their own names, so that they are
// deleted like any file that nobody wants.
type store struct {
	folder
	makeDir bool
}

var _ reconcile.Store[string, File] = (*store)(nil)

// Observe implements [reconcile.Store]. Without a directory there is nothing.
func (s *store) Observe(context.Context) (map[string]File, error) {
	names, err := s.list()
	if err != nil {
		return nil, err
	}
	seen := map[string]File{}
	for _, name := range names {
		f, err := read(s.path(name))
		switch {
		case errors.Is(err, fs.ErrNotExist): // gone since the listing
		case err != nil:
			return nil, fmt.Errorf("read file: %w", err)
		default:
			seen[name] = f
		}
	}
	return seen, nil
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
	return WriteFile(s.path(name), f)
}

// Delete implements [reconcile.Store].
func (s *store) Delete(_ context.Context, name string, _ File) error { return s.remove(name) }
