package file

import (
	"fmt"
	"path/filepath"

	"github.com/cnikit/cnikit/internal/disk"
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
	return disk.Replace(path, "."+filepath.Base(path)+".tmp-*", data, 0o644)
}
