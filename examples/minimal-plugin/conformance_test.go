package main

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/cnikit/cnikit/cni/cnitest"
)

const conf = `{"name": "net", "type": "minimal-plugin", "dns": {"nameservers": ["192.0.2.53"], "search": ["example.org"]}}`

// The plugin keeps the specification, in the test's own process.
func TestConformance(t *testing.T) {
	cnitest.Run(t, cnitest.Target{
		Handler: plugin().Handler(), Config: []byte(conf), Profile: cnitest.ProfileChained,
	}, cnitest.Options{})
}

// So does the executable, which is also killed, and called with a broken environment.
func TestExecutable(t *testing.T) {
	cnitest.Run(t, cnitest.Target{
		Path: []string{build(t)}, Config: []byte(conf), Profile: cnitest.ProfileChained,
	}, cnitest.Options{})
}

// build returns the directory that has the plugin under the name of its type.
func build(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, "minimal-plugin"), ".")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build plugin: %v\n%s", err, out)
	}
	return dir
}
