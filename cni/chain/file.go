package chain

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cnikit/cnikit/internal/disk"
)

// temporaryPattern matches the files that writeFile has not renamed yet. They are hidden, and no cache file name begins with a dot.
const temporaryPattern = ".*.tmp"

// writeFile replaces path atomically by a file of mode 0600 and returns when both file and name are on disk.
func writeFile(path string, data []byte) error {
	return disk.Replace(path, temporaryPattern, data, 0o600)
}

// makeDir makes dir and what is missing above it, with mode 0700, and returns when their names are on disk.
func makeDir(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	parent := filepath.Dir(dir)
	if parent == dir {
		return nil
	}
	if err := makeDir(parent); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return disk.SyncDir(parent)
}
