package install

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/cnikit/cnikit/reconcile"
)

// patience is how long a test waits for what takes milliseconds.
const patience = time.Minute

// A host is a directory kept by a running engine that never looks without a cause.
type host struct {
	dir, path string
	rounds    chan reconcile.Round
}

func keep(t *testing.T, dir string) *host {
	t.Helper()
	h := &host{dir: dir, path: filepath.Join(dir, name), rounds: make(chan reconcile.Round, 1000)}
	f, err := NewFiles("files", dir, Options{Names: []string{name}, MakeDir: true})
	require.NoError(t, err)
	f.Replace(map[string]File{name: {Content: []byte("hello")}})
	e, err := reconcile.New(reconcile.Options{
		Targets: []reconcile.Target{f}, Resync: -1, OnRound: func(r reconcile.Round) { h.rounds <- r },
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- e.Run(ctx) }()
	go func() { ended <- f.Watch(ctx, e.Trigger) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, <-ended)
		require.NoError(t, <-ended)
	})
	return h
}

// requireRepair waits for a round that wrote the file, and checks it.
func (h *host) requireRepair(t *testing.T) {
	t.Helper()
	began := time.Now()
	deadline := time.After(patience)
	for {
		select {
		case r := <-h.rounds:
			content, err := os.ReadFile(h.path)
			info, statErr := os.Lstat(h.path)
			if r.Applied > 0 && err == nil && statErr == nil && string(content) == "hello" && info.Mode() == 0o644 {
				t.Logf("repaired after %v", time.Since(began).Round(time.Microsecond))
				return
			}
		case <-deadline:
			t.Fatalf("not repaired within %s", patience)
		}
	}
}

// quiet waits until the looks that our own writes cause are over, so that none of them repairs what an event should.
func (h *host) quiet() {
	for {
		select {
		case <-h.rounds:
		case <-time.After(50 * time.Millisecond):
			return
		}
	}
}

// removeDir removes the directory, again if the engine repairs a file between the removal of the last one and that of the
// directory.
func (h *host) removeDir() error {
	for {
		if err := os.RemoveAll(h.dir); !errors.Is(err, unix.ENOTEMPTY) {
			return err
		}
	}
}

func TestDriftIsRepairedByEvents(t *testing.T) {
	for _, tc := range []struct {
		rule  string
		drift func(h *host) error
	}{
		{"deleted", func(h *host) error { return os.Remove(h.path) }},
		{"truncated", func(h *host) error { return os.Truncate(h.path, 0) }},
		{"written to", func(h *host) error { return os.WriteFile(h.path, []byte("jello"), 0o644) }},
		{"mode changed", func(h *host) error { return os.Chmod(h.path, 0o600) }},
		{"renamed away", func(h *host) error { return os.Rename(h.path, h.path+".bak") }},
		{"renamed over", func(h *host) error {
			if err := os.WriteFile(h.path+".new", []byte("new"), 0o644); err != nil {
				return err
			}
			return os.Rename(h.path+".new", h.path)
		}},
		{"directory deleted", func(h *host) error { return h.removeDir() }},
		{"directory deleted and recreated", func(h *host) error {
			if err := h.removeDir(); err != nil {
				return err
			}
			if err := os.Mkdir(h.dir, 0o755); !errors.Is(err, fs.ErrExist) { // the engine may be faster
				return err
			}
			return nil
		}},
		{"directory renamed away", func(h *host) error { return os.Rename(h.dir, h.dir+".bak") }},
		{"directory above renamed away", func(h *host) error {
			return os.Rename(filepath.Dir(h.dir), filepath.Dir(h.dir)+".bak")
		}},
	} {
		t.Run(tc.rule, func(t *testing.T) {
			h := keep(t, filepath.Join(t.TempDir(), "cni", "net.d"))
			h.requireRepair(t)
			for range 3 { // each time again: the watch must have survived the drift
				h.quiet()
				require.NoError(t, tc.drift(h))
				h.requireRepair(t)
				require.NoError(t, os.RemoveAll(h.dir+".bak"))
				require.NoError(t, os.RemoveAll(filepath.Dir(h.dir)+".bak"))
			}
		})
	}
}

func TestWatchIgnoresOthers(t *testing.T) {
	dir := t.TempDir()
	s := &store{folder: folder{dir: dir, names: []string{name}}}
	changed := make(chan struct{}, 100)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.watch(ctx, func() { changed <- struct{}{} }) }()
	<-changed // the one at the start

	require.NoError(t, os.WriteFile(filepath.Join(dir, "other.conflist"), []byte("x"), 0o644))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "other"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(filepath.Dir(dir), "beside"), nil, 0o644))
	require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o755)) // ours, and the last event
	<-changed
	require.Empty(t, changed)

	cancel()
	require.NoError(t, <-ended)
}

func TestWatchLeavesNoDescriptor(t *testing.T) {
	count := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		require.NoError(t, err)
		return len(entries)
	}
	dir := filepath.Join(t.TempDir(), "net.d")
	s := &store{folder: folder{dir: dir, names: []string{name}}}
	watch := func() {
		ctx, cancel := context.WithCancel(t.Context())
		changed := make(chan struct{}, 100)
		ended := make(chan error)
		go func() { ended <- s.watch(ctx, func() { changed <- struct{}{} }) }()
		<-changed
		require.NoError(t, os.Mkdir(dir, 0o755)) // it arms again
		<-changed
		require.NoError(t, os.Remove(dir))
		<-changed
		cancel()
		require.NoError(t, <-ended)
	}
	watch() // the poller of the runtime opens its own ones at the first use
	before := count()
	for range 10 {
		watch()
	}
	require.Equal(t, before, count())
}

// containerd looks at its configuration again when a name moves away in the directory, not when one comes (see the package's
// documentation).
func TestWriteFileIsNoticedByContainerd(t *testing.T) {
	dir := t.TempDir()
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	require.NoError(t, err)
	defer func() { require.NoError(t, unix.Close(fd)) }()
	_, err = unix.InotifyAddWatch(fd, dir, unix.IN_MOVED_FROM)
	require.NoError(t, err)
	require.NoError(t, WriteFile(filepath.Join(dir, name), File{Content: []byte("x")}))
	buf := make([]byte, 4096)
	n, err := unix.Read(fd, buf)
	require.NoError(t, err, "no such event")
	final, ok := tempOf(parseEvent(buf[:n]).name())
	require.True(t, ok)
	require.Equal(t, name, final)
}
