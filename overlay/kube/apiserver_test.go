package kube

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/watch"
	restwatch "k8s.io/client-go/rest/watch"
)

// behavior is how an apiServer differs from a common one.
type behavior struct {
	json     bool           // knows no protobuf
	noStream bool           // knows no streamed lists
	cuts     bool           // ends streamed lists early
	paged    bool           // obeys limits, as one without a watch cache does
	hangs    bool           // does not answer
	status   map[string]int // verb (list, watch): answer with this status
}

// apiServer serves Nodes as a Kubernetes API server does: real encodings, resource versions, bookmarks, a history that is
// compacted. It listens on a port of its own that stays its own while it is away.
type apiServer struct {
	t       *testing.T
	address string
	codecs  runtime.NegotiatedSerializer
	server  *httptest.Server

	mu       sync.Mutex
	behavior behavior
	nodes    map[string]*corev1.Node
	version  int
	history  []recorded
	oldest   int           // versions before are forgotten
	changed  chan struct{} // closed on each change
	cut      chan struct{} // closed to end watches
	requests []request
	watching int
}

type recorded struct {
	version int
	watch.Event
}

type request struct {
	query url.Values
	agent string
	mime  string // of the answer
}

func newAPIServer(t *testing.T, b behavior, nodes ...*corev1.Node) *apiServer {
	t.Helper()
	scheme := runtime.NewScheme()
	require.NoError(t, corev1.AddToScheme(scheme))
	a := &apiServer{
		t: t, address: reserve(t), behavior: b, version: 1, nodes: map[string]*corev1.Node{},
		codecs:  serializer.NewCodecFactory(scheme).WithoutConversion(),
		changed: make(chan struct{}), cut: make(chan struct{}),
	}
	a.put(nodes...)
	a.comeBack()
	t.Cleanup(a.goAway)
	return a
}

// goAway makes the server refuse connections, and cuts those that there are. A client comes back at once when it is cut, and
// what it asks for may not end by itself.
func (a *apiServer) goAway() {
	_ = a.server.Listener.Close()
	gone := make(chan struct{})
	go func() {
		a.server.Close()
		close(gone)
	}()
	for {
		a.endWatches()
		a.server.CloseClientConnections()
		select {
		case <-gone:
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (a *apiServer) comeBack() {
	l, err := net.Listen("tcp", a.address)
	require.NoError(a.t, err)
	a.server = &httptest.Server{Listener: l, Config: &http.Server{Handler: a}}
	a.server.Start()
}

// behave changes the behavior and ends the watches.
func (a *apiServer) behave(b behavior) {
	a.mu.Lock()
	a.behavior = b
	a.mu.Unlock()
	a.endWatches()
}

// endWatches ends them as the time-out of a watch does.
func (a *apiServer) endWatches() {
	a.mu.Lock()
	defer a.mu.Unlock()
	close(a.cut)
	a.cut = make(chan struct{})
}

// put adds or changes nodes.
func (a *apiServer) put(nodes ...*corev1.Node) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, n := range nodes {
		kind := watch.Added
		if _, ok := a.nodes[n.Name]; ok {
			kind = watch.Modified
		}
		a.record(kind, n)
		a.nodes[n.Name] = n
	}
}

func (a *apiServer) remove(names ...string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, name := range names {
		a.record(watch.Deleted, a.nodes[name].DeepCopy())
		delete(a.nodes, name)
	}
}

// bookmark tells watchers of the version that they have.
func (a *apiServer) bookmark() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.record(watch.Bookmark, &corev1.Node{})
}

// compact forgets the history.
func (a *apiServer) compact() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.history, a.oldest = nil, a.version
}

// record is called with a.mu held.
func (a *apiServer) record(kind watch.EventType, n *corev1.Node) {
	a.version++
	n.ResourceVersion = strconv.Itoa(a.version)
	a.history = append(a.history, recorded{a.version, watch.Event{Type: kind, Object: n}})
	close(a.changed)
	a.changed = make(chan struct{})
}

func (a *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	verb := "list"
	if q.Get("watch") == "true" {
		verb = "watch"
	}
	a.mu.Lock()
	b := a.behavior
	mime, _, _ := strings.Cut(r.Header.Get("Accept"), ",")
	if b.json {
		mime = runtime.ContentTypeJSON
	}
	a.requests = append(a.requests, request{q, r.UserAgent(), mime})
	a.mu.Unlock()
	info, _ := runtime.SerializerInfoForMediaType(a.codecs.SupportedMediaTypes(), mime)
	w.Header().Set("Warning", `299 - "nodes will be renamed"`)
	switch {
	case r.URL.Path != "/api/v1/nodes":
		http.NotFound(w, r)
	case q.Get("sendInitialEvents") != "" && b.noStream:
		refuse(w, verb, http.StatusUnprocessableEntity)
	case b.status[verb] != 0:
		refuse(w, verb, b.status[verb])
	case b.hangs:
		<-r.Context().Done()
	case verb == "list":
		a.list(w, q, b, info)
	default:
		a.watch(w, r, b, info)
	}
}

func refuse(w http.ResponseWriter, verb string, code int) {
	nodes := schema.GroupResource{Resource: "nodes"}
	err := apierrors.NewGenericServerResponse(code, verb, nodes, "", "", 0, true)
	if code == http.StatusForbidden {
		err = apierrors.NewForbidden(nodes, "", fmt.Errorf(`User "system:serviceaccount:kube-system:cnikit" cannot %s resource "nodes" in API group "" at the cluster scope`, verb))
	}
	status := err.Status()
	status.Kind, status.APIVersion = "Status", "v1"
	w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(status)
}

func (a *apiServer) list(w http.ResponseWriter, q url.Values, b behavior, info runtime.SerializerInfo) {
	a.mu.Lock()
	names := slices.Sorted(maps.Keys(a.nodes))
	from, _ := strconv.Atoi(q.Get("continue"))
	to := len(names)
	list := &corev1.NodeList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(a.version)}}
	if limit, _ := strconv.Atoi(q.Get("limit")); b.paged && limit > 0 && from+limit < to {
		to = from + limit
		list.Continue = strconv.Itoa(to)
	}
	for _, name := range names[from:to] {
		list.Items = append(list.Items, *a.nodes[name])
	}
	a.mu.Unlock()
	w.Header().Set("Content-Type", info.MediaType)
	_ = a.codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion).Encode(list, w)
}

// watch sends what happened since the version asked for, and what happens.
func (a *apiServer) watch(w http.ResponseWriter, r *http.Request, b behavior, info runtime.SerializerInfo) {
	q := r.URL.Query()
	version, _ := strconv.Atoi(q.Get("resourceVersion"))
	a.mu.Lock()
	cut := a.cut
	var send []watch.Event
	switch {
	case q.Get("sendInitialEvents") == "true":
		version = a.version
		for _, name := range slices.Sorted(maps.Keys(a.nodes)) {
			send = append(send, watch.Event{Type: watch.Added, Object: a.nodes[name]})
		}
		end := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
			ResourceVersion: strconv.Itoa(version), Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
		}}
		send = append(send, watch.Event{Type: watch.Bookmark, Object: end})
	case version < a.oldest:
		expired := apierrors.NewResourceExpired("too old resource version").Status()
		send = append(send, watch.Event{Type: watch.Error, Object: &expired})
	}
	a.watching++
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		a.watching--
		a.mu.Unlock()
	}()

	mime := info.MediaType
	if strings.HasSuffix(mime, "protobuf") {
		mime += ";stream=watch"
	}
	w.Header().Set("Content-Type", mime)
	encoder := restwatch.NewEncoder(
		streaming.NewEncoder(info.StreamSerializer.NewFrameWriter(w), a.codecs.EncoderForVersion(info.StreamSerializer.Serializer, corev1.SchemeGroupVersion)),
		a.codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion))
	for {
		for _, e := range send {
			last := b.cuts && e.Type == watch.Bookmark
			if last || encoder.Encode(&e) != nil || e.Type == watch.Error {
				return
			}
		}
		w.(http.Flusher).Flush()
		a.mu.Lock()
		send = nil
		for _, e := range a.history {
			if e.version > version {
				version, send = e.version, append(send, e.Event)
			}
		}
		changed := a.changed
		a.mu.Unlock()
		if len(send) > 0 {
			continue
		}
		select {
		case <-r.Context().Done():
			return
		case <-cut:
			return
		case <-changed:
		}
	}
}

func (a *apiServer) seen() []request {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.requests)
}
