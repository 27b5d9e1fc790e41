package overlay

// TrackerOptions configure a [Tracker].
type TrackerOptions struct {
	Local  Local
	Policy Policy
	// OnTopology is called after each change of the topology, Problems included, by the goroutine that caused it.
	OnTopology func(Topology)
	// OnError is called when the backend refuses a topology.
	OnError func(error)
}

// A Tracker keeps the nodes that a source delivers and gives the backend a new topology on each change. It is a [Sink], safe
// for concurrent use. Until the first Replace it plans nothing: a network known in part is no topology.
type Tracker struct {
	backend Backend
	opts    TrackerOptions
}

var _ Sink = (*Tracker)(nil)

// NewTracker returns a tracker for the backend.
func NewTracker(b Backend, o TrackerOptions) *Tracker { return &Tracker{backend: b, opts: o} }

// Replace implements [Sink].
func (t *Tracker) Replace(nodes []Node) {}

// Upsert implements [Sink].
func (t *Tracker) Upsert(node Node) {}

// Delete implements [Sink].
func (t *Tracker) Delete(name string) {}

// SetLocal gives new facts about the own node, such as after a change of its addresses.
func (t *Tracker) SetLocal(l Local) {}

// Topology returns the present topology, and whether there is one yet.
func (t *Tracker) Topology() (Topology, bool) { return Topology{}, false }
