package disk

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// Replace puts a file with this content and mode, whatever the umask, at path, and
// returns when both the file and its name are on disk. A symbolic link at path is
// replaced, not followed. After an error the old file is still there.
//
// Until it is complete the file has another name in the same directory: see [Stage].
func Replace(path, temporary string, content []byte, mode fs.FileMode) error {
	staged, err := Stage(filepath.Dir(path), temporary, bytes.NewReader(content), mode)
	if err != nil {
		return err
	}
	return Commit(staged, path)
}

// Stage writes a file with this content and mode, whatever the umask, into a directory,
// which must exist, and returns its path when the content is on disk. After an error it
// is gone.
//
// The name is temporary, with a random text for its asterisk (see [os.CreateTemp]). A
// crash may leave it behind, so choose a name that readers of the directory ignore and
// that can be told from others.
func Stage(dir, temporary string, content io.Reader, mode fs.FileMode) (string, error) {
	f, err := os.CreateTemp(dir, temporary)
	if err != nil {
		return "", err
	}
	if err := fill(f, content, mode); err != nil {
		_ = os.Remove(f.Name()) // the first error is the one to tell
		return "", err
	}
	return f.Name(), nil
}

// Commit gives a staged file its final path, in the same directory, and returns when the
// name is on disk. What was at path is replaced, also while it is being executed: a
// process keeps the file it runs. If that fails, the staged file is gone and the old one
// is still there.
func Commit(staged, path string) error {
	if err := os.Rename(staged, path); err != nil {
		_ = os.Remove(staged) // the first error is the one to tell
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// fill gives f its content and mode, syncs and closes it.
func fill(f *os.File, content io.Reader, mode fs.FileMode) error {
	_, err := io.Copy(f, content)
	if err == nil {
		err = f.Chmod(mode)
	}
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return err
}

// MakeDir makes a directory and what is missing above it, with this mode less the umask,
// and returns when their names are on disk. One that exists is left as it is.
func MakeDir(dir string, mode fs.FileMode) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	parent := filepath.Dir(dir)
	if parent != dir {
		if err := MakeDir(parent, mode); err != nil {
			return err
		}
	}
	err := os.Mkdir(dir, mode)
	if errors.Is(err, fs.ErrExist) {
		if info, statErr := os.Stat(dir); statErr == nil && info.IsDir() {
			return nil // somebody else was faster
		}
	}
	if err != nil {
		return err
	}
	return SyncDir(parent)
}

// SyncDir puts the names in a directory on disk: what was created, renamed or removed
// there before survives a power loss (fsync(2)). Windows cannot sync a directory.
func SyncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = d.Close() }() // nothing was written through it
	return d.Sync()
}
