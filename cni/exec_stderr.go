package cni

import (
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

// stderr is the standard error of a process and its children: a pipe, what is
// written to it passed on, and the end of that kept. Package os/exec would do that
// too, but waits for a writer that blocks.
type stderr struct {
	tail
	read, write *os.File
	copied      chan struct{} // closed when nothing is copied any more
}

func openStderr(w io.Writer) (*stderr, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	return &stderr{tail: tail{w: w}, read: read, write: write, copied: make(chan struct{})}, nil
}

// begin goes with the start of the process: from then on only the process holds
// the end of the pipe that is written to. A process that did not start needs none.
func (s *stderr) begin(started bool) {
	_ = s.write.Close()
	if !started {
		_ = s.read.Close()
		return
	}
	go func() {
		defer close(s.copied)
		_, _ = io.Copy(&s.tail, s.read)
	}()
}

// end waits for the last of the copying, but not longer than the limit and a
// margin. Only what a writer blocks on goes on after that.
func (s *stderr) end(limit time.Duration) {
	select {
	case <-s.copied:
	case <-time.After(limit):
	}
	_ = s.read.Close() // ends a read at once
	select {
	case <-s.copied:
	case <-time.After(margin):
	}
}

// tail passes on what is written and keeps the end of it for an error message.
type tail struct {
	w io.Writer // used by the one that writes

	mu   sync.Mutex
	kept []byte
}

const tailSize = 2048

// Write never fails: a plugin must not die of a log that cannot be written.
func (t *tail) Write(p []byte) (int, error) {
	t.keep(p)
	_, err := t.w.Write(p)
	if err != nil && !errors.Is(err, io.ErrShortWrite) {
		t.w = io.Discard
	}
	return len(p), nil
}

func (t *tail) keep(p []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p...)
	if drop := len(t.kept) - tailSize; drop > 0 {
		t.kept = append(t.kept[:0], t.kept[drop:]...)
	}
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(strings.ToValidUTF8(string(t.kept), ""))
}
