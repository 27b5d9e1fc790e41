package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnikit/cnikit/cni/cnitest"
	"github.com/cnikit/cnikit/internal/e2e/cluster"
)

// testUninstall: with the deployment gone and its uninstaller run, a node is as it was
// before it was installed.
func (s *suite) testUninstall(t *testing.T) {
	s.installed(t)
	s.warm(t)
	for _, n := range s.nodes {
		there := s.bare[n].Diff(ground(t, n))
		for _, thing := range []string{"/10-cnikit.conflist ", "/" + bridgePlugin + " ", readyFile + " ", device, "cni0"} {
			require.Contains(t, there, thing, n.Name())
		}
	}
	uninstaller := manifest(t, "uninstall.yaml")
	s.remove(t, s.agent(t)...)
	s.apply(t, uninstaller...)
	await(t, "the uninstaller has run on every node", func() string {
		ds, err := s.apps.DaemonSets(namespace).Get(t.Context(), "cnikit-uninstall", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if ds.Status.NumberReady != int32(len(s.nodes)) {
			return fmt.Sprintf("on %d", ds.Status.NumberReady)
		}
		return ""
	})
	s.remove(t, uninstaller...)
	for _, n := range s.nodes {
		await(t, n.Name()+" is as it was", func() string { return s.bare[n].Diff(ground(t, n)) })
		s.awaitNotReady(t, n.Name(), "cni plugin not initialized")
	}
}

// ground is what an installation adds to: the network of a node, and the files where
// plugins and conflists are looked for. Leases and results are the pods'.
func ground(t *testing.T, n *cluster.Node) cnitest.State {
	t.Helper()
	state, err := n.Namespace().State(n.Path("/etc/cni"), n.Path("/opt/cni"), n.Path("/run/cnikit"))
	require.NoError(t, err)
	for i, line := range state { // the way there goes through a process, which a reboot changes
		state[i] = strings.ReplaceAll(line, n.Path("/"), "/")
	}
	return state
}
