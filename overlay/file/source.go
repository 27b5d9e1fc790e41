package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/cnikit/cnikit/overlay"
)

const (
	settle      = 5 * time.Millisecond   // to gather the events of one replacement
	pollArmed   = 10 * time.Second       // look anyway, for what the watch of a directory cannot tell
	pollUnarmed = 250 * time.Millisecond // while there is no directory to watch
)

// Options configure a [Source]. The zero value is usable.
type Options struct {
	Log *slog.Logger // nil discards
	// OnError is called from Run when the file, or something in it, cannot be used; once as long as the error stays the same,
	// and before the nodes that can be used are delivered. Each [EntryError] is about one node.
	OnError func(error)
	// OnGood is called from Run when nothing is wrong any more, after the nodes are delivered.
	OnGood func()
}

// A Source delivers the nodes of a file.
type Source struct {
	path  string
	opts  Options
	armed time.Duration // pollArmed, but for tests
}

var _ overlay.Source = (*Source)(nil)

// New returns a source for the file at path. It does no I/O.
func New(path string, o Options) *Source {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Source{path: path, opts: o, armed: pollArmed}
}

// Run implements [overlay.Source]. It delivers the whole file by Replace at the start and whenever its content changed.
//
// A file that is missing, truncated, invalid or of an unknown version changes nothing and is reported; with none at the
// start, nothing is delivered until there is one. An entry that is no node is reported by its name, and the node stays as it
// was last read; one with a key that is not known is reported as well, and used. It may start before the directory exists, and go on after it was removed, renamed or replaced.
//
// It watches the directory, not the file, and so sees a rename over the file, a removal followed by a creation, and a
// symbolic link in the directory that is switched, as in a mounted ConfigMap. Changes behind links that lead elsewhere are
// seen by a look every ten seconds.
//
// It returns nil when ctx ends, and an error only when the system grants no watch.
func (s *Source) Run(ctx context.Context, sink overlay.Sink) error {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch %s: %w", s.path, err)
	}
	defer watcher.Close() //nolint:errcheck // read only
	r := &run{Source: s, sink: sink, watcher: watcher}
	for {
		interval := s.armed
		if err := r.arm(); err != nil {
			interval = pollUnarmed
			r.report(err)
		} else {
			r.look()
		}
		if !r.wait(ctx, interval) {
			return nil
		}
	}
}

// run is the state of one Run.
type run struct {
	*Source
	sink     overlay.Sink
	watcher  *fsnotify.Watcher
	dir      os.FileInfo    // the directory that is watched
	content  []byte         // last delivered
	nodes    []overlay.Node // likewise
	bad      error          // what is wrong with entries of content
	reported string         // the last error
}

// arm sees to it that the directory that is at its path now is the one watched.
func (r *run) arm() error {
	path := filepath.Dir(r.path)
	dir, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("watch the directory of the topology: %w; create it", err)
	}
	if r.dir != nil && os.SameFile(dir, r.dir) && slices.Contains(r.watcher.WatchList(), path) {
		return nil
	}
	if slices.Contains(r.watcher.WatchList(), path) {
		_ = r.watcher.Remove(path) // of a directory that was moved away; it may be gone by now
	}
	if err := r.watcher.Add(path); err != nil {
		return fmt.Errorf("watch the directory of the topology: %w", err)
	}
	r.dir = dir
	return nil
}

// look reads the file, tells of what is wrong with it, and delivers it if it is new and good.
func (r *run) look() {
	fresh, err := r.read()
	if err != nil {
		r.report(err)
	}
	if fresh {
		r.sink.Replace(slices.Clone(r.nodes))
	}
	if err == nil {
		r.report(nil)
	}
}

// read reports whether the file is new and good. The error is what is wrong with it now, new or not.
func (r *run) read() (fresh bool, err error) {
	data, err := os.ReadFile(r.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, fmt.Errorf("read topology: %w; create it; %s", err, r.meanwhile())
	case err != nil:
		return false, fmt.Errorf("read topology: %w; %s", err, r.meanwhile())
	case r.content != nil && bytes.Equal(data, r.content):
		return false, r.bad
	}
	nodes, bad, err := parse(data)
	if err != nil {
		return false, fmt.Errorf("parse topology %s: %w; %s", r.path, err, r.meanwhile())
	}
	r.bad = nil
	for _, b := range bad {
		if last, ok := find(r.nodes, b.Node); ok && !b.Used {
			if _, twin := find(nodes, b.Node); !twin {
				nodes, b.kept = append(nodes, last), true
			}
		}
		r.bad = errors.Join(r.bad, b)
	}
	r.content, r.nodes = data, nodes
	return true, r.bad
}

// meanwhile says what holds while the file cannot be used.
func (r *run) meanwhile() string {
	if r.content == nil {
		return "nothing was read before, so no node is known"
	}
	return "what was read before stays"
}

// find returns the node of a name, of which "" is none.
func find(nodes []overlay.Node, name string) (overlay.Node, bool) {
	for _, n := range nodes {
		if n.Name == name && name != "" {
			return n, true
		}
	}
	return overlay.Node{}, false
}

// wait blocks until it is time to look again, and reports false when ctx has ended.
func (r *run) wait(ctx context.Context, interval time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(interval):
		return true
	case <-r.watcher.Events:
	case err := <-r.watcher.Errors:
		r.opts.Log.Debug("events were lost", "path", r.path, "error", err)
	}
	for gathered := time.After(settle); ; {
		select {
		case <-ctx.Done():
			return false
		case <-r.watcher.Events:
		case err := <-r.watcher.Errors:
			r.opts.Log.Debug("events were lost", "path", r.path, "error", err)
		case <-gathered:
			return true
		}
	}
}

// report tells of an error once, and of its end.
func (r *run) report(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text == r.reported {
		return
	}
	r.reported = text
	if err == nil {
		r.opts.Log.Info("topology is good again", "path", r.path)
		if r.opts.OnGood != nil {
			r.opts.OnGood()
		}
		return
	}
	r.opts.Log.Warn("topology cannot be used as it is", "path", r.path, "error", err)
	if r.opts.OnError != nil {
		r.opts.OnError(err)
	}
}
