package plugin_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni/cnitest"
	"github.com/cnikit/cnikit/internal/testenv"
	"github.com/cnikit/cnikit/ipam/plugin"
)

// TestConformance: the plugin keeps the specification, without a warning, as a program with its default
// configuration and in this process with addresses of both families.
func TestConformance(t *testing.T) {
	testenv.NetAdmin(t)
	t.Run("program", func(t *testing.T) {
		target, err := cnitest.KnownTarget(plugin.Type, "")
		require.NoError(t, err)
		target.Path = []string{t.TempDir()}
		program := testenv.Build(t, "github.com/cnikit/cnikit/examples/bridge-vxlan/ipam")
		require.NoError(t, os.Symlink(program, filepath.Join(target.Path[0], plugin.Type)))
		cnitest.Run(t, target, cnitest.Options{Strict: true, Parallel: true})
	})
	t.Run("handler", func(t *testing.T) {
		cnitest.Run(t, cnitest.Target{
			Plugin: plugin.Type, Handler: plugin.Plugin().Handler(),
			Config: []byte(`{
				"type": "cnikit-ipam",
				"ipam": {"type": "cnikit-ipam", "ranges": [[{"subnet": "10.1.0.0/24"}], [{"subnet": "fd00:1::/64"}]], "dataDir": "{{dir}}"}
			}`),
		}, cnitest.Options{Strict: true, Parallel: true})
	})
}
