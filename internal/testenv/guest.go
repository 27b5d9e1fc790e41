package testenv

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// Guest says that the test runs programs on another kernel, in an emulated machine
// (package guest), and returns the path of the emulator. With -short such tests are
// skipped in any case.
func Guest(t testing.TB) string {
	t.Helper()
	kernelTier(t)
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		unmet(t, "the test runs guests, which are amd64 on Linux on amd64 alone")
		return ""
	}
	return Tool(t, "qemu-system-x86_64")
}

// InGuest says that the test makes sense in a guest alone. Elsewhere it is skipped, with
// CI=true, too: the test that boots the guest runs it, and says what is missing.
func InGuest(t testing.TB) {
	t.Helper()
	if os.Getenv("CNIKIT_GUEST") == "" {
		t.Skip("the test runs in a guest, which another test boots")
	}
}

// Need says that the test needs what a fixture has looked for: err is what it found out,
// nil when all is there.
func Need(t testing.TB, what string, err error) {
	t.Helper()
	if err != nil {
		unmet(t, "the test needs %s: %v", what, err)
	}
}

// BuildTest builds the test binary of the package under test without cgo, so that it is
// static and runs in a guest, and returns its path. It is kept as [Build] keeps what it
// builds.
func BuildTest(t testing.TB) string {
	t.Helper()
	dir, done := buildDir(t, "test binary")
	defer done()
	path := filepath.Join(dir, "tests")
	build := exec.Command(Tool(t, "go"), "test", "-c", "-o", path, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	if err == nil {
		_, err = os.Stat(path)
		if errors.Is(err, os.ErrNotExist) {
			t.Fatal("build the test binary: the package has no tests")
		}
	}
	if err != nil {
		t.Fatalf("build the test binary: %v\n%s", err, out)
	}
	return path
}
