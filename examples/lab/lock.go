package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// lockDir makes the directory of a lab and locks it, so that a second lab of the same
// name refuses to run. unlock removes the directory when it is empty.
func lockDir(dir string) (unlock func(), err error) {
	for {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, fmt.Errorf("make the directory of the lab: %w", err)
		}
		f, err := os.Open(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue // another lab just ended
		}
		if err != nil {
			return nil, fmt.Errorf("open the directory of the lab: %w", err)
		}
		if err := flock(f); err != nil {
			return nil, errors.Join(fmt.Errorf("lab %q is running (lock %s: %w); use another -name", filepath.Base(dir), dir, err), f.Close())
		}
		if same(f, dir) {
			return func() {
				_ = os.Remove(dir)
				_ = os.Remove(filepath.Dir(dir))
				_ = f.Close()
			}, nil
		}
		_ = f.Close()
	}
}

// same reports whether the open file is still the one at path.
func same(f *os.File, path string) bool {
	one, err := f.Stat()
	if err != nil {
		return false
	}
	other, err := os.Stat(path)
	return err == nil && os.SameFile(one, other)
}
