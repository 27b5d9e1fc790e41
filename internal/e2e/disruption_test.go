package e2e

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cnikit/cnikit/internal/e2e/cluster"
)

const agentLabel = "app.kubernetes.io/name=cnikit"

// testAgentsDeleted: the agents of all nodes go and new ones come, and no packet notices.
func (s *suite) testAgentsDeleted(t *testing.T) {
	s.installed(t)
	pods := s.runPods(t, "steady", s.nodes...)
	old := s.agents(t)
	requireUntouched(t, pods[0], pods[2], func() {
		for name := range old {
			require.NoError(t, s.core.Pods(namespace).Delete(t.Context(), name, metav1.DeleteOptions{}))
		}
		await(t, "new agents are ready", func() string {
			now := s.agents(t)
			for name := range old {
				if _, there := now[name]; there {
					return name + " is still there"
				}
			}
			return unready(now, len(s.nodes))
		})
	})
	s.settled(t)
	requireAllPairs(t, pods...)
}

// agents are the agent's pods, by name.
func (s *suite) agents(t *testing.T) map[string]core.Pod {
	t.Helper()
	list, err := s.core.Pods(namespace).List(t.Context(), metav1.ListOptions{LabelSelector: agentLabel})
	require.NoError(t, err)
	pods := map[string]core.Pod{}
	for _, p := range list.Items {
		pods[p.Name] = p
	}
	return pods
}

func unready(pods map[string]core.Pod, want int) string {
	var ready []string
	for name, p := range pods {
		for _, c := range p.Status.Conditions {
			if c.Type == core.PodReady && c.Status == core.ConditionTrue {
				ready = append(ready, name)
			}
		}
	}
	if len(ready) != want {
		return fmt.Sprintf("ready: %v", ready)
	}
	return ""
}

// testAPIServerKilled: the network goes on without it, and every agent finds the next one.
func (s *suite) testAPIServerKilled(t *testing.T) {
	s.installed(t)
	pods := s.runPods(t, "steady", s.nodes...)
	requireUntouched(t, pods[0], pods[2], func() {
		require.NoError(t, s.cluster.KillAPIServer(t.Context()))
		for _, n := range s.nodes {
			await(t, "the agent of "+n.Name()+" misses the API server", func() string {
				r := status(t, n)
				require.True(t, r.Ready, "%s: not ready for want of an API server: %s", n.Name(), r.Reason)
				if len(r.Source) == 0 {
					return "it does not"
				}
				return ""
			})
		}
		require.NoError(t, s.cluster.StartAPIServer(t.Context()))
		for _, n := range s.nodes {
			await(t, "the agent of "+n.Name()+" has it again", func() string {
				return strings.Join(status(t, n).Source, "; ")
			})
		}
	})
	s.settled(t)
	requireAllPairs(t, pods...)
}

// report is what the agent says in its status file.
type report struct {
	Ready  bool     `json:"ready"`
	Reason string   `json:"reason"`
	Source []string `json:"source"`
}

func status(t *testing.T, n *cluster.Node) report {
	t.Helper()
	data, err := os.ReadFile(n.Path(readyFile))
	require.NoError(t, err)
	var r report
	require.NoError(t, json.Unmarshal(data, &r))
	return r
}

// testNotReady: what Kubernetes thinks of a node is not the network's business. Its pods
// keep talking, and the others keep what they have for it.
func (s *suite) testNotReady(t *testing.T) {
	s.installed(t)
	sick := s.nodes[1]
	pods := s.runPods(t, "steady", s.nodes...)
	before := s.requireAbout(t, sick)
	requireUntouched(t, pods[1], pods[2], func() {
		s.taint(t, sick.Name(), core.Taint{Key: "cnikit.invalid/lost", Effect: core.TaintEffectNoExecute})
		require.NoError(t, sick.StopKubelet(t.Context()))
		await(t, sick.Name()+" is NotReady and tainted", func() string {
			n, err := s.core.Nodes().Get(t.Context(), sick.Name(), metav1.GetOptions{})
			if err != nil {
				return err.Error()
			}
			for _, taint := range n.Spec.Taints {
				if taint.Key == core.TaintNodeUnreachable && taint.Effect == core.TaintEffectNoExecute {
					return ""
				}
			}
			return fmt.Sprint(n.Spec.Taints)
		})
		assert.Equal(t, before, s.requireAbout(t, sick))
	})
	require.NoError(t, sick.StartKubelet(t.Context()))
	s.taint(t, sick.Name())
	s.settled(t)
	requireAllPairs(t, pods...)
}

// taint replaces the taints of a Node.
func (s *suite) taint(t *testing.T, node string, taints ...core.Taint) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"taints": append([]core.Taint{}, taints...)}})
	require.NoError(t, err)
	_, err = s.core.Nodes().Patch(t.Context(), node, types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(t, err)
}

// peer is what a node is known by to the kernels of the others.
func (s *suite) peer(t *testing.T, node *cluster.Node) []netip.Prefix {
	t.Helper()
	n, err := s.core.Nodes().Get(t.Context(), node.Name(), metav1.GetOptions{})
	require.NoError(t, err)
	known := []netip.Prefix{netip.PrefixFrom(node.Addr(), node.Addr().BitLen())}
	for _, cidr := range n.Spec.PodCIDRs {
		known = append(known, netip.MustParsePrefix(cidr))
	}
	return known
}

// about is what the kernel of n has for packets to a peer through the tunnel: routes,
// neighbours and forwarding entries.
func about(t *testing.T, n *cluster.Node, peer []netip.Prefix) []string {
	t.Helper()
	state, err := n.Namespace().State()
	require.NoError(t, err)
	return slices.DeleteFunc(slices.Clone(state), func(line string) bool {
		return !strings.Contains(line, device) || !slices.ContainsFunc(strings.Fields(line), func(word string) bool {
			addr, err := netip.ParseAddr(strings.Split(word, "/")[0])
			return err == nil && slices.ContainsFunc(peer, func(p netip.Prefix) bool { return p.Contains(addr) })
		})
	})
}

// requireAbout has each kind of entry in what the others have for a peer, and returns it
// by node.
func (s *suite) requireAbout(t *testing.T, node *cluster.Node) map[*cluster.Node][]string {
	t.Helper()
	peer := s.peer(t, node)
	found := map[*cluster.Node][]string{}
	for _, n := range s.nodes {
		if n == node {
			continue
		}
		found[n] = about(t, n, peer)
		for _, kind := range []string{"route ", "neighbour ", "fdb "} {
			require.True(t, slices.ContainsFunc(found[n], func(line string) bool { return strings.HasPrefix(line, kind) }),
				"%s has no %sfor %s, but %q", n.Name(), kind, node.Name(), found[n])
		}
	}
	return found
}

// testNodeDeleted: a Node object that goes is cleaned up after everywhere, and one that
// comes again under its name is another node.
func (s *suite) testNodeDeleted(t *testing.T) {
	s.installed(t)
	gone := s.nodes[1]
	pods := s.runPods(t, "steady", s.nodes[0], s.nodes[2])
	s.runPods(t, "doomed", gone)
	before, err := s.core.Nodes().Get(t.Context(), gone.Name(), metav1.GetOptions{})
	require.NoError(t, err)
	s.requireAbout(t, gone)
	peer := s.peer(t, gone)
	requireUntouched(t, pods[0], pods[1], func() {
		require.NoError(t, gone.StopKubelet(t.Context()))
		require.NoError(t, s.core.Nodes().Delete(t.Context(), gone.Name(), metav1.DeleteOptions{}))
		for _, n := range s.nodes {
			if n == gone {
				continue
			}
			await(t, n.Name()+" has nothing of "+gone.Name(), func() string {
				return strings.Join(about(t, n, peer), "\n")
			})
		}
		require.NoError(t, gone.StartKubelet(t.Context()))
		await(t, gone.Name()+" is a new Node", func() string {
			now, err := s.core.Nodes().Get(t.Context(), gone.Name(), metav1.GetOptions{})
			switch {
			case apierrors.IsNotFound(err):
				return "not there"
			case err != nil:
				return err.Error()
			case now.UID == before.UID || len(now.Spec.PodCIDRs) != 2:
				return fmt.Sprintf("UID %s, Pod CIDRs %v", now.UID, now.Spec.PodCIDRs)
			}
			t.Logf("Pod CIDRs were %v and are %v", before.Spec.PodCIDRs, now.Spec.PodCIDRs)
			return ""
		})
		s.settled(t)
		requireAllPairs(t, append(s.runPods(t, "again", gone), pods...)...)
	})
}

// testReboot: a node loses power under traffic between the others, and comes back with
// its disk and nothing else.
func (s *suite) testReboot(t *testing.T) {
	s.installed(t)
	sick := s.nodes[1]
	pods := s.runPods(t, "steady", s.nodes...)
	requireAllPairs(t, pods...)
	old := leases(t, sick.Path("/var/lib/cni/networks"))
	require.NotEmpty(t, old)
	requireUntouched(t, pods[0], pods[2], func() {
		require.NoError(t, sick.Reboot(t.Context()))
		s.awaitSandbox(t, pods[1])
		s.settled(t)
		again := s.awaitPod(t, pods[1].name)
		requireAllPairs(t, pods[0], again, pods[2])
	})
	await(t, "the leases of before the reboot are gone", func() string {
		if now := leases(t, sick.Path("/var/lib/cni/networks")); len(now) != 2 { // the pod's, one in each family
			return strings.Join(now, " ")
		}
		return ""
	})
}

// awaitSandbox waits until a pod has another sandbox than it had before.
func (s *suite) awaitSandbox(t *testing.T, old *pod) {
	t.Helper()
	await(t, old.name+" runs in a new sandbox", func() string {
		o, err := s.core.Pods(user).Get(t.Context(), old.name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		for _, c := range o.Status.ContainerStatuses {
			if c.RestartCount == 0 || !c.Ready {
				return fmt.Sprintf("restarted %d times, ready: %v", c.RestartCount, c.Ready)
			}
		}
		return ""
	})
}
