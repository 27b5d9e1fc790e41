package kube

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnikit/cnikit/overlay"
)

func TestRead(t *testing.T) {
	tests := map[string]struct {
		change func(*corev1.Node)
		want   func(*overlay.Node)
	}{
		"all of it": {},
		"annotation/before the status": {
			func(n *corev1.Node) { n.Annotations = map[string]string{AddressAnnotation: "198.51.100.7"} },
			func(n *overlay.Node) { n.Addresses = []string{"198.51.100.7"} },
		},
		"annotation/several, in their order": {
			func(n *corev1.Node) {
				n.Annotations = map[string]string{AddressAnnotation: " 2001:db8::7, 198.51.100.7,,bad "}
			},
			func(n *overlay.Node) { n.Addresses = []string{"2001:db8::7", "198.51.100.7", "bad"} },
		},
		"annotation/an empty one is none": {func(n *corev1.Node) { n.Annotations = map[string]string{AddressAnnotation: " , "} }, nil},
		"annotation/another is not ours":  {func(n *corev1.Node) { n.Annotations = map[string]string{"x": "198.51.100.7"} }, nil},
		"status/all InternalIPs, in their order": {
			func(n *corev1.Node) {
				n.Status.Addresses = []corev1.NodeAddress{
					{Type: corev1.NodeExternalIP, Address: "203.0.113.1"}, {Type: corev1.NodeInternalIP, Address: "2001:db8::1"},
					{Type: corev1.NodeInternalDNS, Address: "a.internal"}, {Type: corev1.NodeInternalIP, Address: "192.0.2.1"},
				}
			},
			func(n *overlay.Node) { n.Addresses = []string{"2001:db8::1", "192.0.2.1"} },
		},
		"status/none": {
			func(n *corev1.Node) { n.Status.Addresses = nil },
			func(n *overlay.Node) { n.Addresses = nil },
		},
		"pod CIDR/singular": {
			func(n *corev1.Node) { n.Spec.PodCIDRs = nil },
			func(n *overlay.Node) { n.PodCIDRs = n.PodCIDRs[:1] },
		},
		"pod CIDR/none": {
			func(n *corev1.Node) { n.Spec = corev1.NodeSpec{} },
			func(n *overlay.Node) { n.PodCIDRs = nil },
		},
		"health/not ready, cordoned, tainted, being deleted": {
			func(n *corev1.Node) {
				n.Spec.Unschedulable = true
				n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoExecute}}
				n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionFalse}}
				n.DeletionTimestamp = &metav1.Time{Time: created}
			}, nil,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			n, want := apiNode("a", 1), overlayNode("a", 1)
			if tt.change != nil {
				tt.change(n)
			}
			if tt.want != nil {
				tt.want(&want)
			}
			r := reader{annotation: AddressAnnotation}
			got, same := r.read(n, overlay.Node{})
			require.False(t, same)
			require.Equal(t, want, got)
			require.Empty(t, got.PodCIDRs[len(got.PodCIDRs):cap(got.PodCIDRs)])

			stripped, err := r.strip(n)
			require.NoError(t, err)
			again, same := r.read(stripped.(*corev1.Node), got)
			require.True(t, same, "what is read is not stripped")
			require.Equal(t, want, again)
		})
	}
}

func TestReadCopies(t *testing.T) {
	n := apiNode("a", 1)
	r := reader{annotation: AddressAnnotation}
	a, _ := r.read(n, overlay.Node{})
	_, _ = r.read(apiNode("b", 2), overlay.Node{})
	n.Spec.PodCIDRs[0] = "changed"
	require.Equal(t, overlayNode("a", 1), a)
}

func TestStripDropsTheRest(t *testing.T) {
	n := realNode(1)
	r := reader{annotation: AddressAnnotation}
	got, err := r.strip(n)
	require.NoError(t, err)
	require.Less(t, got.(*corev1.Node).Size(), 400)
	require.Equal(t, n.ResourceVersion, got.(*corev1.Node).ResourceVersion)
}

func TestHeartbeatAllocatesNothing(t *testing.T) {
	h := newHealth()
	m := newMirror(AddressAnnotation, &h)
	n := realNode(1)
	n.Annotations[AddressAnnotation] = "198.51.100.7,2001:db8::7"
	require.NoError(t, m.Replace([]any{n}, "1"))
	require.Zero(t, testing.AllocsPerRun(100, func() { _ = m.Update(n) }))
}

func TestMirrorRefusesOthers(t *testing.T) {
	h := newHealth()
	m := newMirror(AddressAnnotation, &h)
	const want = "read Node: the API server sent a *v1.Pod"
	require.EqualError(t, m.Add(&corev1.Pod{}), want)
	require.EqualError(t, m.Delete(&corev1.Pod{}), want)
	require.EqualError(t, m.Replace([]any{&corev1.Pod{}}, "1"), want)
	_, err := m.Transformer()(&corev1.Pod{})
	require.EqualError(t, err, want)
	require.False(t, m.complete())
	require.NoError(t, m.Resync())
}
