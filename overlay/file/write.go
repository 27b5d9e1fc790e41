package file

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/cnikit/cnikit/overlay"
)

// Write replaces the file at path by one with these nodes. Readers see the old or the new file, never a part, and so they do
// after a power loss: it writes a temporary file beside it, syncs it, renames it and syncs the directory, which must exist.
// The file can be read by everybody. After an error the old file is still there.
func Write(path string, nodes []overlay.Node) error {
	data, err := encode(nodes)
	if err != nil {
		return fmt.Errorf("encode nodes: %w", err)
	}
	if err := replace(path, data); err != nil {
		return fmt.Errorf("write topology: %w", err)
	}
	return nil
}

// replace does the work of Write.
func replace(path string, data []byte) error {
	dir, base := filepath.Split(path)
	tmp, err := os.CreateTemp(filepath.Clean(dir+"."), "."+base+".tmp-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) //nolint:errcheck // gone after the rename
	if err := fill(tmp, data); err != nil {
		return err
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// fill writes data to f and closes it.
func fill(f *os.File, data []byte) error {
	_, err := f.Write(data)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}

// syncDir makes a rename in dir durable. Windows cannot sync a directory.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close() //nolint:errcheck // nothing was written through it
	return d.Sync()
}
