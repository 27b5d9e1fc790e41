package netns

import (
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// threadPath is the network namespace of the calling thread. /proc/self would be
// that of the main thread.
const threadPath = "/proc/thread-self/ns/net"

// NS is a handle on one network namespace. It holds an open nsfs descriptor, which
// keeps the namespace alive until [NS.Close]. It is safe for concurrent use.
type NS struct {
	file       *os.File
	path       string
	dev, inode uint64
}

// Open returns a handle on the network namespace at path: a bind mount such as
// /run/netns/blue, or /proc/PID/ns/net. The error matches [fs.ErrNotExist] when
// nothing is there and [ErrNotNetNS] when something else is; both name the path.
func Open(path string) (*NS, error) {
	n, err := open(path)
	if err != nil {
		return nil, &fs.PathError{Op: "open network namespace", Path: path, Err: err}
	}
	n.path = path
	return n, nil
}

// Current returns a handle on the network namespace of the calling thread. A
// goroutine that is not locked to its thread sees the namespace of the process.
func Current() (*NS, error) {
	n, err := open(threadPath)
	if err != nil {
		return nil, &fs.PathError{Op: "open network namespace", Path: threadPath, Err: err}
	}
	return n, nil
}

// open verifies what it opened, not what the path named a moment before.
// O_NONBLOCK: a FIFO somebody put there must not hang the caller.
func open(path string) (*NS, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	n := &NS{}
	if err := n.identify(fd); err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	n.file = os.NewFile(uintptr(fd), path)
	n.path = fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), fd)
	return n, nil
}

func (n *NS) identify(fd int) error {
	var fsys unix.Statfs_t
	if err := unix.Fstatfs(fd, &fsys); err != nil {
		return err
	}
	if fsys.Type != unix.NSFS_MAGIC {
		return ErrNotNetNS
	}
	if kind, err := unix.IoctlRetInt(fd, unix.NS_GET_NSTYPE); err != nil || kind != unix.CLONE_NEWNET {
		return ErrNotNetNS
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	n.dev, n.inode = uint64(st.Dev), st.Ino //nolint:unconvert // 32 bits on some architectures
	return nil
}

// Path is a path at which the namespace can be opened, also by other processes:
// the one given to [Open] or [Create], or else /proc/PID/fd/N, which is good until
// [NS.Close].
func (n *NS) Path() string { return n.path }

// Fd is the open descriptor, or -1 after [NS.Close]. It belongs to n and must not
// be closed or used after n is closed.
func (n *NS) Fd() int { return int(n.file.Fd()) }

// Inode is the number that identifies the namespace, as in "net:[4026531840]".
func (n *NS) Inode() uint64 { return n.inode }

// Equal reports whether both handles are on the same namespace. It also works on
// closed handles.
func (n *NS) Equal(o *NS) bool {
	return o != nil && n.dev == o.dev && n.inode == o.inode
}

// Close releases the descriptor. A namespace that nothing else holds (no process,
// mount or descriptor) is destroyed with everything in it, soon after. Closing
// twice returns an error that matches [fs.ErrClosed].
func (n *NS) Close() error { return n.file.Close() }
