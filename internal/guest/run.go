package guest

import (
	"bytes"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/cnikit/cnikit/internal/guest/kernels"
	"github.com/cnikit/cnikit/internal/testenv"
)

// Kernels returns the kernels that tests of several kernels run on: 6.1 and 6.12, the
// long-lived ones of Debian's stable releases, and when CNIKIT_SCALE is above 1 ("make
// soak") 6.18, the next long-lived one, and the newest that there is.
func Kernels(t testing.TB) []string {
	t.Helper()
	lines := []string{"6.1", "6.12"}
	if testenv.Scale(t, 1) > 1 {
		lines = append(lines, "6.18", kernels.Newest)
	}
	return lines
}

// Run boots a kernel, runs the program to its end and returns what came of it. A program
// that fails is no error: see [Result.Status]. A guest that does not report is an [Error].
// What is missing on this machine skips the test, or fails it in CI.
func Run(t testing.TB, o Options) (*Result, error) {
	t.Helper()
	o = o.withDefaults()
	m := &machine{qemu: testenv.Guest(t), kernel: find(t, o.Kernel), dir: t.TempDir(), options: o}
	initProgram := testenv.Build(t, "github.com/cnikit/cnikit/internal/guest/init")
	if err := writeImage(m.path(initrdFile), m.kernel, initProgram, o); err != nil {
		return nil, fmt.Errorf("make the guest's file system: %w", err)
	}
	return m.run(t.Context())
}

func find(t testing.TB, pattern string) *kernels.Kernel {
	t.Helper()
	if pattern == "" {
		t.Fatal("boot a guest: no kernel: set Options.Kernel to a line or a version, such as 6.12")
	}
	dir, err := kernels.Dir()
	if err != nil {
		t.Fatal(err)
	}
	kernel, err := kernels.Find(dir, pattern)
	testenv.Need(t, "another kernel", err)
	return kernel
}

// Test runs tests of the package under test in a guest, and fails when one of them does,
// or when none matches the pattern, which is as for go test -run. Without [Options.Program]
// the package's test binary is built. [Options.Args] may have more flags for it.
func Test(t *testing.T, pattern string, o Options) *Result {
	t.Helper()
	testenv.Guest(t)
	if o.Program == "" {
		o.Program = testenv.BuildTest(t)
	}
	// A test that ends the process with status 0 has not passed: go test says the same.
	o.Args = append([]string{"-test.v", "-test.paniconexit0", "-test.run=" + pattern}, o.Args...)
	result, err := Run(t, o)
	if err != nil {
		t.Fatal(err)
	}
	if result.Status != 0 {
		t.Fatalf("exit status %d on kernel %s\n%s\nthe console's last lines:\n%s", result.Status, result.Release, result.Output, lastLines(result.Console))
	}
	if bytes.Contains(result.Output, []byte("testing: warning: no tests to run\nPASS\n")) {
		t.Fatalf("no test of %s matches %q", filepath.Base(o.Program), pattern)
	}
	t.Logf("on kernel %s:\n%s", result.Release, result.Output)
	return result
}
