package peers_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/internal/guest"
	"github.com/cnikit/cnikit/internal/testenv"
)

// guestModules are what the kernel that a suite runs on here may lack.
var guestModules = []string{"8021q", "bridge", "dummy", "ipvlan", "macvlan", "veth"}

// passInGuest runs the specs that need another kernel on one that has what they need.
func (b bench) passInGuest(t *testing.T, s suite, names []string) {
	files := map[string][]byte{}
	for path, program := range map[string]string{
		"/plugins/host-local": filepath.Join(b.dir, "ours/host-local"),
		"/plugins/go":         testenv.Build(t, "./testdata/go"),
	} {
		data, err := os.ReadFile(program)
		require.NoError(t, err)
		files[path] = data
	}
	result, err := guest.Run(t, guest.Options{
		Kernel:  "6.12",
		Program: filepath.Join(b.binaries, filepath.Base(s.pkg)+".test"),
		Args:    append(selection(t, s, names), "-ginkgo.no-color", "-ginkgo.silence-skips", "-ginkgo.json-report=/out/report.json"),
		Env:     []string{"PATH=/plugins", "ACK_GINKGO_DEPRECATIONS=2.34.0"},
		Files:   files, Modules: guestModules, CPUs: 2, Timeout: 45 * time.Minute,
	})
	require.NoError(t, err)
	require.Contains(t, result.Files, "report.json", "%s", result.Output)
	r := parseReport(t, result.Files["report.json"])
	for _, name := range names {
		assert.True(t, r[name].passed(), "in a guest: %s\n%s", name, r[name].Failure.Message)
	}
	t.Logf("%d specs pass in a guest with kernel %s", len(r)-len(r.failed()), result.Release)
}
