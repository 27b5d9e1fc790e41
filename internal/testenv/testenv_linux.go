package testenv

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/cnikit/cnikit/internal/netns"
)

// Root says that the test makes network namespaces that are mounted at paths, and
// configures them: root, or a user namespace with a mount namespace of its own.
func Root(t testing.TB) {
	t.Helper()
	kernelTier(t)
	dir, err := os.MkdirTemp("", "cnikit-probe-")
	if errors.Is(err, fs.ErrPermission) { // whose directory it is may be a part of what is lacking
		unmet(t, "the test needs root (or unshare -rnm): %v", err)
		return
	}
	if err != nil {
		t.Fatalf("make directory for probing: %v", err)
	}
	defer func() { _ = os.Remove(dir) }()
	path := filepath.Join(dir, "ns")
	ns, err := netns.Create(path)
	if err != nil {
		unmet(t, "the test needs root (or unshare -rnm): %v", err)
		return
	}
	_ = ns.Close()
	if err := netns.Remove(path); err != nil {
		t.Fatalf("clean up after probing: %v", err)
	}
}

// NetAdmin says that the test makes anonymous network namespaces and configures
// them: root, or a user namespace ("unshare -rn go test").
func NetAdmin(t testing.TB) {
	t.Helper()
	kernelTier(t)
	ns, err := netns.New()
	if err != nil {
		unmet(t, "the test needs root or a user namespace (unshare -rn): %v", err)
		return
	}
	_ = ns.Close()
}
