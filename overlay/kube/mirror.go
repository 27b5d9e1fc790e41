package kube

import (
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/cnikit/cnikit/overlay"
)

// burst is how many changes are delivered one by one. More are delivered by one Replace: a sink that plans anew on each call,
// as overlay.Tracker does, would otherwise do so for each of thousands of nodes after an outage.
const burst = 16

// A mirror stands between the reflector, which fills it, and Run, which empties it. It keeps what the API server has and which
// of it is not delivered yet, so that neither side waits for the other, and what waits is bounded by the number of Nodes.
type mirror struct {
	reader  reader
	health  *health
	changed chan struct{} // of capacity 1: there is something to deliver

	mu     sync.Mutex
	nodes  map[string]overlay.Node // nil until the list is complete
	dirty  map[string]struct{}     // names of those to deliver
	synced bool                    // the first Replace is delivered
}

var _ cache.TransformingStore = (*mirror)(nil)

func newMirror(annotation string, h *health) *mirror {
	return &mirror{
		reader: reader{annotation: annotation}, health: h,
		changed: make(chan struct{}, 1), dirty: map[string]struct{}{},
	}
}

// Transformer makes the reflector strip Nodes while it collects those of a streamed list.
func (m *mirror) Transformer() cache.TransformFunc { return m.reader.strip }

// Add is called with a Node that is new.
func (m *mirror) Add(obj any) error { return m.Update(obj) }

// Update is called with a Node that is new or changed.
func (m *mirror) Update(obj any) error {
	n, err := asNode(obj)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.put(m.nodes, n) {
		m.wake()
	}
	return nil
}

// Delete is called with the last state of a Node that is gone.
func (m *mirror) Delete(obj any) error {
	n, err := asNode(obj)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.nodes[n.Name]; ok {
		delete(m.nodes, n.Name)
		m.dirty[n.Name] = struct{}{}
		m.wake()
	}
	return nil
}

// Replace is called with a complete list. A Node that is missing from it was deleted unseen.
func (m *mirror) Replace(list []any, _ string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	nodes := make(map[string]overlay.Node, len(list))
	for _, obj := range list {
		n, err := asNode(obj)
		if err != nil {
			return err
		}
		if old, ok := m.nodes[n.Name]; ok {
			nodes[n.Name] = old
		}
		m.put(nodes, n)
	}
	for name := range m.nodes {
		if _, ok := nodes[name]; !ok {
			m.dirty[name] = struct{}{}
		}
	}
	m.nodes = nodes
	m.wake()
	m.health.complete()
	return nil
}

// Resync implements [cache.ReflectorStore]. Nothing here goes stale.
func (*mirror) Resync() error { return nil }

// put stores n in nodes, and reports whether it differs from what is there. It is called with m.mu held.
func (m *mirror) put(nodes map[string]overlay.Node, n *corev1.Node) bool {
	old, ok := nodes[n.Name]
	read, same := m.reader.read(n, old)
	if ok && same {
		return false
	}
	nodes[n.Name] = read
	m.dirty[n.Name] = struct{}{}
	return true
}

// wake tells Run that there is something to deliver.
func (m *mirror) wake() { notify(m.changed) }

// complete reports whether there ever was a complete list.
func (m *mirror) complete() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.nodes != nil
}

// deliver hands over what is not delivered yet. The sink is called without m.mu, from one goroutine at a time.
func (m *mirror) deliver(sink overlay.Sink) {
	all, gone, changed := m.take()
	if all != nil {
		sink.Replace(all)
	}
	for _, name := range gone { // first: another node may have taken over what they had
		sink.Delete(name)
	}
	for _, n := range changed {
		sink.Upsert(n)
	}
}

// take returns what is not delivered yet: all nodes, or those gone and those changed.
func (m *mirror) take() (all []overlay.Node, gone []string, changed []overlay.Node) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.nodes == nil {
		return nil, nil, nil
	}
	if !m.synced || len(m.dirty) > burst {
		all = make([]overlay.Node, 0, len(m.nodes))
		for _, name := range slices.Sorted(maps.Keys(m.nodes)) {
			all = append(all, m.nodes[name])
		}
		m.synced, m.dirty = true, map[string]struct{}{} // a new map, because one that was large stays so
		return all, nil, nil
	}
	for _, name := range slices.Sorted(maps.Keys(m.dirty)) {
		if n, ok := m.nodes[name]; ok {
			changed = append(changed, n)
		} else {
			gone = append(gone, name)
		}
	}
	clear(m.dirty)
	return nil, gone, changed
}

// notify sends a token unless one is waiting.
func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
