package cluster_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	core "k8s.io/api/core/v1"

	"github.com/cnikit/cnikit/cni/cnitest"
	"github.com/cnikit/cnikit/internal/e2e/cluster"
)

// testServices stops and starts what runs on a node. Its pod goes on.
func (e *env) testServices(t *testing.T) {
	n := e.Node("new")
	was := e.running(t, "pod-new")
	require.NoError(t, n.StopContainerd(t.Context()))
	require.NoError(t, n.StopContainerd(t.Context()), "twice is no error")
	require.NoError(t, n.StopKubelet(t.Context()))
	assert.NotContains(t, commands(t, n), "kubelet")
	e.awaitReady(t, n, core.ConditionUnknown)
	ns, err := n.PodNamespace(t.Context(), string(was.UID))
	require.NoError(t, err, "the pod goes on")
	require.NoError(t, ns.Close())
	require.NoError(t, n.StartContainerd(t.Context()))
	require.NoError(t, n.StartKubelet(t.Context()))
	e.awaitReady(t, n, core.ConditionTrue)
	assert.Equal(t, was.UID, e.running(t, "pod-new").UID)
}

func (e *env) testPower(t *testing.T) {
	old, other := e.Node("old"), e.Node("new")
	places := []string{"/etc/kept", "/opt/kept", "/var/lib/kept", "/var/log/kept", "/run/lost"}
	for _, place := range places {
		require.NoError(t, os.WriteFile(old.Path(place), nil, 0o644))
	}
	boot := output(t, old, "cat", "/proc/sys/kernel/random/boot_id")
	was := e.running(t, "pod-old")
	link := output(t, old, "ip", "-brief", "link", "show", "eth0")

	require.NoError(t, old.Kill(t.Context()))
	require.NoError(t, old.Kill(t.Context()), "twice is no error")
	assert.Nil(t, old.Namespace())
	assert.Empty(t, mentioned(t, filepath.Join(filepath.Dir(filepath.Dir(old.TraceDir())), "node-old")))
	require.ErrorIs(t, old.Command(t.Context(), "true").Run(), cluster.ErrOff)
	require.ErrorIs(t, old.StartKubelet(t.Context()), cluster.ErrOff)
	for _, place := range places[:4] {
		assert.FileExists(t, old.Path(place))
	}
	_, err := other.Namespace().Ping(t.Context(), cnitest.Ping{To: old.Addr(), Timeout: 100 * time.Millisecond})
	require.ErrorIs(t, err, cnitest.ErrNoReply)
	e.awaitReady(t, old, core.ConditionUnknown)

	require.NoError(t, old.Boot(t.Context()))
	require.Error(t, old.Boot(t.Context()), "it runs")
	_, err = other.Namespace().Ping(t.Context(), cnitest.Ping{To: old.Addr()})
	require.NoError(t, err)
	assert.Equal(t, hardware(link), hardware(output(t, old, "ip", "-brief", "link", "show", "eth0")))
	assert.NotEqual(t, boot, output(t, old, "cat", "/proc/sys/kernel/random/boot_id"))
	assert.Equal(t, "1", output(t, old, "cat", "/proc/sys/vm/overcommit_memory"), "what the kubelet wants")
	for _, place := range places[:4] {
		assert.FileExists(t, old.Path(place))
	}
	assert.NoFileExists(t, old.Path("/run/lost"))
	e.awaitReady(t, old, core.ConditionTrue)
	e.await(t, "the pod runs again", func() string {
		o := e.running(t, "pod-old")
		return unless(o.UID == was.UID && o.Status.ContainerStatuses[0].RestartCount > 0 && o.Status.PodIP != was.Status.PodIP,
			"not yet")
	})
}

// hardware is the address in a line of ip -brief link.
func hardware(line string) string { return strings.Fields(line)[2] }
