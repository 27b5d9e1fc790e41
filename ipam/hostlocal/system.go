package hostlocal

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/cnikit/cnikit/internal/disk"
)

// system is what the package asks of the operating system, apart from the lock. Tests
// count its calls, and end it at each of them as a crash would.
type system interface {
	// Stat follows links; Lstat does not.
	Stat(path string) (fs.FileInfo, error)
	Lstat(path string) (fs.FileInfo, error)
	ReadFile(path string) ([]byte, error)
	// Names returns the names in a directory in no order.
	Names(dir string) ([]string, error)
	// Open does not wait for the other end of a pipe, see fifo(7).
	Open(path string, flag int, mode fs.FileMode) (handle, error)
	// MakeDir makes a directory and what is missing above it, durably.
	MakeDir(dir string, mode fs.FileMode) error
	Link(from, to string) error
	Rename(from, to string) error
	Remove(path string) error
	// Touch sets the time of a directory's last change (utimensat(2)).
	Touch(dir string, at time.Time) error
	SyncDir(dir string) error
}

// handle is an open file.
type handle interface {
	io.ReaderAt
	io.WriterAt
	Sync() error
	Close() error
}

// host is the system that there is.
type host struct{}

var _ system = host{}

func (host) Stat(path string) (fs.FileInfo, error)      { return os.Stat(path) }
func (host) Lstat(path string) (fs.FileInfo, error)     { return os.Lstat(path) }
func (host) ReadFile(path string) ([]byte, error)       { return os.ReadFile(path) }
func (host) MakeDir(dir string, mode fs.FileMode) error { return disk.MakeDir(dir, mode) }
func (host) Link(from, to string) error                 { return os.Link(from, to) }
func (host) Rename(from, to string) error               { return os.Rename(from, to) }
func (host) Remove(path string) error                   { return os.Remove(path) }
func (host) SyncDir(dir string) error                   { return disk.SyncDir(dir) }

func (host) Touch(dir string, at time.Time) error { return os.Chtimes(dir, time.Time{}, at) }

func (host) Open(path string, flag int, mode fs.FileMode) (handle, error) {
	f, err := os.OpenFile(path, flag|syscall.O_NONBLOCK, mode)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (host) Names(dir string) ([]string, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	names, err := d.Readdirnames(-1)
	return names, errors.Join(err, d.Close())
}
