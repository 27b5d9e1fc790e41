package kube

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnikit/cnikit/overlay"
)

// realNode returns a Node of the size that they have in clusters, most of which is the list of images.
func realNode(i int) *corev1.Node {
	n := apiNode(fmt.Sprintf("node-%05d.example", i), i)
	n.Annotations = map[string]string{
		"node.alpha.kubernetes.io/ttl":                           "0",
		"volumes.kubernetes.io/controller-managed-attach-detach": "true",
	}
	n.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet", FieldsV1: &metav1.FieldsV1{
		Raw: []byte(`{"f:status":{` + strings.Repeat(`"f:conditions":{},`, 100) + `"f:images":{}}}`),
	}}}
	for j := range 60 {
		n.Status.Images = append(n.Status.Images, corev1.ContainerImage{
			Names: []string{
				fmt.Sprintf("registry.example/team-%02d/service-%04d@sha256:%064x", j, i, i*100+j),
				fmt.Sprintf("registry.example/team-%02d/service-%04d:v1.%d.%d-production-with-a-long-tag", j, i, i, j),
			},
			SizeBytes: int64(i*100 + j),
		})
	}
	for _, kind := range []corev1.NodeConditionType{corev1.NodeReady, corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure} {
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{
			Type: kind, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficient", Message: "kubelet has sufficient of it",
			LastHeartbeatTime: metav1.NewTime(created), LastTransitionTime: metav1.NewTime(created),
		})
	}
	n.Status.Capacity = corev1.ResourceList{"cpu": resource.MustParse("8"), "memory": resource.MustParse("32Gi"), "pods": resource.MustParse("110")}
	return n
}

// keeper is a sink that keeps nothing.
type keeper struct{ synced chan int }

func (k keeper) Replace(nodes []overlay.Node) { k.synced <- len(nodes) }
func (k keeper) Upsert(overlay.Node)          { k.synced <- 1 }
func (k keeper) Delete(string)                {}

// TestMemoryPerNode measures what the source keeps of Nodes that are 13 to 16 KB each.
func TestMemoryPerNode(t *testing.T) {
	const bound = int64(1500)
	for name, b := range kinds() {
		count := 5000
		if b.json || b.noStream {
			count = 1000 // the others show that nothing is kept by their way, either
		}
		t.Run(name, func(t *testing.T) {
			a := newAPIServer(t, b)
			for i := range count {
				a.put(realNode(i))
			}
			a.compact()
			size := a.nodes["node-00001.example"].Size()
			require.Greater(t, size, 13_000)
			require.Less(t, size, 16_000)

			source, err := New(a.config(), Options{})
			require.NoError(t, err)
			before := heap()
			ctx, cancel := context.WithCancel(context.Background())
			ended := make(chan error, 1)
			sink := keeper{make(chan int, 1)}
			began := time.Now()
			go func() { ended <- source.Run(ctx, sink) }()
			require.Equal(t, count, <-sink.synced)
			took := time.Since(began)
			a.put(realNode(count)) // the list is done with when its watch delivers
			require.Equal(t, 1, <-sink.synced)
			var kept int64
			require.Eventually(t, func() bool { // the server has sent it all, and may not have forgotten it
				kept = (int64(heap()) - int64(before)) / int64(count)
				return kept < bound
			}, time.Minute, 10*time.Millisecond, "more than %d B are kept of each", bound)
			cancel()
			require.NoError(t, <-ended)
			t.Logf("%d Nodes of %d B: %d B kept of each, synced in %v", count, size, kept, took)
		})
	}
}

func heap() uint64 {
	var m runtime.MemStats
	for range 3 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// BenchmarkHeartbeat is the cost of a heartbeat: "compare" of ours, "decode" of the encoding, which comes on top.
func BenchmarkHeartbeat(b *testing.B) {
	h := newHealth()
	m := newMirror(AddressAnnotation, &h)
	n := realNode(1)
	if err := m.Replace([]any{n}, "1"); err != nil {
		b.Fatal(err)
	}
	b.Run("compare", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := m.Update(n); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("decode", func(b *testing.B) {
		data, err := n.Marshal()
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		b.SetBytes(int64(len(data)))
		for b.Loop() {
			var n corev1.Node
			if err := n.Unmarshal(data); err != nil {
				b.Fatal(err)
			}
		}
	})
}
