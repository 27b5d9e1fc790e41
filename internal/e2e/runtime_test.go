package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/internal/e2e/cluster"
)

// testCalls looks at what the runtimes really sent, in all scenarios, and how the plugin
// took it: for a container that is gone a DEL with the namespace and another one without
// it, CNI_ARGS in more than one order, and the loopback plugin running at the same time.
func (s *suite) testCalls(t *testing.T) {
	s.installed(t)
	for _, n := range s.nodes {
		// The kubelet removes the sandboxes of deleted pods once a minute.
		await(t, n.Name()+" has removed sandboxes", func() string { return removed(s.calls(t, n, bridgePlugin, "DEL")) })
		calls := s.calls(t, n, bridgePlugin, "")
		for _, c := range calls {
			if c.Command == "DEL" {
				assert.Zero(t, c.ExitCode, "%s: DEL of %s in %q: %s", n.Name(), c.ContainerID, c.NetNS, c.Stdout)
			}
		}
		assert.Greater(t, len(orders(t, calls)), 1, "%s: CNI_ARGS came in one order only", n.Name())
		assert.NotZero(t, parallel(s.calls(t, n, "loopback", "ADD"), calls), "%s: no loopback ADD beside one of ours", n.Name())
	}
}

// removed says what is missing for a container whose DEL came with its namespace, and
// then again without one.
func removed(dels []cluster.Call) string {
	first := map[string]bool{}
	for _, c := range dels {
		if c.NetNS == "" && first[c.ContainerID] {
			return ""
		}
		first[c.ContainerID] = first[c.ContainerID] || c.NetNS != ""
	}
	return fmt.Sprintf("none of %d", len(first))
}

// orders are the different orders of the keys in CNI_ARGS.
func orders(t *testing.T, calls []cluster.Call) map[string]bool {
	t.Helper()
	seen := map[string]bool{}
	for _, c := range calls {
		if c.Command != "ADD" {
			continue
		}
		var keys []string
		for pair := range strings.SplitSeq(c.Args, ";") {
			key, _, _ := strings.Cut(pair, "=")
			keys = append(keys, key)
		}
		require.ElementsMatch(t, []string{"IgnoreUnknown", "K8S_POD_NAMESPACE", "K8S_POD_NAME", "K8S_POD_INFRA_CONTAINER_ID", "K8S_POD_UID"}, keys)
		seen[strings.Join(keys, ";")] = true
	}
	return seen
}

// parallel counts calls of a for a container that overlap one of b for the same.
func parallel(a, b []cluster.Call) int {
	count := 0
	for _, x := range a {
		if slices.ContainsFunc(b, func(y cluster.Call) bool {
			return y.Command == "ADD" && x.ContainerID == y.ContainerID && x.Start.Before(y.End) && y.Start.Before(x.End)
		}) {
			count++
		}
	}
	return count
}
