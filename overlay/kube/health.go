package kube

import "sync"

// health is how reading the Nodes goes. It is good when they are watched and the list before was complete.
type health struct {
	changed chan struct{} // of capacity 1: get may return something else

	mu       sync.Mutex
	failure  failure // of kind none if there is none
	streamed bool    // the last request was a streamed list, and was accepted
	listed   bool    // it is complete
}

func newHealth() health { return health{changed: make(chan struct{}, 1)} }

// get returns what is wrong, if anything is.
func (h *health) get() (failure, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.failure, h.failure.kind != none
}

// begin notes a request, which may be a streamed list. cut says that the request before was one, and ended before it was
// complete.
func (h *health) begin(streamed bool) (cut bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	cut = h.streamed && !h.listed
	h.streamed, h.listed = streamed, false
	return cut
}

// refused notes that a request was not accepted.
func (h *health) refused() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.streamed = false
}

// fail notes that a request failed.
func (h *health) fail(f failure) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failure = f
	notify(h.changed)
}

// good notes that a watch has begun.
func (h *health) good() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failure = failure{}
	notify(h.changed)
}

// complete notes that a list is complete. A streamed one goes on as a watch; after another the watch is still to begin.
func (h *health) complete() {
	h.mu.Lock()
	h.listed = true
	streamed := h.streamed
	h.mu.Unlock()
	if streamed {
		h.good()
	}
}
