package kube

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	goruntime "runtime"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

const (
	listTimeout = 2 * time.Minute  // of one list; the API server gives up after one minute
	watchGrace  = 30 * time.Second // for the end that a watch asks the API server for
)

// nodes lists and watches the Nodes of a cluster, and keeps track of how that goes. It implements [cache.ListerWatcher].
type nodes struct {
	*cache.ListWatch
	client rest.Interface
	http   *http.Client
	params runtime.ParameterCodec
	server string
	health health
}

// newNodes makes a client for core/v1 with a scheme of its own. It reads the files that config names.
func newNodes(config *rest.Config, log *slog.Logger) (*nodes, error) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.APIPath, config.GroupVersion = "/api", &corev1.SchemeGroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	config.Timeout = 0
	config.WarningHandler, config.WarningHandlerWithContext = nil, warnings{log}
	if config.UserAgent == "" {
		config.UserAgent = userAgent()
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return transport{next} })
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	api, err := rest.RESTClientForConfigAndClient(config, client)
	if err != nil {
		return nil, err
	}
	n := &nodes{client: api, http: client, params: runtime.NewParameterCodec(scheme), server: config.Host, health: newHealth()}
	n.ListWatch = &cache.ListWatch{ListWithContextFunc: n.list, WatchFuncWithContext: n.watch}
	return n, nil
}

func userAgent() string {
	return fmt.Sprintf("%s (%s/%s) cnikit/overlay/kube", filepath.Base(os.Args[0]), goruntime.GOOS, goruntime.GOARCH)
}

// close gives up the connections that wait for another request.
func (n *nodes) close() { utilnet.CloseIdleConnectionsFor(n.http.Transport) }

// list gets the Nodes, or one page of them.
func (n *nodes) list(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	n.health.begin(false)
	attempt, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	attempt, wire := trace(attempt)
	list := &corev1.NodeList{}
	// The client repeats nothing by itself: each failure is to be seen, and the reflector waits and repeats.
	err := n.client.Get().Resource("nodes").VersionedParams(&o, n.params).MaxRetries(0).Do(attempt).Into(list)
	if err == nil {
		return list, nil
	}
	if !expired(err) {
		n.health.fail(explain("list", n.server, err, wire.err != nil))
	}
	return nil, err
}

// errCut makes the reflector go on with a list. A streamed list that ends early it would ask for again at once, and for ever:
// ten thousand times a second, from each node, of an API server that has just been too busy to complete it.
var errCut = errors.New("the streamed list ended before it was complete")

// watch starts a watch. With initial events it is a streamed list, which the reflector follows up with a list when it fails.
func (n *nodes) watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	streamed := o.SendInitialEvents != nil && *o.SendInitialEvents
	if cut := n.health.begin(streamed); cut && streamed {
		n.health.refused()
		return nil, errCut
	}
	var limit time.Duration
	if o.TimeoutSeconds != nil {
		limit = time.Duration(*o.TimeoutSeconds) * time.Second
	}
	attempt, cancel := context.WithTimeout(ctx, limit+watchGrace)
	o.Watch = true
	events, wire, err := n.open(attempt, o, limit)
	if err == nil {
		if !streamed {
			n.health.good()
		}
		return stream{events, cancel}, nil
	}
	cancel()
	n.health.refused()
	if !expired(err) && (!streamed || wire) {
		n.health.fail(explain("watch", n.server, err, wire))
	}
	if streamed && (utilnet.IsConnectionRefused(err) || apierrors.IsTooManyRequests(err)) {
		return nil, opaque{err}
	}
	return nil, err
}

// open sends the request of a watch. wire says that no answer came. The client makes an empty watch of some such errors,
// which would leave an API server that cannot be reached unnoticed.
func (n *nodes) open(ctx context.Context, o metav1.ListOptions, limit time.Duration) (_ watch.Interface, wire bool, _ error) {
	ctx, trace := trace(ctx)
	events, err := n.client.Get().Resource("nodes").VersionedParams(&o, n.params).Timeout(limit).MaxRetries(0).Watch(ctx)
	if err == nil && trace.err != nil {
		events.Stop()
		err = trace.err
	}
	return events, trace.err != nil, err
}

// expired reports whether the resource version is too old or too new for the API server, upon which the reflector asks again.
func expired(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) ||
		apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge)
}

// stream is a watch that ends its context.
type stream struct {
	watch.Interface
	cancel context.CancelFunc
}

// Stop implements [watch.Interface].
func (s stream) Stop() {
	s.Interface.Stop()
	s.cancel()
}

// opaque hides the kind of an error. After one that looks temporary, the reflector would repeat a streamed list after a wait
// that the end of the context does not end; after any other it goes on with a list, fails, and waits well.
type opaque struct{ err error }

// Error implements error.
func (o opaque) Error() string { return o.err.Error() }
