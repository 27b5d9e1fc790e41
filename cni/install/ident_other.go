//go:build !linux

package install

import (
	"io/fs"
	"time"
)

// An ident would tell whether a file is the same as before; here none does, so files are read at every look.
type ident struct{}

func identOf(fs.FileInfo) (ident, bool) { return ident{}, false }

func (ident) changed() time.Time { return time.Time{} }
