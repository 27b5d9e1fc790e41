package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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
	Log     *slog.Logger // nil discards
	OnError func(error)  // called from Run when the file, or a node in it, cannot be used; once as long as the error stays the same
}

// A Source delivers the nodes of a file.
type Source struct {
	path string
	opts Options
}

var _ overlay.Source = (*Source)(nil)

// New returns a source for the file at path. It does no I/O.
func New(path string, o Options) *Source {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Source{path: path, opts: o}
}

// Run implements [overlay.Source]. It delivers the whole file by Replace at the start and whenever its content changed.
//
// A file that is missing, truncated, invalid or of an unknown version changes nothing and is reported; with none at the
// start, nothing is delivered until there is one. An entry that is no node is reported by its name, and the node stays as it
// was last read. It may start before the directory exists, and go on after it was removed, renamed or replaced.
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
		interval := pollArmed
		if err := r.arm(); err != nil {
			interval = pollUnarmed
			r.report(err)
		} else {
			r.report(r.read())
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
	bad      error          // entries of content that are no nodes
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

// read delivers the file if it is new and good. The error is what is wrong with it now, new or not.
func (r *run) read() error {
	data, err := os.ReadFile(r.path)
	if err != nil {
		return fmt.Errorf("read topology: %w; what was read before stays", err)
	}
	if r.content != nil && bytes.Equal(data, r.content) {
		return r.bad
	}
	nodes, bad, err := parse(data)
	if err != nil {
		return fmt.Errorf("parse topology %s: %w; what was read before stays", r.path, err)
	}
	r.bad = nil
	for _, b := range bad {
		r.bad = errors.Join(r.bad, b)
		if last, ok := find(r.nodes, b.name); ok {
			if _, twin := find(nodes, b.name); !twin {
				nodes = append(nodes, last)
			}
		}
	}
	r.content, r.nodes = data, nodes
	r.sink.Replace(slices.Clone(nodes))
	return r.bad
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
		return
	}
	r.opts.Log.Warn("topology cannot be used as it is", "path", r.path, "error", err)
	if r.opts.OnError != nil {
		r.opts.OnError(err)
	}
}
