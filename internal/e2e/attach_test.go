package e2e

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnikit/cnikit/cni/cnitest"
	"github.com/cnikit/cnikit/internal/e2e/cluster"
)

// testPairs: a pod on each node, whatever its runtime.
func (s *suite) testPairs(t *testing.T) {
	s.installed(t)
	pods := s.runPods(t, "pair", s.nodes...)
	requireAllPairs(t, pods...)
	for _, p := range pods {
		adds := s.calls(t, p.node, bridgePlugin, "ADD")
		require.NotEmpty(t, adds, p.node.Name())
		want := map[string]string{cluster.Containerd16: "1.0.0", cluster.Containerd24: "1.1.0"}[p.node.Containerd()]
		assert.Equal(t, want, config(t, adds[len(adds)-1])["cniVersion"], "the newest that the runtime of %s knows", p.node.Name())
	}
}

// testThirty: a Deployment comes up, and after it is deleted nothing of its pods is left.
func (s *suite) testThirty(t *testing.T) {
	const replicas = 30
	s.installed(t)
	s.warm(t)
	before := map[*cluster.Node]traces{}
	for _, n := range s.nodes {
		before[n] = look(t, n)
	}
	labels := map[string]string{"app": "thirty"}
	count := int32(replicas)
	_, err := s.apps.Deployments(user).Create(t.Context(), &apps.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "thirty"},
		Spec: apps.DeploymentSpec{
			Replicas: &count, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: core.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: podSpec("")},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() { s.deleteDeployment(t, "thirty") })
	await(t, "30 pods are ready", func() string {
		d, err := s.apps.Deployments(user).Get(t.Context(), "thirty", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if d.Status.ReadyReplicas != replicas {
			return fmt.Sprintf("%d are ready", d.Status.ReadyReplicas)
		}
		return ""
	})
	s.requireOwnAddresses(t, "app=thirty", replicas)
	memory, err := s.cluster.Memory()
	require.NoError(t, err)
	t.Logf("memory of the cluster with 30 pods: %d MiB", memory>>20)
	assert.Less(t, memory, 3<<30)
	for _, n := range s.nodes {
		there := look(t, n)
		require.NotEmpty(t, there.leases, n.Name())
		require.NotEmpty(t, there.results, n.Name())
		require.NotEmpty(t, before[n].network.Diff(there.network), n.Name())
	}
	s.deleteDeployment(t, "thirty")
	for _, n := range s.nodes {
		await(t, n.Name()+" is as before", func() string { return before[n].diff(look(t, n)) })
	}
}

// warm runs a pod everywhere once, for what the first one of a node leaves by design: the
// bridge.
func (s *suite) warm(t *testing.T) {
	t.Helper()
	var names []string
	for _, p := range s.runPods(t, "warm", s.nodes...) {
		names = append(names, p.name)
	}
	s.deletePods(t, names...)
	for _, n := range s.nodes {
		await(t, "no pod on "+n.Name(), func() string {
			there := look(t, n)
			return strings.Join(append(there.leases, there.results...), " ")
		})
	}
}

func (s *suite) deleteDeployment(t *testing.T, name string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	background := metav1.DeletePropagationBackground
	err := s.apps.Deployments(user).Delete(ctx, name, metav1.DeleteOptions{PropagationPolicy: &background})
	assert.Empty(t, ignoreAbsent(err))
}

// requireOwnAddresses: each pod has an address in each family, which no other has.
func (s *suite) requireOwnAddresses(t *testing.T, selector string, want int) {
	t.Helper()
	pods, err := s.core.Pods(user).List(t.Context(), metav1.ListOptions{LabelSelector: selector})
	require.NoError(t, err)
	owner := map[string]string{}
	onNode := map[string]int{}
	for _, p := range pods.Items {
		onNode[p.Spec.NodeName]++
		require.Len(t, p.Status.PodIPs, 2, p.Name)
		for _, ip := range p.Status.PodIPs {
			assert.Empty(t, owner[ip.IP], "%s has %s too", p.Name, ip.IP)
			owner[ip.IP] = p.Name
		}
	}
	assert.Len(t, owner, 2*want)
	assert.Len(t, onNode, len(s.nodes), "every node has some of %v", onNode)
}

// traces are what attachments leave on a node while they exist.
type traces struct {
	network cnitest.State // links, addresses, routes, rules, neighbours, nftables
	leases  []string
	results []string // what the runtime remembers
}

func look(t *testing.T, n *cluster.Node) traces {
	t.Helper()
	network, err := n.Namespace().State()
	require.NoError(t, err)
	return traces{network, leases(t, n.Path("/var/lib/cni/networks")), files(t, n.Path("/var/lib/cni/results"))}
}

func (a traces) diff(b traces) string {
	d := []string{a.network.Diff(b.network)}
	for _, l := range [][2][]string{{a.leases, b.leases}, {a.results, b.results}} {
		if !slices.Equal(l[0], l[1]) {
			d = append(d, fmt.Sprintf("%v, was %v", l[1], l[0]))
		}
	}
	return strings.TrimSpace(strings.Join(d, "\n"))
}

// leases are the files named like addresses.
func leases(t *testing.T, dir string) []string {
	t.Helper()
	return slices.DeleteFunc(files(t, dir), func(path string) bool {
		_, err := netip.ParseAddr(strings.ReplaceAll(filepath.Base(path), "_", ":"))
		return err != nil
	})
}

// files are the files below a directory, which may be missing.
func files(t *testing.T, dir string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if os.IsNotExist(err) {
			return nil // also one that went while we looked
		}
		if err == nil && !e.IsDir() {
			found = append(found, path)
		}
		return err
	})
	require.NoError(t, err)
	return found
}
