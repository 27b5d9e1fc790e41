package cluster_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/cnikit/cnikit/internal/e2e/cluster"
)

// limit is for what takes seconds on an idle machine.
const limit = 3 * time.Minute

// env is the cluster that the subtests share, in their order.
type env struct {
	*cluster.Cluster
	core corev1.CoreV1Interface
}

// configure gives the node a network with the reference plugins, as an installer does:
// a file that appears in one step.
func (e *env) configure(t *testing.T, n *cluster.Node) {
	t.Helper()
	o, err := e.core.Nodes().Get(t.Context(), n.Name(), metav1.GetOptions{})
	require.NoError(t, err)
	file := n.Path("/etc/cni/net.d/10-test.conflist")
	require.NoError(t, os.WriteFile(file+".new", fmt.Appendf(nil, `{"cniVersion":"1.0.0","name":"test","plugins":[
		{"type":"bridge","isGateway":true,"ipam":{"type":"host-local","ranges":[[{"subnet":%q}],[{"subnet":%q}]]}}]}`,
		o.Spec.PodCIDRs[0], o.Spec.PodCIDRs[1]), 0o644))
	require.NoError(t, os.Rename(file+".new", file))
	e.awaitReady(t, n, core.ConditionTrue)
}

func (e *env) run(t *testing.T, n *cluster.Node, name string) {
	t.Helper()
	var now int64
	e.await(t, "the service account of pods exists", func() string {
		_, err := e.core.Pods("default").Create(t.Context(), &core.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: core.PodSpec{
				NodeName: n.Name(), TerminationGracePeriodSeconds: &now, DNSPolicy: core.DNSDefault,
				Tolerations: []core.Toleration{{Operator: core.TolerationOpExists}},
				Containers:  []core.Container{{Name: "pause", Image: cluster.PauseImage, ImagePullPolicy: core.PullNever}},
			},
		}, metav1.CreateOptions{})
		if err != nil {
			return err.Error()
		}
		return ""
	})
}

// running waits until a pod runs.
func (e *env) running(t *testing.T, name string) *core.Pod {
	t.Helper()
	var pod *core.Pod
	e.await(t, name+" runs", func() string {
		o, err := e.core.Pods("default").Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		pod = o
		return unless(o.Status.Phase == core.PodRunning && len(o.Status.PodIPs) == 2, fmt.Sprint(o.Status))
	})
	return pod
}

func (e *env) ready(t *testing.T, n *cluster.Node) core.NodeCondition {
	t.Helper()
	o, err := e.core.Nodes().Get(t.Context(), n.Name(), metav1.GetOptions{})
	require.NoError(t, err)
	for _, c := range o.Status.Conditions {
		if c.Type == core.NodeReady {
			return c
		}
	}
	return core.NodeCondition{}
}

func (e *env) awaitReady(t *testing.T, n *cluster.Node, want core.ConditionStatus) {
	t.Helper()
	e.await(t, fmt.Sprintf("Ready of %s is %s", n.Name(), want), func() string {
		c := e.ready(t, n)
		return unless(c.Status == want, fmt.Sprintf("%s: %s", c.Status, c.Message))
	})
}

// await polls the API until wrong has nothing to say.
func (e *env) await(t *testing.T, what string, wrong func() string) {
	t.Helper()
	began := time.Now()
	for {
		last := wrong()
		if last == "" {
			t.Logf("%s: after %v", what, time.Since(began).Round(time.Millisecond))
			return
		}
		require.Less(t, time.Since(began), limit, "%s: %s", what, last)
		time.Sleep(20 * time.Millisecond)
	}
}

func unless(right bool, otherwise string) string {
	if right {
		return ""
	}
	return otherwise
}

// commands are the names of the processes of a node.
func commands(t *testing.T, n *cluster.Node) string {
	t.Helper()
	return output(t, n, "ps", "-e", "-o", "comm=")
}

// output runs a program on a node and returns what it wrote, without the last newline.
func output(t *testing.T, n *cluster.Node, name string, args ...string) string {
	t.Helper()
	out, err := n.Command(t.Context(), name, args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return strings.TrimSuffix(string(out), "\n")
}
