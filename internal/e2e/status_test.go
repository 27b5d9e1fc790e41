package e2e

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cnikit/cnikit/internal/e2e/cluster"
)

const (
	device    = "cnikit.5000"
	readyFile = "/run/cnikit/status.json"
)

// onlyDaemonSet is what runs of the deployment.
func (s *suite) onlyDaemonSet(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	for _, o := range s.agent(t) {
		if o.GetKind() == "DaemonSet" {
			return o
		}
	}
	require.Fail(t, "the deployment has no DaemonSet")
	return nil
}

// awaitNotReady waits until a node's condition shows a message with these words.
func (s *suite) awaitNotReady(t *testing.T, node string, words ...string) {
	t.Helper()
	await(t, fmt.Sprintf("%s is NotReady with %q", node, words), func() string {
		c := s.ready(t, node)
		for _, w := range words {
			if c.Status != core.ConditionFalse || !strings.Contains(c.Message, w) {
				return fmt.Sprintf("%s: %s", c.Status, c.Message)
			}
		}
		return ""
	})
}

// asks waits until the runtimes of nodes got two more good answers to STATUS each.
func (s *suite) asks(t *testing.T, nodes ...*cluster.Node) {
	t.Helper()
	from := time.Now()
	for _, n := range nodes {
		await(t, n.Name()+" asked for STATUS twice", func() string {
			if good := s.good(t, n, from); good < 2 {
				return fmt.Sprintf("%d times", good)
			}
			return ""
		})
		s.requireNotFalse(t, n)
	}
}

// requireNotFalse checks that nobody says that a node is not Ready. That nobody has heard of
// it for a while is another matter.
func (s *suite) requireNotFalse(t *testing.T, n *cluster.Node) {
	t.Helper()
	c := s.ready(t, n.Name())
	require.NotEqual(t, core.ConditionFalse, c.Status, "%s: %s", n.Name(), c.Message)
}

// good counts the answers to STATUS from a time on, all of which must be good.
func (s *suite) good(t *testing.T, n *cluster.Node, from time.Time) int {
	t.Helper()
	good := 0
	for _, c := range s.calls(t, n, bridgePlugin, "STATUS") {
		if c.Start.After(from) {
			require.Zero(t, c.ExitCode, "STATUS of %s: %s", n.Name(), c.Stdout)
			good++
		}
	}
	return good
}

// withoutAgent makes sure that no agent runs, on nodes where one has run.
func (s *suite) withoutAgent(t *testing.T) {
	t.Helper()
	ds := s.onlyDaemonSet(t)
	if _, err := s.resource(ds).Get(t.Context(), ds.GetName(), metav1.GetOptions{}); apierrors.IsNotFound(err) {
		if _, err := os.Stat(s.nodes[0].Path(readyFile)); err == nil {
			return
		}
	}
	s.installed(t)
	s.remove(t, ds)
}

func (s *suite) testAgentAbsent(t *testing.T) {
	s.withoutAgent(t)
	s.asks(t, s.nodes[1:]...)
	requireAllPairs(t, s.runPods(t, "alone", s.nodes...)...)
}

// testDataPathLost: with no agent to mend it or to say so, the plugin does.
func (s *suite) testDataPathLost(t *testing.T) {
	s.withoutAgent(t)
	from := time.Now()
	n := s.nodes[1]
	s.ip(t, n, "link", "set", device, "down")
	s.awaitNotReady(t, n.Name(), device, "down")
	s.ip(t, n, "link", "del", device)
	s.awaitNotReady(t, n.Name(), device, "does not exist")
	require.NoError(t, os.Remove(n.Path(readyFile)))
	s.awaitNotReady(t, n.Name(), readyFile, "reported")
	require.NotZero(t, s.good(t, s.nodes[2], from), "the other node lost nothing")
	s.requireNotFalse(t, s.nodes[2])
}

// testAgentReason: what keeps the agent from its work is what an operator reads at the Node.
func (s *suite) testAgentReason(t *testing.T) {
	s.withoutAgent(t)
	n := s.nodes[1]
	_ = n.Namespace().Command(t.Context(), "ip", "link", "del", device).Run() // it may have none
	s.ip(t, n, "link", "add", "foreign", "type", "vxlan", "id", "5000", "dstport", "4789", "dev", "eth0")
	s.apply(t, s.agent(t)...)
	s.awaitNotReady(t, n.Name(), "foreign")
	s.ip(t, n, "link", "del", "foreign")
	s.settled(t)
}

// ip runs ip(8) in the network namespace of a node.
func (s *suite) ip(t *testing.T, n *cluster.Node, args ...string) {
	t.Helper()
	out, err := n.Namespace().Command(t.Context(), "ip", args...).CombinedOutput()
	require.NoError(t, err, "ip %v: %s", args, out)
}
