package overlay

import (
	"context"

	"github.com/cnikit/cnikit/reconcile"
)

// A Sink takes what a source knows. Its methods return soon and may be called from one goroutine at a time.
type Sink interface {
	Replace(nodes []Node) // all of them; the first call says that the source is complete
	Upsert(node Node)     // one was added or changed
	Delete(name string)   // one is gone; an unknown name is ignored
}

// A Source delivers nodes.
type Source interface {
	// Run delivers to sink until ctx ends, and then returns nil. It returns an error when it cannot go on.
	Run(ctx context.Context, sink Sink) error
}

// A Backend carries a topology into the data path. It does not run by itself: it contributes targets to an engine.
type Backend interface {
	Name() string
	// Overhead is how many bytes the backend adds to a packet; the MTU of pods must be smaller than the underlay's by as much.
	Overhead() int
	// Targets returns the targets of the backend, the same ones on each call.
	Targets() []reconcile.Target
	// SetTopology sets what the targets want; it returns at once and does no I/O. With a nil Self everything that needs the own
	// node is left as it is. It may be called from any goroutine, one call at a time.
	SetTopology(t Topology) error
	// Watch calls trigger with the targets concerned when the data path was changed by others, until ctx ends; then it
	// returns nil.
	Watch(ctx context.Context, trigger func(...reconcile.Target)) error
	// Cleanup removes everything that the backend put into the data path, and nothing else. Nothing there is nil.
	Cleanup(ctx context.Context) error
}
