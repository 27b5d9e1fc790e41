package e2e

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// testReferenceBridge: a cluster takes another bridge plugin with our overlay.
func (s *suite) testReferenceBridge(t *testing.T) {
	s.installed(t)
	s.warm(t) // so that the bridge has our mark, and uninstall removes it
	template := manifest(t, "reference-bridge.yaml")
	s.apply(t, template...)
	s.restartAgents(t)
	pods := s.runPods(t, "reference", s.nodes...)
	requireAllPairs(t, pods...)
	for _, n := range s.nodes {
		for _, plugin := range []string{"bridge", "host-local"} {
			assert.NotEmpty(t, s.calls(t, n, plugin, "ADD"), "%s: %s attached no pod", n.Name(), plugin)
		}
	}
	for _, p := range pods {
		s.deletePods(t, p.name) // by the plugins that attached it
	}
	s.remove(t, template...)
	s.restartAgents(t)
}

// restartAgents has new agents read what is mounted into them.
func (s *suite) restartAgents(t *testing.T) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"template": map[string]any{"metadata": map[string]any{
		"annotations": map[string]string{"cnikit.invalid/restarted": time.Now().Format(time.RFC3339Nano)},
	}}}})
	require.NoError(t, err)
	_, err = s.apps.DaemonSets(namespace).Patch(t.Context(), daemonSet, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	require.NoError(t, err)
	s.settled(t)
}
