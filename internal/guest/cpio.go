package guest

import (
	"bufio"
	"fmt"
	"io"
	"path"
	"strings"
)

// cpioWriter writes an archive that the kernel takes as its initial file system: the
// format "newc" of Documentation/driver-api/early-userspace/buffer-format.rst. Fields are
// eight hexadecimal digits; names and contents are padded to four bytes. Errors stick
// until close.
type cpioWriter struct {
	to   *bufio.Writer
	size int // bytes written so far
	made map[string]bool
	err  error
}

func newCPIO(to io.Writer) *cpioWriter {
	return &cpioWriter{to: bufio.NewWriterSize(to, 1<<20), made: map[string]bool{"/": true, ".": true}}
}

const (
	directoryMode  = 0o040755
	executableMode = 0o100755
)

// file adds an executable file, and the directories above it.
func (w *cpioWriter) file(name string, content []byte) {
	w.directory(path.Dir(name))
	w.entry(name, executableMode, content)
}

func (w *cpioWriter) directory(name string) {
	if w.made[name] {
		return
	}
	w.made[name] = true
	w.directory(path.Dir(name))
	w.entry(name, directoryMode, nil)
}

// close ends the archive and returns the first error.
func (w *cpioWriter) close() error {
	w.entry("TRAILER!!!", 0, nil)
	if w.err != nil {
		return w.err
	}
	return w.to.Flush()
}

func (w *cpioWriter) entry(name string, mode uint32, content []byte) {
	name = strings.TrimPrefix(name, "/")
	const links, noDevice, noChecksum = 1, 0, 0
	w.write([]byte("070701"))
	for _, field := range []int{
		0, int(mode), 0, 0, links, 0, len(content), // inode, mode, owner, group, links, time, size
		noDevice, noDevice, noDevice, noDevice, len(name) + 1, noChecksum,
	} {
		w.write(fmt.Appendf(nil, "%08X", field))
	}
	w.write([]byte(name + "\x00"))
	w.pad()
	w.write(content)
	w.pad()
}

func (w *cpioWriter) pad() { w.write(make([]byte, -w.size&3)) }

func (w *cpioWriter) write(content []byte) {
	if w.err != nil {
		return
	}
	_, w.err = w.to.Write(content)
	w.size += len(content)
}
