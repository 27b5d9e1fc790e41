package bridge_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni/bridge"
	"github.com/cnikit/cnikit/cni/cnitest"
	"github.com/cnikit/cnikit/internal/testenv"
)

// TestConformance: the plugin keeps the specification, as a program with its default
// configuration and in this process with addresses of both families.
func TestConformance(t *testing.T) {
	testenv.Kernel(t, testenv.Bridge, testenv.Veth)
	dir := t.TempDir()
	for name, pkg := range map[string]string{"cnikit-bridge": "bridge", "cnikit-ipam": "ipam"} {
		program := testenv.Build(t, "github.com/cnikit/cnikit/examples/bridge-vxlan/"+pkg)
		require.NoError(t, os.Symlink(program, filepath.Join(dir, name)))
	}
	t.Run("program", func(t *testing.T) {
		t.Parallel()
		target, err := cnitest.KnownTarget("cnikit-bridge", "cnikit-ipam")
		require.NoError(t, err)
		target.Path = []string{dir}
		cnitest.Run(t, target, cnitest.Options{Parallel: true, Kills: testenv.Scale(t, 8)})
	})
	t.Run("handler", func(t *testing.T) {
		t.Parallel()
		cnitest.Run(t, cnitest.Target{
			Plugin: "cnikit-bridge", Handler: bridge.Plugin().Handler(), Path: []string{dir},
			Config: []byte(`{
				"type": "cnikit-bridge", "isDefaultGateway": true, "hairpinMode": true, "mtu": 1400,
				"ipam": {"type": "cnikit-ipam", "ranges": [[{"subnet": "10.1.0.0/24"}], [{"subnet": "fd00:1::/64"}]], "dataDir": "{{dir}}"}
			}`),
		}, cnitest.Options{Parallel: true})
	})
}
