package peers_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/internal/testenv"
)

// buildOurs builds our IPAM executable and returns its path.
func buildOurs(t testing.TB) string {
	t.Helper()
	path := filepath.Join(cacheDir(t, "ours"), "host-local")
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	command(t, "go", "build", "-C", root, "-o", path, "./examples/bridge-vxlan/ipam")
	return path
}

// cacheDir returns a directory that outlives the test, so that the go command finds what
// it need not link again.
func cacheDir(t testing.TB, name string) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	dir := filepath.Join(cache, "cnikit", "peers", name)
	require.NoError(t, os.MkdirAll(dir, 0o700))
	return dir
}

// command runs a program to build with and returns its trimmed output.
func command(t testing.TB, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), testenv.Tool(t, name), args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOTOOLCHAIN=auto", "GOFLAGS=-buildvcs=false")
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, exit.Stderr)
	}
	require.NoError(t, err)
	return strings.TrimSpace(string(out))
}
