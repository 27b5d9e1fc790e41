package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/overlay"
)

// apiServer is as much of a Kubernetes API server as serves Nodes: list and watch, in
// JSON, on the loopback of a host.
type apiServer struct {
	host    *host
	address string
	server  *httptest.Server // nil while it is down
	ended   chan struct{}    // closed when it goes down

	mu       sync.Mutex
	nodes    map[string]overlay.Node
	events   []nodeEvent   // all there were; the version of one is its index and one
	changed  chan struct{} // closed with the next event
	silent   bool          // requests get no answer
	requests int
}

type nodeEvent struct {
	Type   string     `json:"type"`
	Object kubeObject `json:"object"`
}

type kubeObject = map[string]any

func newAPIServer(t *testing.T, h *host, nodes ...overlay.Node) *apiServer {
	s := &apiServer{host: h, address: "127.0.0.1:0", nodes: map[string]overlay.Node{}, changed: make(chan struct{})}
	for _, n := range nodes {
		s.put(n)
	}
	s.start(t)
	t.Cleanup(s.stop)
	return s
}

// start listens where it did before.
func (s *apiServer) start(t *testing.T) {
	ended := make(chan struct{})
	s.ended = ended
	s.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, ended) }))
	require.NoError(t, s.server.Listener.Close())
	require.NoError(t, s.host.ns.Do(func() (err error) {
		s.server.Listener, err = net.Listen("tcp", s.address)
		return err
	}))
	s.server.Start()
	s.address = s.server.Listener.Addr().String()
}

func (s *apiServer) stop() {
	if s.server != nil {
		close(s.ended) // else Close would wait for requests that last
		s.server.CloseClientConnections()
		s.server.Close()
	}
	s.server = nil
}

func (s *apiServer) setSilent(silent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.silent = silent
}

// awaitRequest waits until somebody asked.
func (s *apiServer) awaitRequest(t *testing.T) {
	require.Eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.requests > 0
	}, patience, 5*time.Millisecond)
}

// kubeconfig writes a file that leads here.
func (s *apiServer) kubeconfig(t *testing.T) string {
	path := s.host.path("kubeconfig")
	require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, `
apiVersion: v1
kind: Config
current-context: test
contexts: [{name: test, context: {cluster: test, user: test}}]
clusters: [{name: test, cluster: {server: "http://%s"}}]
users: [{name: test, user: {token: secret}}]
`, s.address), 0o600))
	return path
}

// put creates or updates a Node.
func (s *apiServer) put(n overlay.Node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kind := "ADDED"
	if old, there := s.nodes[n.Name]; there {
		kind = "MODIFIED"
		if old.UID != n.UID {
			s.record("DELETED", old)
			kind = "ADDED"
		}
	}
	s.nodes[n.Name] = n
	s.record(kind, n)
}

func (s *apiServer) remove(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.record("DELETED", s.nodes[name])
	delete(s.nodes, name)
}

// record is called with s.mu held.
func (s *apiServer) record(kind string, n overlay.Node) {
	s.events = append(s.events, nodeEvent{kind, object(n, len(s.events)+1)})
	close(s.changed)
	s.changed = make(chan struct{})
}

// object is a Node as the API has it.
func object(n overlay.Node, version int) kubeObject {
	addresses := []kubeObject{}
	for _, a := range n.Addresses {
		addresses = append(addresses, kubeObject{"type": "InternalIP", "address": a})
	}
	return kubeObject{
		"apiVersion": "v1", "kind": "Node",
		"metadata": kubeObject{
			"name": n.Name, "uid": n.UID, "creationTimestamp": n.Created.Format(time.RFC3339), "resourceVersion": strconv.Itoa(version),
		},
		"spec":   kubeObject{"podCIDR": n.PodCIDRs[0], "podCIDRs": n.PodCIDRs},
		"status": kubeObject{"addresses": addresses},
	}
}

func (s *apiServer) serve(w http.ResponseWriter, r *http.Request, ended <-chan struct{}) {
	s.mu.Lock()
	s.requests++
	silent := s.silent
	s.mu.Unlock()
	query := r.URL.Query()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case silent:
		select {
		case <-r.Context().Done():
		case <-ended:
		}
		panic(http.ErrAbortHandler) // else this were an answer, if an empty one
	case r.URL.Path != "/api/v1/nodes":
		refuse(w, http.StatusNotFound, "NotFound")
	case query.Get("sendInitialEvents") == "true": // old servers have no streamed lists
		refuse(w, http.StatusBadRequest, "BadRequest")
	case query.Get("watch") != "":
		version, _ := strconv.Atoi(query.Get("resourceVersion"))
		s.serveWatch(w, r, version, ended)
	default:
		s.serveList(w)
	}
}

func refuse(w http.ResponseWriter, code int, reason string) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(kubeObject{"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": code, "reason": reason})
}

func (s *apiServer) serveList(w http.ResponseWriter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	items := []kubeObject{}
	for _, n := range s.nodes {
		items = append(items, object(n, len(s.events)))
	}
	_ = json.NewEncoder(w).Encode(kubeObject{
		"apiVersion": "v1", "kind": "NodeList", "metadata": kubeObject{"resourceVersion": strconv.Itoa(len(s.events))}, "items": items,
	})
}

// serveWatch sends what comes after a version until the client has enough.
func (s *apiServer) serveWatch(w http.ResponseWriter, r *http.Request, version int, ended <-chan struct{}) {
	for {
		s.mu.Lock()
		fresh, changed := slices.Clone(s.events[min(version, len(s.events)):]), s.changed
		s.mu.Unlock()
		for _, e := range fresh {
			_ = json.NewEncoder(w).Encode(e)
			version++
		}
		_ = http.NewResponseController(w).Flush()
		select {
		case <-r.Context().Done():
			return
		case <-ended:
			return
		case <-changed:
		}
	}
}
