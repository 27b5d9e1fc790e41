package kube

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/cnikit/cnikit/overlay"
)

// AddressAnnotation is the annotation of a Node that names its addresses, if [Options] name no other.
const AddressAnnotation = "cnikit.io/underlay-address"

// Options configure a [Source]. The zero value is usable. The callbacks may be nil; they are called from Run, on the
// goroutine that calls the sink.
type Options struct {
	Log *slog.Logger // nil discards

	// OnError is called when the Nodes cannot be listed or watched. It is called once as long as the cause stays the same,
	// however often the request is repeated. Nodes that were delivered stay. The status error of the API server, if it sent
	// one, is in the chain.
	OnError func(error)
	// OnGood is called when Nodes are watched again after an error. A list that came before the watch was delivered then.
	OnGood func()

	// AddressAnnotation is the annotation of a Node with its addresses on the network between the nodes, separated by commas,
	// the preferred one first; default [AddressAnnotation]. It takes the place of the InternalIPs of the Node's status, which
	// count for a Node that has no such annotation or an empty one.
	AddressAnnotation string
}

// A Source delivers the Nodes of a cluster.
type Source struct {
	config *rest.Config
	opts   Options
}

var _ overlay.Source = (*Source)(nil)

// New returns a source that reads from the API server that cfg describes; [Config] makes one. It does no I/O. cfg is copied.
// Of its fields, Timeout has no effect, because it would cut a watch.
func New(cfg *rest.Config, o Options) (*Source, error) {
	if cfg == nil {
		return nil, errors.New("make a source of Kubernetes Nodes: there is no configuration of the API server; use Config")
	}
	if _, _, err := rest.DefaultServerUrlFor(cfg); err != nil {
		return nil, fmt.Errorf("make a source of Kubernetes Nodes: Host=%q: %w; write it like https://192.0.2.1:6443", cfg.Host, err)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.AddressAnnotation == "" {
		o.AddressAnnotation = AddressAnnotation
	}
	return &Source{config: rest.CopyConfig(cfg), opts: o}, nil
}

// Run implements [overlay.Source]. It first delivers all Nodes by one Replace, as soon as it has the complete list; nothing
// before. After that it delivers each changed Node by Upsert or Delete, or by another Replace when many have changed at once,
// as after an outage. A Node that changes in nothing that [overlay.Node] holds is not delivered, and one that was deleted and
// created again under its name is delivered with its new UID, also when the deletion was never seen.
//
// The sink may be slow: what changes meanwhile is kept as one change per Node, and the API server is not made to wait.
//
// While the API server is away or refuses, Run tells [Options].OnError and tries again, at first after a second and at
// length after 30 to 60 seconds; what was delivered stays. A connection that has died silently is found by HTTP/2 pings,
// within 45 seconds.
//
// It returns nil when ctx ends, and an error only when cfg cannot be used, such as with a certificate file that is missing.
// All its goroutines end with it, but for those that client-go has for each pair of files with a client certificate, to follow
// their changes: they stay for the next Run.
func (s *Source) Run(ctx context.Context, sink overlay.Sink) error {
	nodes, err := newNodes(s.config, s.opts.Log)
	if err != nil {
		return fmt.Errorf("watch Kubernetes Nodes: %w", err)
	}
	defer nodes.close()
	mirror := newMirror(s.opts.AddressAnnotation, &nodes.health)
	reflector := cache.NewReflectorWithOptions(nodes, &corev1.Node{}, mirror, cache.ReflectorOptions{Name: "cnikit/overlay/kube"})

	ctx, cancel := context.WithCancel(logr.NewContext(ctx, clientLogger(s.opts.Log)))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		reflector.RunWithContext(ctx)
	}()
	defer func() {
		cancel()
		<-ended
	}()
	r := &run{Source: s, sink: sink, mirror: mirror, health: &nodes.health}
	for {
		select {
		case <-ctx.Done():
		case <-nodes.health.changed:
		case <-mirror.changed:
		}
		if ctx.Err() != nil {
			return nil
		}
		r.deliver()
	}
}

// run is the state of one Run.
type run struct {
	*Source
	sink   overlay.Sink
	mirror *mirror
	health *health
	told   kind // of the error that was told last, if it is not over
}

// deliver hands over what is new. Health is read before the Nodes, so that those that it speaks of are among them, and told
// after them: of a list that is complete and a watch that failed then, the list comes first.
func (r *run) deliver() {
	failure, bad := r.health.get()
	r.mirror.deliver(r.sink)
	switch {
	case bad && failure.kind != r.told:
		r.told = failure.kind
		r.tell(failure.err)
	case !bad && r.told != none:
		r.told = none
		r.opts.Log.Info("Kubernetes Nodes are watched again", "server", r.config.Host)
		if r.opts.OnGood != nil {
			r.opts.OnGood()
		}
	}
}

func (r *run) tell(err error) {
	meanwhile := "no node is known so far"
	if r.mirror.complete() {
		meanwhile = "what was read before stays"
	}
	err = fmt.Errorf("%w; %s", err, meanwhile)
	r.opts.Log.Warn("Kubernetes Nodes cannot be watched", "server", r.config.Host, "error", err)
	if r.opts.OnError != nil {
		r.opts.OnError(err)
	}
}
