package install

import (
	"bytes"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/cnikit/cnikit/internal/disk"
)

// File is the wanted or observed state of a file.
type File struct {
	Content []byte
	Mode    fs.FileMode // permission bits; 0 means 0644. An observed file that is no regular one has type bits.
}

// Equal reports whether f and o have the same content and mode.
func (f File) Equal(o File) bool {
	return f.mode() == o.mode() && bytes.Equal(f.Content, o.Content)
}

// String describes the file by mode and size, for plans.
func (f File) String() string { return fmt.Sprintf("%v, %d bytes", f.mode(), len(f.Content)) }

func (f File) mode() fs.FileMode {
	if f.Mode == 0 {
		return 0o644
	}
	return f.Mode
}

// tempMark is in the name of every temporary file, behind a dot and the name of the file that it is to become. Runtimes look
// for names that end in .conf, .conflist or .json; a temporary one ends in digits.
const tempMark = ".cnikit-tmp-"

// tempOf returns the name of the file that a temporary file was to become, and false for any other name.
func tempOf(name string) (string, bool) {
	before, _, found := strings.Cut(strings.TrimPrefix(name, "."), tempMark)
	return before, found && strings.HasPrefix(name, ".")
}

// WriteFile replaces the file at path atomically: a temporary file in the same directory, which must exist, is written and
// synced, gets the mode whatever the umask, and is renamed; then the directory is synced. Readers see the old file or the new
// one. A symbolic link at path is replaced, not followed. After an error the old file is still there.
func WriteFile(path string, f File) error {
	if err := disk.Replace(path, "."+filepath.Base(path)+tempMark+"*", f.Content, f.mode()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
