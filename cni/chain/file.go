package chain

import "github.com/cnikit/cnikit/internal/disk"

// temporaryPattern matches the files that writeFile has not renamed yet. They are hidden, and no cache file name begins with a dot.
const temporaryPattern = ".*.tmp"

// writeFile replaces path atomically by a file of mode 0600 and returns when both file and name are on disk.
func writeFile(path string, data []byte) error {
	return disk.Replace(path, temporaryPattern, data, 0o600)
}
