package cluster_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/cnikit/cnikit/cni/cnitest"
	"github.com/cnikit/cnikit/internal/e2e/cluster"
)

// limit is for what takes seconds on an idle machine.
const limit = time.Minute

// env is the cluster that the subtests share, in their order.
type env struct {
	*cluster.Cluster
	core corev1.CoreV1Interface
}

// TestCluster has a node with each line of containerd.
func TestCluster(t *testing.T) {
	set, dir, before := programs(t), newDir(t), look(t)
	began := time.Now()
	c, err := cluster.Start(t.Context(), cluster.Options{Binaries: set, Dir: dir, Log: t.Output(), Nodes: []cluster.NodeOptions{
		{Name: "old", Containerd: cluster.Containerd16}, {Name: "new"},
	}})
	require.NoError(t, err)
	t.Logf("started after %v", time.Since(began))
	t.Cleanup(func() { assert.NoError(t, c.Close(context.WithoutCancel(t.Context()))) })
	e := &env{Cluster: c}
	e.core, err = corev1.NewForConfig(c.Config())
	require.NoError(t, err)

	for _, step := range []struct {
		name string
		run  func(*testing.T)
	}{
		{"nodes", e.testNodes}, {"command", e.testCommand}, {"plugins", e.testPlugins}, {"trace", e.testTrace},
		{"services", e.testServices}, {"api server", e.testAPIServer}, {"power", e.testPower}, {"logs", e.testLogs},
	} {
		if !t.Run(step.name, step.run) {
			t.Fatal("the others build on it")
		}
	}
	ids := clusters(t, dir)
	require.NoError(t, c.Close(t.Context()))
	requireNothing(t, dir, ids, before)
}

// testNodes looks at what Start promises.
func (e *env) testNodes(t *testing.T) {
	for _, n := range e.Nodes() {
		require.Same(t, n, e.Node(n.Name()))
		o, err := e.core.Nodes().Get(t.Context(), n.Name(), metav1.GetOptions{})
		require.NoError(t, err)
		require.Len(t, o.Spec.PodCIDRs, 2)
		assert.True(t, netip.MustParsePrefix("10.244.0.0/16").Contains(netip.MustParsePrefix(o.Spec.PodCIDRs[0]).Addr()))
		assert.True(t, netip.MustParsePrefix("fd00:10:244::/56").Contains(netip.MustParsePrefix(o.Spec.PodCIDRs[1]).Addr()))
		assert.Contains(t, o.Status.Addresses, core.NodeAddress{Type: core.NodeInternalIP, Address: n.Addr().String()})
		assert.Contains(t, o.Status.NodeInfo.ContainerRuntimeVersion, "containerd://"+n.Containerd())
		assert.NotEqual(t, core.ConditionTrue, e.ready(t, n).Status, "there is no pod network")
		assert.Contains(t, e.ready(t, n).Message, "cni plugin not initialized")
	}
	assert.Nil(t, e.Node("none"))
	_, err := e.Node("old").Namespace().Ping(t.Context(), cnitest.Ping{To: e.Node("new").Addr()})
	require.NoError(t, err)
}

func (e *env) testCommand(t *testing.T) {
	n := e.Node("new")
	names := commands(t, n)
	assert.Contains(t, names, "kubelet")
	assert.NotContains(t, names, "etcd", "the processes of another machine")
	assert.Contains(t, output(t, n, "ip", "-brief", "addr", "show", "eth0"), n.Addr().String()+"/24")
	assert.Equal(t, "0", output(t, n, "cat", "/proc/sys/net/ipv4/ip_forward"), "a node network agent has to set it")
	require.NoError(t, os.WriteFile(n.Path("/etc/seen"), []byte("from outside"), 0o644))
	assert.Equal(t, "from outside", output(t, n, "cat", "/etc/seen"))
	assert.NoFileExists(t, "/etc/seen")

	ctx, cancel := context.WithCancel(t.Context())
	sleeper := n.Command(ctx, "sleep", "infinity")
	require.NoError(t, sleeper.Start())
	e.await(t, "sleep runs", func() string {
		return unless(strings.Contains(commands(t, n), "sleep"), "it does not")
	})
	cancel()
	assert.Error(t, sleeper.Wait())
	e.await(t, "sleep is killed", func() string {
		return unless(!strings.Contains(commands(t, n), "sleep"), "it runs")
	})
}

// testPlugins runs pods with the reference plugins.
func (e *env) testPlugins(t *testing.T) {
	for _, n := range e.Nodes() {
		e.configure(t, n)
		e.run(t, n, "pod-"+n.Name())
	}
	for _, n := range e.Nodes() {
		o := e.running(t, "pod-"+n.Name())
		ns, err := n.PodNamespace(t.Context(), string(o.UID))
		require.NoError(t, err)
		state, err := ns.State()
		require.NoError(t, err)
		assert.Contains(t, state.String(), o.Status.PodIP)
		require.NoError(t, ns.Close())

		calls, err := n.Calls(t.Context())
		require.NoError(t, err)
		var seen []string
		for _, c := range calls {
			if c.Command != "ADD" || !strings.Contains(c.Args, string(o.UID)) {
				continue
			}
			seen = append(seen, c.Plugin)
			assert.Equal(t, c.Env["CNI_NETNS"], c.NetNS)
			assert.NotEmpty(t, c.ContainerID)
			assert.True(t, json.Valid(c.Config))
			assert.True(t, json.Valid(c.Stdout))
			assert.Zero(t, c.ExitCode)
			assert.True(t, c.Start.Before(c.End))
			if c.Plugin == "bridge" {
				assert.Contains(t, string(c.Stdout), o.Status.PodIP)
				assert.Equal(t, "eth0", c.IfName)
			}
		}
		assert.ElementsMatch(t, []string{"loopback", "bridge", "host-local"}, seen, n.Name())
	}
	_, err := e.Nodes()[0].PodNamespace(t.Context(), "none")
	require.ErrorIs(t, err, os.ErrNotExist)
}

// testTrace checks that the recorder passes everything on.
func (e *env) testTrace(t *testing.T) {
	n := e.Node("new")
	wrapped := filepath.Join(n.TraceDir(), "tuning")
	call := func(program string, args ...string) (stdout, stderr string, code int) {
		if program != "" {
			output(t, n, "cp", testTool(t, program), "/opt/cni/bin/tuning")
		}
		cmd := n.Command(t.Context(), wrapped, args...)
		var out, errs bytes.Buffer
		cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader("input \xff"), &out, &errs
		cmd.Env = append(cmd.Env, "CNI_COMMAND=ADD")
		_ = cmd.Run() // the code says it
		return out.String(), errs.String(), cmd.ProcessState.ExitCode()
	}
	stdout, _, code := call("")
	assert.Equal(t, 1, code)
	assert.Contains(t, stdout, `failed to find plugin \"tuning\" in path [/opt/cni/bin]`)
	stdout, stderr, code := call("cat")
	assert.Equal(t, "input \xff", stdout)
	assert.Empty(t, stderr)
	assert.Zero(t, code)
	stdout, stderr, code = call("ls", "/none")
	assert.Empty(t, stdout)
	assert.Contains(t, stderr, "cannot access '/none'")
	assert.Equal(t, 2, code)
	call("timeout", "--signal=KILL", "0.01", "sleep", "infinity")

	calls, err := n.Calls(t.Context())
	require.NoError(t, err)
	calls = calls[len(calls)-4:]
	assert.Equal(t, []byte("input \xff"), calls[1].Config)
	assert.Equal(t, []byte("input \xff"), calls[1].Stdout)
	assert.Equal(t, stderr, string(calls[2].Stderr))
	for i, want := range []int{1, 0, 2, 137} {
		assert.Equal(t, want, calls[i].ExitCode)
		assert.Equal(t, "tuning", calls[i].Plugin)
		assert.Equal(t, "ADD", calls[i].Command)
	}
}

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

func (e *env) testAPIServer(t *testing.T) {
	require.NoError(t, e.KillAPIServer(t.Context()))
	_, err := e.core.Nodes().List(t.Context(), metav1.ListOptions{})
	require.ErrorContains(t, err, "connection refused")
	require.NoError(t, e.StartAPIServer(t.Context()))
	list, err := e.core.Nodes().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	assert.Len(t, list.Items, len(e.Nodes()))
	out, err := e.Kubectl(t.Context(), "get", "nodes").CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Contains(t, string(out), "old")
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

func (e *env) testLogs(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, e.CollectLogs(t.Context(), dir))
	for file, want := range map[string]string{
		"control/etcd.log": "etcd", "control/kube-apiserver.log": "Serving securely", "nodes.json": `"old"`, "pods.json": `"pod-new"`,
		"new/kubelet.log": "kubelet", "new/containerd.log": "containerd", "new/network.txt": "cni0", "old/calls.json": "host-local",
	} {
		data, err := os.ReadFile(filepath.Join(dir, file))
		require.NoError(t, err)
		assert.Contains(t, string(data), want, file)
	}
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
