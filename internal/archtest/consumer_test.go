package archtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestImporterOfCNIPaysForTheTypesAlone builds somebody else's plugin and reads from
// the executable which modules are in it.
func TestImporterOfCNIPaysForTheTypesAlone(t *testing.T) {
	linked := modulesIn(t, buildImporter(t, modulePath+"/cni"))
	assert.Equal(t, []string{modulePath, "github.com/containernetworking/cni"}, linked)
}

// The check above would pass if modules went unread.
func TestImporterOfNetifPaysForNetlink(t *testing.T) {
	assert.Contains(t, modulesIn(t, buildImporter(t, modulePath+"/cni/netif")), netlink)
}

// buildImporter builds a program of another module that imports a package of ours.
func buildImporter(t *testing.T, importPath string) string {
	t.Helper()
	dir := t.TempDir()
	write := func(name, content string) {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	sums, err := os.ReadFile(filepath.Join(root(t), "go.sum"))
	require.NoError(t, err)
	write("go.mod", "module importer.example\n\ngo "+goLine+"\n\nrequire "+modulePath+" v0.0.0\n\nreplace "+modulePath+" => "+root(t)+"\n")
	write("go.sum", string(sums))
	write("main.go", "package main\n\nimport _ \""+importPath+"\"\n\nfunc main() {}\n")
	build := exec.Command("go", "build", "-mod=mod", "-o", "importer")
	build.Dir = dir
	build.Env = append(build.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return filepath.Join(dir, "importer")
}

// modulesIn returns the modules that an executable is made of, sorted.
func modulesIn(t *testing.T, executable string) []string {
	t.Helper()
	out, err := exec.Command("go", "version", "-m", executable).Output()
	require.NoError(t, err)
	var modules []string
	for line := range strings.Lines(string(out)) {
		if fields := strings.Fields(line); len(fields) >= 2 && fields[0] == "dep" {
			modules = append(modules, fields[1])
		}
	}
	slices.Sort(modules)
	return modules
}
