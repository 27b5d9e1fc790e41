package cluster_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authentication "k8s.io/api/authentication/v1"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/cnikit/cnikit/cni/cnitest"
	"github.com/cnikit/cnikit/internal/e2e/cluster"
)

// TestCluster has a node with each line of containerd.
func TestCluster(t *testing.T) {
	t.Parallel()
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
		{"services", e.testServices}, {"accounts", e.testAccounts}, {"api server", e.testAPIServer}, {"power", e.testPower}, {"logs", e.testLogs},
	} {
		if !t.Run(step.name, step.run) {
			t.Fatal("the others build on it")
		}
	}
	ids := clusters(t, dir)
	require.Len(t, ids, 1)
	used, err := c.Memory()
	require.NoError(t, err)
	assert.Greater(t, used, 100<<20, "bytes, of a control plane alone")
	t.Logf("all processes have %d MiB", used>>20)
	assert.Less(t, used, 3<<30, "bytes")
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

	output(t, n, "setsid", "--fork", "true")
	e.await(t, "the init reaps orphans", func() string {
		return unless(!strings.Contains(output(t, n, "ps", "-e", "-o", "stat="), "Z"), "there are zombies")
	})

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

func (e *env) testAPIServer(t *testing.T) {
	require.ErrorContains(t, e.StartAPIServer(t.Context()), "it runs")
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

// testAccounts calls the API as a pod would: with the token of a service account and the
// authority that the pod gets.
func (e *env) testAccounts(t *testing.T) {
	var authority string
	e.await(t, "the authority is published", func() string {
		o, err := e.core.ConfigMaps("kube-system").Get(t.Context(), "kube-root-ca.crt", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		authority = o.Data["ca.crt"]
		return ""
	})
	token, err := e.core.ServiceAccounts("kube-system").CreateToken(t.Context(), "default", &authentication.TokenRequest{}, metav1.CreateOptions{})
	require.NoError(t, err)
	config := e.Config()
	config.TLSClientConfig.CAData, config.BearerToken = []byte(authority), token.Status.Token
	pod, err := corev1.NewForConfig(config)
	require.NoError(t, err)
	_, err = pod.Nodes().List(t.Context(), metav1.ListOptions{})
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.ErrorContains(t, err, "system:serviceaccount:kube-system:default")
}

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
