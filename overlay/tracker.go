package overlay

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// TrackerOptions configure a [Tracker]. The callbacks may be nil. They are called on the goroutine that caused the change,
// one at a time and in order, and must not call the tracker's other methods than Topology.
type TrackerOptions struct {
	Local  Local
	Policy Policy
	// OnTopology is called with each topology that differs from the one before, after the backend, if any, has it.
	OnTopology func(Topology)
	// OnProblems is called with all problems when they changed, with none when the last one is gone.
	OnProblems func([]Problem)
	// OnError is called when the backend refuses a topology. The next change is offered to it again.
	OnError func(error)
}

// A Tracker keeps the nodes that a source delivers and gives the backend, if it has one, a new topology on each change of it. It
// is a [Sink], safe for concurrent use. Until the first Replace it plans nothing: a network known in part is no topology.
//
// It calls [Plan] for each change of a node, at a cost proportional to the number of nodes. Changes of a node in nothing
// that [Node] holds cost a comparison.
type Tracker struct {
	backend Backend // nil: none
	current atomic.Pointer[Topology]

	mu        sync.Mutex // guards the rest, and orders the calls of the backend and the callbacks
	opts      TrackerOptions
	nodes     map[string][]Node // by name; more than one if the source says so
	synced    bool
	delivered bool // the backend has taken the current topology
}

var _ Sink = (*Tracker)(nil)

// NewTracker returns a tracker that delivers to the backend, or with nil to the callbacks alone.
func NewTracker(b Backend, o TrackerOptions) *Tracker {
	return &Tracker{backend: b, opts: o, nodes: map[string][]Node{}}
}

// Replace implements [Sink].
func (t *Tracker) Replace(nodes []Node) {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.nodes)
	for _, n := range nodes {
		t.nodes[n.Name] = append(t.nodes[n.Name], n.clone())
	}
	t.synced = true
	t.update()
}

// Upsert implements [Sink].
func (t *Tracker) Upsert(node Node) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if slices.EqualFunc(t.nodes[node.Name], []Node{node}, Node.Equal) && t.delivered {
		return
	}
	t.nodes[node.Name] = []Node{node.clone()}
	t.update()
}

// Delete implements [Sink].
func (t *Tracker) Delete(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.nodes, name)
	t.update()
}

// SetLocal gives new facts about the own node, such as after a change of its addresses.
func (t *Tracker) SetLocal(l Local) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.opts.Local = l
	t.update()
}

// Topology returns the present topology, and false as long as there is none. It never waits. The topology is shared and must
// not be changed.
func (t *Tracker) Topology() (Topology, bool) {
	if p := t.current.Load(); p != nil {
		return *p, true
	}
	return Topology{}, false
}

// update plans and, if anything came of it, tells the backend. It is called with t.mu held.
func (t *Tracker) update() {
	if !t.synced {
		return
	}
	next := Plan(slices.Concat(slices.Collect(maps.Values(t.nodes))...), t.opts.Local, t.opts.Policy)
	previous, known := t.Topology()
	if known && t.delivered && next.Equal(previous) {
		return
	}
	t.current.Store(&next)
	t.deliver(next)
	if !known || !next.Equal(previous) {
		t.tell(next, previous.Problems)
	}
}

// deliver gives a topology to the backend.
func (t *Tracker) deliver(next Topology) {
	t.delivered = true
	if t.backend == nil {
		return
	}
	err := t.backend.SetTopology(next)
	t.delivered = err == nil
	if err != nil && t.opts.OnError != nil {
		t.opts.OnError(fmt.Errorf("set topology of backend %s: %w", t.backend.Name(), err))
	}
}

// tell calls the callbacks for a new topology.
func (t *Tracker) tell(next Topology, before []Problem) {
	if t.opts.OnTopology != nil {
		t.opts.OnTopology(next)
	}
	if t.opts.OnProblems != nil && !slices.Equal(next.Problems, before) {
		t.opts.OnProblems(slices.Clone(next.Problems))
	}
}
