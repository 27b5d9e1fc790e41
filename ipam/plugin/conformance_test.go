package plugin_test

import (
	"testing"

	"github.com/cnikit/cnikit/cni/cnitest"
	"github.com/cnikit/cnikit/internal/testenv"
	"github.com/cnikit/cnikit/ipam/plugin"
)

// TestConformance examines the plugin as a Handler in this process; what kills or
// starves a process is examined with the executable.
func TestConformance(t *testing.T) {
	testenv.NetAdmin(t)
	cnitest.Run(t, cnitest.Target{Handler: plugin.Plugin().Handler(), Config: []byte(`{
		"type": "cnikit-ipam",
		"ipam": {"type": "cnikit-ipam", "dataDir": "{{dir}}", "ranges": [[{"subnet": "10.1.0.0/24"}]]}
	}`)}, cnitest.Options{Skip: "^faults/"})
}
