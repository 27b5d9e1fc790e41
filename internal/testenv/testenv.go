package testenv

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// unmet ends the test: skipped locally, failed with CI=true.
func unmet(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("with CI=true every test must run, but: "+format, args...)
	}
	t.Skipf(format, args...)
}

// kernelTier skips a test of the kernel tier when only the unit tier is asked for
// ("go test -short"), with CI=true, too.
func kernelTier(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("the kernel tier is not asked for (-short)")
	}
}

// Tool returns the path of an executable that the test runs, from PATH or the
// system directories that an ordinary user's PATH may lack.
func Tool(t testing.TB, name string) string {
	t.Helper()
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	for _, dir := range []string{"/usr/local/sbin", "/usr/sbin", "/sbin"} {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path
		}
	}
	unmet(t, "the test needs the executable %q, which is not installed", name)
	return ""
}
