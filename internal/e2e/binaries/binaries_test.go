package binaries

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A killed build needs a process to kill: this test's executable, called with the
// repository and the cache in its environment.
const (
	childRepository = "CNIKIT_TEST_REPOSITORY"
	childCache      = "CNIKIT_TEST_CACHE"
)

func TestMain(m *testing.M) {
	if repository := os.Getenv(childRepository); repository != "" {
		_, err := ensure(context.Background(), repository, []part{hello()}, Options{Dir: os.Getenv(childCache)})
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// hello is a part that builds in no time.
func hello() part {
	return part{
		name: "hello", module: "tiny", packages: []string{"./hello"}, inputs: []string{"tiny"},
		stamps: []string{"main.version=v1"}, aliases: []string{"bonjour"},
	}
}

// newRepository makes the files of hello.
func newRepository(t *testing.T) string {
	t.Helper()
	repository := t.TempDir()
	write(t, repository, "tiny/go.mod", "module tiny\n\ngo 1.25.0\n")
	write(t, repository, "tiny/hello/main.go", `package main

import "os"

var version = "none"

func main() { os.Stdout.WriteString(os.Args[0] + " " + version) }
`)
	return repository
}

func write(t *testing.T, repository, name, content string) {
	t.Helper()
	path := filepath.Join(repository, name)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
}

// buffer is a log that is read while it is written.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
	grew chan struct{}
}

func newBuffer() *buffer { return &buffer{grew: make(chan struct{}, 1)} }

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case b.grew <- struct{}{}:
	default:
	}
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// await returns when the log contains the text.
func (b *buffer) await(t *testing.T, text string) {
	t.Helper()
	limit := time.After(time.Minute)
	for !strings.Contains(b.String(), text) {
		select {
		case <-b.grew:
		case <-limit:
			require.FailNow(t, "not said in a minute", "%q in %q", text, b)
		}
	}
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func TestEnsure(t *testing.T) {
	repository, dir := newRepository(t), t.TempDir()
	log := newBuffer()
	set, err := ensure(t.Context(), repository, []part{hello()}, Options{Log: log, Dir: dir})
	require.NoError(t, err)
	for _, name := range []string{"hello", "hello/hello", "hello/bonjour"} {
		out, err := exec.Command(set.Path(name)).Output()
		require.NoError(t, err)
		assert.Equal(t, set.Path(name)+" v1", string(out))
	}
	assert.Regexp(t, `^hello: building into \S+/hello-[0-9a-f]{16}\nhello: built in \d+s\n$`, log.String())
	assert.Len(t, names(t, dir), 2, "the part and the lock, nothing temporary")

	t.Run("what is there is not built", func(t *testing.T) {
		log := newBuffer()
		began := time.Now()
		again, err := ensure(t.Context(), repository, []part{hello()}, Options{Log: log, Dir: dir})
		t.Logf("found in %v", time.Since(began))
		require.NoError(t, err)
		assert.Equal(t, set, again)
		assert.Empty(t, log.String())
	})
	t.Run("what is incomplete is built anew", func(t *testing.T) {
		require.NoError(t, os.Remove(set.Path("hello/bonjour")))
		log := newBuffer()
		_, err := ensure(t.Context(), repository, []part{hello()}, Options{Log: log, Dir: dir})
		require.NoError(t, err)
		assert.FileExists(t, set.Path("hello/bonjour"))
		assert.Contains(t, log.String(), "built")
	})
	t.Run("no such part", func(t *testing.T) {
		assert.PanicsWithValue(t, `binaries: no part of the set has "hallo"`, func() { set.Path("hallo") })
	})
}

func TestFailedBuildSaysWhyAndLeavesNothing(t *testing.T) {
	repository, dir := newRepository(t), t.TempDir()
	write(t, repository, "tiny/hello/more.go", "package main\n\nvar wrong int = version\n")
	set, err := ensure(t.Context(), repository, []part{hello()}, Options{Dir: dir})
	require.ErrorContains(t, err, "build hello: go build: exit status 1")
	require.ErrorContains(t, err, "cannot use version")
	assert.Nil(t, set)
	assert.Equal(t, []string{lockName}, names(t, dir))
}

func TestSecondCallerTakesWhatTheFirstBuilt(t *testing.T) {
	repository, dir := newRepository(t), t.TempDir()
	held, err := lock(t.Context(), filepath.Join(dir, lockName), io.Discard)
	require.NoError(t, err)
	log, result := newBuffer(), make(chan error, 1)
	go func() {
		_, err := ensure(t.Context(), repository, []part{hello()}, Options{Log: log, Dir: dir})
		result <- err
	}()
	log.await(t, fmt.Sprintf("waiting for process %d", os.Getpid()))
	first := &cache{repository: repository, dir: dir, log: io.Discard}
	place, found, err := first.find(t.Context(), hello())
	require.NoError(t, err)
	require.False(t, found)
	require.NoError(t, first.add(t.Context(), hello(), place))
	require.NoError(t, held.Close())
	require.NoError(t, <-result)
	assert.NotContains(t, log.String(), "building into")
	assert.Equal(t, 1, strings.Count(log.String(), "waiting"))
}

func TestWaitingEndsWithTheContext(t *testing.T) {
	repository, dir := newRepository(t), t.TempDir()
	held, err := lock(t.Context(), filepath.Join(dir, lockName), io.Discard)
	require.NoError(t, err)
	defer held.Close()
	ctx, cancel := context.WithCancel(t.Context())
	log := newBuffer()
	go func() {
		log.await(t, "waiting for")
		cancel()
	}()
	_, err = ensure(ctx, repository, []part{hello()}, Options{Log: log, Dir: dir})
	require.ErrorIs(t, err, context.Canceled)
}

func TestPrune(t *testing.T) {
	repository, dir := newRepository(t), t.TempDir()
	options := Options{Dir: dir}
	set, err := ensure(t.Context(), repository, []part{hello()}, options)
	require.NoError(t, err)
	first := filepath.Base(filepath.Dir(set.Path("hello")))
	age := func(name string) {
		old := time.Now().Add(-keepUnused - time.Hour)
		require.NoError(t, os.Chtimes(filepath.Join(dir, name), old, old))
	}
	for _, name := range []string{"kube-0123456789abcdef", "kube-fedcba9876543210", "other"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o755))
	}
	age("kube-0123456789abcdef")
	age("other")
	age(first)
	_, err = ensure(t.Context(), repository, []part{hello()}, options) // a use
	require.NoError(t, err)

	changed := hello()
	changed.stamps = []string{"main.version=v2"}
	set, err = ensure(t.Context(), repository, []part{changed}, options)
	require.NoError(t, err)
	second := filepath.Base(filepath.Dir(set.Path("hello")))
	assert.ElementsMatch(t, []string{first, second, "kube-fedcba9876543210", "other", lockName}, names(t, dir))
}

func TestCacheDir(t *testing.T) {
	t.Setenv("CNIKIT_E2E_CACHE", "")
	t.Setenv("XDG_CACHE_HOME", "/u")
	is := func(want, option string) {
		t.Helper()
		got, err := cacheDir(option, "/r")
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	is("/u/cnikit/e2e", "")
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("HOME", "")
	is("/r/.cache/e2e", "")
	t.Setenv("CNIKIT_E2E_CACHE", "/e")
	is("/e", "")
	is("/o", "/o")
	here, err := os.Getwd()
	require.NoError(t, err)
	is(filepath.Join(here, "o"), "o")
}
