package kube

import (
	"bytes"
	"encoding/pem"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
)

// These tests look at the whole process, and so do not run beside others.

func TestRunLeavesNoGoroutine(t *testing.T) {
	tests := map[string]struct {
		behavior behavior
		away     bool
	}{
		"while it watches":             {},
		"while it watches after list":  {behavior: behavior{noStream: true}},
		"while the server hangs":       {behavior: behavior{hangs: true}},
		"while the server is away":     {away: true},
		"while the server is too busy": {behavior: behavior{status: map[string]int{"list": 429, "watch": 429}}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			a := newAPIServer(t, tt.behavior, apiNode("a", 1))
			if tt.away {
				a.goAway()
			}
			took := time.Hour
			for try := 0; try < 20 && took >= time.Second; try++ { // a busy machine may take a second for nothing
				took = endOfRun(t, a, tt.behavior.hangs)
			}
			require.Less(t, took, time.Second, "no wait of the client outlasts the context")
			require.Eventually(t, func() bool {
				return !strings.Contains(stacks(), "client-go/") && !strings.Contains(stacks(), "http.(*persistConn)")
			},
				time.Minute, 10*time.Millisecond, "goroutines are left")
		})
	}
}

// endOfRun returns how long a source goes on when its context has ended.
func endOfRun(t *testing.T, a *apiServer, hangs bool) time.Duration {
	t.Helper()
	before := len(a.seen())
	r := start(t, a.config(), Options{})
	if hangs {
		require.Eventually(t, func() bool { return len(a.seen()) > before }, time.Minute, time.Millisecond)
	} else {
		r.next()
	}
	began := time.Now()
	require.NoError(t, r.stop())
	took := time.Since(began)
	require.Empty(t, r.calls, "the end of the context is no error")
	require.NotContains(t, stacks(), "Reflector).RunWithContext", "Run does not wait for it")
	return took
}

func stacks() string {
	buf := make([]byte, 1<<20)
	return string(buf[:runtime.Stack(buf, true)])
}

// lines is a writer that is safe for concurrent use.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func TestLog(t *testing.T) {
	read, write, err := os.Pipe()
	require.NoError(t, err)
	stderr := os.Stderr
	os.Stderr = write
	t.Cleanup(func() { os.Stderr = stderr })

	log := &lines{}
	a := newAPIServer(t, behavior{status: map[string]int{"list": 403, "watch": 403}}, apiNode("a", 1))
	r := start(t, a.config(), Options{Log: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	r.requireError("forbidden")
	require.Eventually(t, func() bool { return strings.Contains(log.String(), "Failed to watch") }, time.Minute, time.Millisecond)
	a.behave(behavior{})
	r.requireReplace(overlayNode("a", 1))
	r.requireGood()
	require.NoError(t, r.stop())

	require.NoError(t, write.Close())
	printed, err := io.ReadAll(read)
	require.NoError(t, err)
	require.Empty(t, string(printed), "the client prints past the log")
	require.Contains(t, log.String(), "logger=client-go")
	for line := range strings.Lines(log.String()) {
		if !strings.Contains(line, "Kubernetes Nodes ") {
			require.Contains(t, line, "level=DEBUG")
		}
	}
	require.Contains(t, log.String(), `level=DEBUG msg="API server warns" warning="nodes will be renamed"`)
	require.Equal(t, 1, strings.Count(log.String(), `level=WARN msg="Kubernetes Nodes cannot be watched"`))
	require.Equal(t, 1, strings.Count(log.String(), `level=INFO msg="Kubernetes Nodes are watched again"`))
}

func TestLogOfClientIsForDebugging(t *testing.T) {
	log := &lines{}
	client := clientLogger(slog.New(slog.NewTextHandler(log, nil)))
	client.Error(io.EOF, "failed")
	client.WithValues("key", "value").WithName("part").Info("told")
	require.Empty(t, log.String())
	client = clientLogger(slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	client.WithValues("key", "value").Error(io.EOF, "failed")
	require.Contains(t, log.String(), "level=DEBUG msg=failed key=value logger=client-go err=EOF")
}

func TestTLS(t *testing.T) {
	a := newAPIServer(t, behavior{}, apiNode("a", 1))
	secure := httptest.NewUnstartedServer(http.HandlerFunc(a.ServeHTTP))
	secure.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	secure.EnableHTTP2 = true
	secure.StartTLS()
	t.Cleanup(func() {
		secure.CloseClientConnections()
		secure.Close()
	})
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw})

	t.Run("good", func(t *testing.T) {
		r := start(t, &rest.Config{Host: secure.URL, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}, Options{})
		r.requireReplace(overlayNode("a", 1))
		a.put(apiNode("a", 2))
		r.requireUpsert(overlayNode("a", 2))
	})
	tests := map[string]struct {
		config *rest.Config
		want   []string
	}{
		"CA is not the cluster's": {&rest.Config{Host: secure.URL}, []string{"x509:", "see that the CA is that of this cluster"}},
		"address is not in the certificate": {&rest.Config{
			Host: secure.URL, TLSClientConfig: rest.TLSClientConfig{CAData: ca, ServerName: "api.invalid"},
		}, []string{"x509:", "api.invalid", "that its certificate names the address"}},
		"https to a plain port": {&rest.Config{Host: "https://" + a.address}, []string{"one side speaks TLS"}},
		"http to a TLS port":    {&rest.Config{Host: "http://" + strings.TrimPrefix(secure.URL, "https://")}, []string{"one side speaks TLS"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := start(t, tt.config, Options{})
			r.requireError(append(tt.want, " nodes at "+tt.config.Host+": ")...)
		})
	}
}

func TestWebPageIsNoAPI(t *testing.T) {
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<html>please log in</html>")
	}))
	t.Cleanup(page.Close)
	r := start(t, &rest.Config{Host: page.URL}, Options{})
	r.requireError("list nodes at "+page.URL, "it is tried again")
}
