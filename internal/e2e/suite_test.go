package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/dynamic"
	appsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/cnikit/cnikit/cni/cnitest"
	"github.com/cnikit/cnikit/internal/e2e/binaries"
	"github.com/cnikit/cnikit/internal/e2e/cluster"
)

const (
	root   = "../.." // of the SDK's module
	deploy = root + "/examples/bridge-vxlan/deploy"
)

// suite is the cluster that the scenarios share. Each leaves it as it found it: nodes
// Ready, the agent on each, no pods of its own.
type suite struct {
	cluster *cluster.Cluster
	nodes   []*cluster.Node
	core    corev1.CoreV1Interface
	apps    appsv1.AppsV1Interface
	dynamic dynamic.Interface
	bare    map[*cluster.Node]cnitest.State // before the first installation
}

// The first node has the old runtime, whose newest CNI version is 1.0.0.
func nodes() []cluster.NodeOptions {
	return []cluster.NodeOptions{
		{Name: "node1", Containerd: cluster.Containerd16},
		{Name: "node2", Containerd: cluster.Containerd24},
		{Name: "node3", Containerd: cluster.Containerd24},
	}
}

// start brings the cluster up, without our agent. It goes away with the test; of a
// failed one the logs stay.
func start(t *testing.T) *suite {
	t.Helper()
	set, err := binaries.Ensure(t.Context(), binaries.Options{Log: t.Output()})
	require.NoError(t, err)
	image := agentImage(t)
	began := time.Now()
	c, err := cluster.Start(t.Context(), cluster.Options{Binaries: set, Nodes: nodes(), Images: []string{image}, Log: t.Output()})
	require.NoError(t, err)
	t.Logf("control plane and %d nodes: %v", len(c.Nodes()), time.Since(began).Round(time.Millisecond))
	t.Cleanup(func() { finish(t, c) })
	s := &suite{cluster: c, nodes: c.Nodes()}
	s.bare = map[*cluster.Node]cnitest.State{}
	for _, n := range s.nodes {
		s.bare[n] = ground(t, n)
	}
	s.core, err = corev1.NewForConfig(c.Config())
	require.NoError(t, err)
	s.apps, err = appsv1.NewForConfig(c.Config())
	require.NoError(t, err)
	s.dynamic, err = dynamic.NewForConfig(c.Config())
	require.NoError(t, err)
	return s
}

func finish(t *testing.T, c *cluster.Cluster) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	if t.Failed() {
		dir := filepath.Join(os.TempDir(), fmt.Sprintf("cnikit-e2e-logs-%d", os.Getpid()))
		t.Logf("logs are in %s: %v", dir, c.CollectLogs(ctx, dir))
	}
	require.NoError(t, c.Close(ctx))
}

// agentImage builds the image of the deployment and returns its file.
func agentImage(t *testing.T) string {
	t.Helper()
	file, err := filepath.Abs(filepath.Join(t.TempDir(), "cnikit.tar"))
	require.NoError(t, err)
	build := exec.CommandContext(t.Context(), "go", "run", "-C", root, "./examples/bridge-vxlan/deploy/mkimage", "-o", file)
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return file
}

// patience is how long a scenario waits for what takes seconds on a machine that does
// nothing else, and a minute where the kubelet does it once a minute.
const patience = 3 * time.Minute

// await polls until wrong returns nothing.
func await(t *testing.T, what string, wrong func() string) {
	t.Helper()
	began := time.Now()
	for {
		last := wrong()
		if last == "" {
			t.Logf("%s: after %v", what, time.Since(began).Round(10*time.Millisecond))
			return
		}
		if time.Since(began) > patience {
			require.FailNow(t, "not in time", "%s: not within %v: %s", what, patience, last)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
