package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	core "k8s.io/api/core/v1"

	"github.com/cnikit/cnikit/internal/e2e/cluster"
)

const bridgePlugin = "cnikit-bridge"

// testInstall: a node without a network says so and becomes Ready through the plugin's
// STATUS, as far as its runtime asks.
func (s *suite) testInstall(t *testing.T) {
	for _, n := range s.nodes {
		await(t, n.Name()+" says that there is no network", func() string {
			c := s.ready(t, n.Name())
			if c.Status == core.ConditionFalse && strings.Contains(c.Message, "cni plugin not initialized") {
				return ""
			}
			return fmt.Sprintf("%s: %s", c.Status, c.Message)
		})
	}
	began := time.Now()
	s.installed(t)
	t.Logf("all nodes Ready %v after the deployment", time.Since(began).Round(10*time.Millisecond))
	for _, n := range s.nodes {
		status := s.calls(t, n, bridgePlugin, "STATUS")
		if n.Containerd() == cluster.Containerd16 {
			assert.Empty(t, status, "%s: CNI 1.0.0 has no STATUS", n.Name())
			continue
		}
		require.NotEmpty(t, status, n.Name())
		good := slices.IndexFunc(status, func(c cluster.Call) bool { return c.ExitCode == 0 })
		require.GreaterOrEqual(t, good, 0, "%s: no STATUS was good", n.Name())
		assert.Equal(t, "1.1.0", config(t, status[good])["cniVersion"])
	}
}

// calls returns the recorded calls of a plugin; an empty command is any.
func (s *suite) calls(t *testing.T, n *cluster.Node, plugin, command string) []cluster.Call {
	t.Helper()
	all, err := n.Calls(t.Context())
	require.NoError(t, err)
	return slices.DeleteFunc(all, func(c cluster.Call) bool {
		return c.Plugin != plugin || command != "" && c.Command != command
	})
}

func config(t *testing.T, c cluster.Call) map[string]any {
	t.Helper()
	var m map[string]any
	require.NoError(t, json.Unmarshal(c.Config, &m))
	return m
}
