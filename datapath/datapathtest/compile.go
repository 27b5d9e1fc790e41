package datapathtest

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/cilium/ebpf"

	"github.com/cnikit/cnikit/internal/testenv"
)

// Compile compiles a C file with clang, with BTF, and reads the object. Flags are added to clang's. Without clang the test is skipped.
func Compile(t testing.TB, source string, flags ...string) *ebpf.CollectionSpec {
	t.Helper()
	object := filepath.Join(t.TempDir(), filepath.Base(source)+".o")
	args := append([]string{"-target", "bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-Werror", "-c", source, "-o", object}, flags...)
	if out, err := exec.CommandContext(t.Context(), testenv.Tool(t, "clang"), args...).CombinedOutput(); err != nil {
		t.Fatalf("compile %s: %v\n%s", source, err, out)
	}
	spec, err := ebpf.LoadCollectionSpec(object)
	if err != nil {
		t.Fatalf("compile %s: read object: %v", source, err)
	}
	return spec
}
