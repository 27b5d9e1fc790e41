package e2e

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnikit/cnikit/cni/cnitest"
	"github.com/cnikit/cnikit/internal/e2e/cluster"
)

const (
	user       = "default" // the namespace of the pods
	pauseImage = cluster.PauseImage
	podMTU     = 1450 // bytes: what VXLAN leaves of the underlay's 1500
)

// pod is one that runs, seen from its network namespace.
type pod struct {
	name string
	uid  string
	node *cluster.Node
	ips  []netip.Addr // IPv4, then IPv6
	ns   *cnitest.Namespace
}

// podSpec is a pod that does nothing, quickly.
func podSpec(node string) core.PodSpec {
	var at int64
	no := false
	return core.PodSpec{
		NodeName: node, TerminationGracePeriodSeconds: &at, AutomountServiceAccountToken: &no, EnableServiceLinks: &no,
		DNSPolicy:   core.DNSDefault,
		Tolerations: []core.Toleration{{Operator: core.TolerationOpExists}}, // it stays whatever becomes of the node
		Containers:  []core.Container{{Name: "pause", Image: pauseImage, ImagePullPolicy: core.PullNever}},
	}
}

// runPods runs a pod on each of the nodes and deletes them when the test ends.
func (s *suite) runPods(t *testing.T, prefix string, nodes ...*cluster.Node) []*pod {
	t.Helper()
	var names []string
	for _, n := range nodes {
		name := prefix + "-" + n.Name()
		_, err := s.core.Pods(user).Create(t.Context(), &core.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: podSpec(n.Name()),
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		names = append(names, name)
	}
	t.Cleanup(func() { s.deletePods(t, names...) })
	var pods []*pod
	for _, name := range names {
		pods = append(pods, s.awaitPod(t, name))
	}
	return pods
}

// awaitPod waits until a pod runs, and opens its network namespace until the test ends.
func (s *suite) awaitPod(t *testing.T, name string) *pod {
	t.Helper()
	p := &pod{name: name}
	await(t, "pod "+name+" runs", func() string {
		o, err := s.core.Pods(user).Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		if o.Status.Phase != core.PodRunning || len(o.Status.PodIPs) != 2 {
			return fmt.Sprintf("%s with addresses %v", o.Status.Phase, o.Status.PodIPs)
		}
		p.uid, p.node, p.ips = string(o.UID), s.cluster.Node(o.Spec.NodeName), nil
		for _, ip := range o.Status.PodIPs {
			p.ips = append(p.ips, netip.MustParseAddr(ip.IP))
		}
		return ""
	})
	slices.SortFunc(p.ips, netip.Addr.Compare)
	var err error
	p.ns, err = p.node.PodNamespace(t.Context(), p.uid)
	require.NoError(t, err)
	t.Cleanup(func() { p.ns.Close() })
	return p
}

// deletePods deletes pods and waits until they are gone from the API.
func (s *suite) deletePods(t *testing.T, names ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	for _, name := range names {
		err := s.core.Pods(user).Delete(ctx, name, metav1.DeleteOptions{})
		assert.Empty(t, ignoreAbsent(err))
	}
	for _, name := range names {
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			_, err := s.core.Pods(user).Get(ctx, name, metav1.GetOptions{})
			require.Empty(c, absent(err))
		}, patience, 50*time.Millisecond)
	}
}

func ignoreAbsent(err error) string {
	if absent(err) == "" || err == nil {
		return ""
	}
	return err.Error()
}

// requireAllPairs pings from every pod to every other one, with the largest packet too,
// and moves data by TCP, in both families.
func requireAllPairs(t *testing.T, pods ...*pod) {
	t.Helper()
	for _, from := range pods {
		for _, to := range pods {
			for i := range to.ips {
				if from != to {
					requireTalk(t, from, to, to.ips[i])
				}
			}
		}
	}
	n := len(pods)
	t.Logf("%d pairs of pods in both families: ping, TCP, %d bytes unfragmented", n*(n-1), podMTU)
}

func requireTalk(t *testing.T, from, to *pod, at netip.Addr) {
	t.Helper()
	_, err := from.ns.Ping(t.Context(), cnitest.Ping{To: at, Timeout: patience})
	require.NoError(t, err, "%s to %s at %s", from.name, to.name, at)
	largest, err := from.ns.LargestPacket(t.Context(), at, podMTU)
	require.NoError(t, err, "%s to %s at %s", from.name, to.name, at)
	require.Equal(t, podMTU, largest, "%s to %s at %s", from.name, to.name, at)
	requireTCP(t, from, to, at)
}

// requireTCP opens a stream and waits for some answers.
func requireTCP(t *testing.T, from, to *pod, at netip.Addr) {
	t.Helper()
	const answers = 10
	flow, err := cnitest.OpenTCP(t.Context(), from.ns, to.ns, at, time.Millisecond)
	require.NoError(t, err, "%s to %s at %s", from.name, to.name, at)
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	go func() {
		for flow.Report().Back < answers && ctx.Err() == nil {
			time.Sleep(time.Millisecond)
		}
		stop()
	}()
	report := flow.Run(ctx)
	require.NoError(t, report.Err, "%s to %s at %s", from.name, to.name, at)
	require.GreaterOrEqual(t, report.Back, answers, "%s to %s at %s", from.name, to.name, at)
}
