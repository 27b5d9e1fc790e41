package testenv

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Build builds a main package of this module without cgo and returns the path of
// the executable. pkg is an import path, or relative to the test's directory. The
// executable is kept in the user's cache directory, where the go command sees for
// itself what is up to date: only the first build of a version links, whichever test
// process asks, and nobody sees a program that is being written.
func Build(t testing.TB, pkg string) string {
	t.Helper()
	dir, done := buildDir(t, pkg)
	defer done()
	build := exec.Command(Tool(t, "go"), "build", "-o", dir+string(filepath.Separator), pkg)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", pkg, err, out)
	}
	built, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(built) != 1 {
		t.Fatalf("build %s: want one executable in %s, have %q (%v)", pkg, dir, built, err)
	}
	return built[0]
}

// Peers builds programs of other projects, which the module internal/peers pins, without
// cgo, and returns the directory in which they are under their own names. They are kept
// as [Build] keeps what it builds.
func Peers(t testing.TB, pkgs ...string) string {
	t.Helper()
	dir, done := buildDir(t, "peers "+strings.Join(pkgs, " "))
	defer done()
	args := append([]string{"build", "-C", filepath.Join(moduleRoot(t), "internal", "peers"), "-o", dir + string(filepath.Separator)}, pkgs...)
	build := exec.Command(Tool(t, "go"), args...)
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOTOOLCHAIN=auto") // they may need a newer Go
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build %s: %v\n%s", strings.Join(pkgs, " "), err, out)
	}
	return dir
}

// moduleRoot is the directory above the test's that has the pinned programs.
func moduleRoot(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "internal", "peers", "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no directory above the test's has internal/peers")
		}
		dir = filepath.Dir(dir)
	}
}

// buildDir is the directory that holds the executable of pkg and nothing else. It is the
// caller's alone until done: the go command makes temporary files beside the executable,
// and of two that link at once the second replaces what the first has made, which may run
// by then.
func buildDir(t testing.TB, pkg string) (dir string, done func()) {
	t.Helper()
	cwd, err := os.Getwd()
	if err != nil {
		t.Fatalf("build %s: %v", pkg, err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	key := sha256.Sum256([]byte(cwd + "\x00" + pkg))
	dir = filepath.Join(cache, "cnikit", "testenv", hex.EncodeToString(key[:8]))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatalf("build %s: %v", pkg, err)
	}
	if done, err = lock(dir); err != nil {
		t.Fatalf("build %s: %v", pkg, err)
	}
	return dir, done
}
