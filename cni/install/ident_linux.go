package install

import (
	"io/fs"
	"syscall"
	"time"
)

// An ident changes whenever the content of a file does: the kernel sets ctime on every write, and nobody can set it back.
type ident struct {
	dev, ino     uint64
	size         int64
	mtime, ctime time.Duration // since 1970
}

func identOf(info fs.FileInfo) (ident, bool) {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ident{}, false
	}
	return ident{
		dev: uint64(s.Dev), ino: s.Ino, size: s.Size, //nolint:unconvert // of 32 bits on some architectures
		mtime: time.Duration(s.Mtim.Nano()), ctime: time.Duration(s.Ctim.Nano()),
	}, true
}

// changed returns when the file was changed for the last time.
func (i ident) changed() time.Time { return time.Unix(0, int64(i.ctime)) }
