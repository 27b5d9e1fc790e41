package kube

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/cnikit/cnikit/overlay"
)

// created is when the Nodes of the tests were created.
var created = time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC)

// apiNode returns a Node with a Pod CIDR and an address that follow from i, and everything that a real one has besides.
func apiNode(name string, i int) *corev1.Node {
	n := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID(fmt.Sprintf("uid-%d", i)), CreationTimestamp: metav1.NewTime(created),
			Labels: map[string]string{"kubernetes.io/hostname": name},
		},
		Spec: corev1.NodeSpec{
			PodCIDR:  fmt.Sprintf("10.%d.%d.0/24", i/256, i%256),
			PodCIDRs: []string{fmt.Sprintf("10.%d.%d.0/24", i/256, i%256), fmt.Sprintf("fd00:0:0:%x::/64", i)},
		},
		Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeHostName, Address: name},
			{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("192.0.%d.%d", i/256, i%256)},
		}},
	}
	return n
}

// overlayNode is what is to come of apiNode.
func overlayNode(name string, i int) overlay.Node {
	return overlay.Node{
		Name: name, UID: fmt.Sprintf("uid-%d", i), Created: created,
		PodCIDRs:  []string{fmt.Sprintf("10.%d.%d.0/24", i/256, i%256), fmt.Sprintf("fd00:0:0:%x::/64", i)},
		Addresses: []string{fmt.Sprintf("192.0.%d.%d", i/256, i%256)},
	}
}

// heartbeat returns n with another status, as a kubelet reports it.
func heartbeat(n *corev1.Node, i int) *corev1.Node {
	n = n.DeepCopy()
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, LastHeartbeatTime: metav1.NewTime(created.Add(time.Duration(i) * time.Second))}}
	return n
}

// call is a call of a sink or of a callback.
type call struct {
	op    string // Replace, Upsert, Delete, error, good
	nodes []overlay.Node
	name  string
	err   error
}

// running is a source that runs.
type running struct {
	t      *testing.T
	calls  chan call
	cancel context.CancelFunc
	stop   func() error // ends it and returns what Run returned
}

func (r *running) Replace(nodes []overlay.Node) { r.calls <- call{op: "Replace", nodes: nodes} }
func (r *running) Upsert(n overlay.Node) {
	r.calls <- call{op: "Upsert", name: n.Name, nodes: []overlay.Node{n}}
}
func (r *running) Delete(name string) { r.calls <- call{op: "Delete", name: name} }

func start(t *testing.T, config *rest.Config, o Options) *running {
	t.Helper()
	r := &running{t: t, calls: make(chan call, 10000)}
	o.OnError = func(err error) { r.calls <- call{op: "error", err: err} }
	o.OnGood = func() { r.calls <- call{op: "good"} }
	source, err := New(config, o)
	require.NoError(t, err)
	r.run(source, r)
	return r
}

func (r *running) run(source *Source, sink overlay.Sink) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- source.Run(ctx, sink) }()
	r.cancel = cancel
	stopped := false
	r.stop = func() error {
		cancel()
		stopped = true
		select {
		case err := <-ended:
			return err
		case <-time.After(time.Minute):
			return fmt.Errorf("Run goes on after the end of its context")
		}
	}
	r.t.Cleanup(func() {
		if !stopped {
			assert.NoError(r.t, r.stop())
		}
	})
}

func (a *apiServer) config() *rest.Config { return &rest.Config{Host: "http://" + a.address} }

func (r *running) next() call {
	r.t.Helper()
	select {
	case c := <-r.calls:
		return c
	case <-time.After(time.Minute):
		require.FailNow(r.t, "nothing was delivered")
		return call{}
	}
}

func (r *running) requireReplace(want ...overlay.Node) {
	r.t.Helper()
	c := r.next()
	require.Equal(r.t, "Replace", c.op, "%+v", c)
	require.Equal(r.t, want, c.nodes)
}

func (r *running) requireUpsert(want overlay.Node) {
	r.t.Helper()
	c := r.next()
	require.Equal(r.t, "Upsert", c.op, "%+v", c)
	require.Equal(r.t, want, c.nodes[0])
}

func (r *running) requireDelete(name string) {
	r.t.Helper()
	require.Equal(r.t, call{op: "Delete", name: name}, r.next())
}

func (r *running) requireError(texts ...string) {
	r.t.Helper()
	c := r.next()
	require.Equal(r.t, "error", c.op, "%+v", c)
	for _, text := range texts {
		require.ErrorContains(r.t, c.err, text)
	}
}

func (r *running) requireGood() {
	r.t.Helper()
	require.Equal(r.t, call{op: "good"}, r.next())
}

// kinds are the API servers that a source meets.
func kinds() map[string]behavior {
	return map[string]behavior{
		"protobuf, streamed list": {},
		"protobuf, list":          {noStream: true},
		"JSON, streamed list":     {json: true},
		"JSON, list":              {json: true, noStream: true},
	}
}

func TestRun(t *testing.T) {
	t.Parallel()
	for name, b := range kinds() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAPIServer(t, b, apiNode("a", 1), apiNode("b", 2))
			r := start(t, a.config(), Options{})
			r.requireReplace(overlayNode("a", 1), overlayNode("b", 2))

			a.put(apiNode("c", 3))
			r.requireUpsert(overlayNode("c", 3))
			a.bookmark()
			for i := range 100 {
				a.put(heartbeat(apiNode("a", 1), i))
			}
			a.put(apiNode("a", 4)) // the next call is about this change, not about a heartbeat
			r.requireUpsert(overlayNode("a", 4))
			a.remove("b")
			r.requireDelete("b")

			a.endWatches()
			a.put(apiNode("d", 5))
			r.requireUpsert(overlayNode("d", 5))
			require.NoError(t, r.stop())
			require.Empty(t, r.calls)
		})
	}
}

func TestRunWithoutNodes(t *testing.T) {
	t.Parallel()
	a := newAPIServer(t, behavior{})
	r := start(t, a.config(), Options{})
	c := r.next()
	require.Equal(t, "Replace", c.op, "an empty cluster is a complete one")
	require.Empty(t, c.nodes)
}

func TestRelist(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]behavior{"streamed list": {}, "list": {noStream: true}} {
		t.Run("what happened unseen arrives/"+name, func(t *testing.T) {
			t.Parallel()
			a := newAPIServer(t, b, apiNode("a", 1), apiNode("b", 2), apiNode("c", 3))
			r := start(t, a.config(), Options{})
			r.requireReplace(overlayNode("a", 1), overlayNode("b", 2), overlayNode("c", 3))

			a.goAway()
			// Whether client-go watches or lists first after a cut is its own affair, and differs by version and moment.
			r.requireError(" nodes at "+a.config().Host+": ", "see that the API server runs", "what was read before stays")
			a.remove("a", "b")
			again := apiNode("b", 2)
			again.UID = "uid-new"
			a.put(again, apiNode("d", 4), heartbeat(apiNode("c", 3), 1))
			a.compact() // 410: only a list tells
			a.comeBack()
			want := overlayNode("b", 2)
			want.UID = "uid-new"
			// Without streamed lists the watch may be good for a moment, before it is told that its version is gone.
			got := []call{r.next(), r.next(), r.next(), r.next()}
			good := slices.IndexFunc(got, func(c call) bool { return c.op == "good" })
			require.True(t, good == 3 || good == 0 && b.noStream, "%+v", got)
			require.Equal(t, []call{
				{op: "Delete", name: "a"},
				{op: "Upsert", name: "b", nodes: []overlay.Node{want}},
				{op: "Upsert", name: "d", nodes: []overlay.Node{overlayNode("d", 4)}},
			}, slices.Delete(got, good, good+1))
			require.NoError(t, r.stop())
			require.Empty(t, r.calls, "c had a heartbeat only")
		})
	}
	t.Run("much at once is one Replace", func(t *testing.T) {
		t.Parallel()
		a := newAPIServer(t, behavior{}, apiNode("a", 1))
		r := start(t, a.config(), Options{})
		r.requireReplace(overlayNode("a", 1))
		a.goAway()
		r.requireError("stays")
		for i := range burst + 1 {
			a.put(apiNode(fmt.Sprintf("n%02d", i), 10+i))
		}
		a.compact()
		a.comeBack()
		c := r.next()
		require.Equal(t, "Replace", c.op)
		require.Len(t, c.nodes, burst+2)
		r.requireGood()
	})
}

func TestPages(t *testing.T) {
	t.Parallel()
	a := newAPIServer(t, behavior{noStream: true, paged: true})
	for i := range 1100 {
		a.put(apiNode(fmt.Sprintf("node-%04d", i), i))
	}
	r := start(t, a.config(), Options{})
	require.Len(t, r.next().nodes, 1100, "one Replace, when all pages are there")
	a.put(apiNode("z", 7))
	r.requireUpsert(overlayNode("z", 7))
	pages := slices.DeleteFunc(a.seen(), func(r request) bool { return r.query.Get("watch") != "" })
	require.Len(t, pages, 3)
}

func TestConnectionCut(t *testing.T) {
	t.Parallel()
	a := newAPIServer(t, behavior{}, apiNode("a", 1))
	r := start(t, a.config(), Options{})
	r.requireReplace(overlayNode("a", 1))
	a.server.CloseClientConnections()
	a.put(apiNode("b", 2))
	r.requireUpsert(overlayNode("b", 2)) // and no error, because the next attempt succeeds
}

// A proxy that limits the length of an answer, or an API server that is about to end.
func TestStreamedListCut(t *testing.T) {
	t.Parallel()
	a := newAPIServer(t, behavior{cuts: true}, apiNode("a", 1))
	r := start(t, a.config(), Options{})
	r.requireReplace(overlayNode("a", 1))
	a.put(apiNode("b", 2))
	r.requireUpsert(overlayNode("b", 2))
	require.Len(t, a.seen(), 3, "a streamed list, a list, a watch")

	a = newAPIServer(t, behavior{cuts: true, status: map[string]int{"list": http.StatusServiceUnavailable}}, apiNode("a", 1))
	r = start(t, a.config(), Options{})
	r.requireError("list nodes at")
	a.behave(behavior{})
	r.requireReplace(overlayNode("a", 1))
	r.requireGood()
	require.Less(t, len(a.seen()), 20)
}

func TestAwayAtTheStart(t *testing.T) {
	t.Parallel()
	a := newAPIServer(t, behavior{}, apiNode("a", 1))
	a.goAway()
	r := start(t, a.config(), Options{})
	r.requireError(" nodes at "+a.config().Host+": dial tcp", "connection refused", "see that the API server runs", "no node is known so far")
	a.comeBack()
	r.requireReplace(overlayNode("a", 1))
	r.requireGood()
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		status map[string]int
		lasts  bool // see what comes after the first error
		want   []string
	}{
		"list is forbidden": {map[string]int{"list": http.StatusForbidden, "watch": http.StatusForbidden}, true, []string{
			`User "system:serviceaccount:kube-system:cnikit" cannot list resource "nodes"`,
			`let a ClusterRole with the verbs get, list and watch on "nodes"`, "no node is known so far",
		}},
		"watch alone is forbidden": {map[string]int{"watch": http.StatusForbidden}, true, []string{
			`cannot watch resource "nodes"`, `let a ClusterRole with the verbs get, list and watch`, "what was read before stays",
		}},
		"credentials":   {map[string]int{"list": http.StatusUnauthorized, "watch": http.StatusUnauthorized}, false, []string{"does not know these credentials"}},
		"other service": {map[string]int{"list": http.StatusNotFound, "watch": http.StatusNotFound}, false, []string{"is no Kubernetes API server"}},
		"overload":      {map[string]int{"list": http.StatusTooManyRequests, "watch": http.StatusTooManyRequests}, false, []string{"it is tried again"}},
		"broken":        {map[string]int{"list": http.StatusInternalServerError, "watch": http.StatusInternalServerError}, false, []string{"it is tried again"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newAPIServer(t, behavior{status: tt.status}, apiNode("a", 1))
			r := start(t, a.config(), Options{})
			if tt.status["list"] == 0 {
				r.requireReplace(overlayNode("a", 1))
			}
			r.requireError(tt.want...)
			if !tt.lasts {
				return
			}
			before := len(a.seen())
			require.Eventually(t, func() bool { return len(a.seen()) >= before+2 }, time.Minute, 10*time.Millisecond)
			require.Empty(t, r.calls, "the same error again is not told")
			a.behave(behavior{})
			if tt.status["list"] != 0 {
				r.requireReplace(overlayNode("a", 1))
			}
			r.requireGood()
		})
	}
}

// A watch whose version is too old is no error, also when that is the status of the answer.
func TestGone(t *testing.T) {
	t.Parallel()
	a := newAPIServer(t, behavior{noStream: true, status: map[string]int{"watch": http.StatusGone}}, apiNode("a", 1))
	r := start(t, a.config(), Options{})
	r.requireReplace(overlayNode("a", 1))
	a.put(apiNode("b", 2))
	r.requireUpsert(overlayNode("b", 2)) // by another list
	require.Empty(t, r.calls)
}

// Of some failures the client makes a watch that ends at once, and would never tell.
func TestNoAnswer(t *testing.T) {
	t.Parallel()
	t.Run("packets are lost", func(t *testing.T) {
		t.Parallel()
		config := &rest.Config{Host: "http://192.0.2.1", Dial: func(context.Context, string, string) (net.Conn, error) {
			time.Sleep(1100 * time.Millisecond) // a watch of less than a second is an error to the reflector
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.ErrDeadlineExceeded}
		}}
		r := start(t, config, Options{})
		r.requireError("watch nodes at http://192.0.2.1: dial tcp", "see that the API server runs")
	})
	t.Run("connections are closed", func(t *testing.T) {
		t.Parallel()
		config := &rest.Config{Host: "http://192.0.2.1", Dial: func(context.Context, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			return near, far.Close()
		}}
		r := start(t, config, Options{})
		// That the watch failed, or the list that follows at once.
		r.requireError(" nodes at http://192.0.2.1: ", "see that the API server runs")
	})
}

func TestTimeoutCutsNoWatch(t *testing.T) {
	t.Parallel()
	a := newAPIServer(t, behavior{}, apiNode("a", 1))
	config := a.config()
	config.Timeout = time.Millisecond * 200
	r := start(t, config, Options{})
	r.requireReplace(overlayNode("a", 1))
	time.Sleep(2 * config.Timeout)
	a.put(apiNode("b", 2))
	r.requireUpsert(overlayNode("b", 2))
	require.Len(t, a.seen(), 1, "the first watch goes on")
}

// slow is a sink that waits in its first call.
type slow struct {
	*running
	first chan struct{}
	goOn  chan struct{}
}

func (s slow) Replace(nodes []overlay.Node) {
	s.running.Replace(nodes)
	select {
	case s.first <- struct{}{}:
		<-s.goOn
	default:
	}
}

func TestSlowSink(t *testing.T) {
	t.Parallel()
	a := newAPIServer(t, behavior{}, apiNode("a", 1))
	source, err := New(a.config(), Options{})
	require.NoError(t, err)
	r := &running{t: t, calls: make(chan call, 100)}
	sink := slow{r, make(chan struct{}, 1), make(chan struct{})}
	r.run(source, sink)
	r.requireReplace(overlayNode("a", 1))
	for i := range 3000 {
		a.put(apiNode("b", i))
	}
	a.put(apiNode("c", 3))
	a.remove("a", "c")
	require.Eventually(t, func() bool { // the source has read it all
		a.endWatches()
		all := a.seen()
		v := all[len(all)-1].query.Get("resourceVersion")
		a.mu.Lock()
		defer a.mu.Unlock()
		return v == fmt.Sprint(a.version)
	}, time.Minute, 50*time.Millisecond)
	close(sink.goOn)
	r.requireDelete("a")
	r.requireDelete("c")
	r.requireUpsert(overlayNode("b", 2999))
	require.NoError(t, r.stop())
	require.Empty(t, r.calls, "all that happened to a Node is one change")
}

func TestNothingAfterTheEnd(t *testing.T) {
	t.Parallel()
	for range 10 {
		a := newAPIServer(t, behavior{}, apiNode("a", 1))
		source, err := New(a.config(), Options{})
		require.NoError(t, err)
		r := &running{t: t, calls: make(chan call, 100)}
		sink := slow{r, make(chan struct{}, 1), make(chan struct{})}
		r.run(source, sink)
		r.requireReplace(overlayNode("a", 1))
		a.put(apiNode("b", 2))
		require.Eventually(t, func() bool { // the change waits
			a.endWatches()
			all := a.seen()
			return all[len(all)-1].query.Get("resourceVersion") == "3"
		}, time.Minute, time.Millisecond)
		r.cancel()
		close(sink.goOn)
		require.NoError(t, r.stop())
		require.Empty(t, r.calls)
	}
}

func TestRequests(t *testing.T) {
	t.Parallel()
	a := newAPIServer(t, behavior{noStream: true}, apiNode("a", 1))
	r := start(t, a.config(), Options{})
	r.requireReplace(overlayNode("a", 1))
	a.put(apiNode("b", 2))
	r.requireUpsert(overlayNode("b", 2))
	for _, request := range a.seen() {
		require.True(t, strings.HasSuffix(request.agent, ") cnikit/overlay/kube"), request.agent)
		require.Equal(t, "application/vnd.kubernetes.protobuf", request.mime)
	}
}
