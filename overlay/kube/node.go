package kube

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnikit/cnikit/overlay"
)

// A reader takes from a Node of the API what the overlay needs. It is not safe for concurrent use, but for strip.
type reader struct {
	annotation string   // with the addresses
	scratch    []string // for the addresses of one Node
}

// read returns n as the overlay sees it, and whether that is old. It allocates only for what differs, so that a heartbeat
// costs a comparison.
func (r *reader) read(n *corev1.Node, old overlay.Node) (read overlay.Node, same bool) {
	r.scratch = r.addresses(r.scratch[:0], n)
	seen := overlay.Node{
		Name: n.Name, UID: string(n.UID), Created: n.CreationTimestamp.UTC(),
		PodCIDRs: podCIDRs(n), Addresses: r.scratch,
	}
	if seen.Equal(old) {
		return old, true
	}
	seen.PodCIDRs, seen.Addresses = slices.Clone(seen.PodCIDRs), slices.Clone(seen.Addresses)
	return seen, false
}

// addresses appends the addresses of n to list.
func (r *reader) addresses(list []string, n *corev1.Node) []string {
	for a := range strings.SplitSeq(n.Annotations[r.annotation], ",") {
		if a = strings.TrimSpace(a); a != "" {
			list = append(list, a)
		}
	}
	if len(list) > 0 {
		return list
	}
	for _, a := range n.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			list = append(list, a.Address)
		}
	}
	return list
}

// podCIDRs returns the prefixes of n. The singular field is all that API servers before dual stack knew.
func podCIDRs(n *corev1.Node) []string {
	if len(n.Spec.PodCIDRs) == 0 && n.Spec.PodCIDR != "" {
		return []string{n.Spec.PodCIDR}
	}
	return n.Spec.PodCIDRs
}

// strip returns a Node with what read reads, and nothing that would keep the rest of n in memory.
func (r *reader) strip(obj any) (any, error) {
	n, err := asNode(obj)
	if err != nil {
		return nil, err
	}
	stripped := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: n.Name, UID: n.UID, ResourceVersion: n.ResourceVersion, CreationTimestamp: n.CreationTimestamp,
		},
		Spec:   corev1.NodeSpec{PodCIDR: n.Spec.PodCIDR, PodCIDRs: n.Spec.PodCIDRs},
		Status: corev1.NodeStatus{Addresses: n.Status.Addresses},
	}
	if a, ok := n.Annotations[r.annotation]; ok {
		stripped.Annotations = map[string]string{r.annotation: a}
	}
	return stripped, nil
}

func asNode(obj any) (*corev1.Node, error) {
	n, ok := obj.(*corev1.Node)
	if !ok {
		return nil, fmt.Errorf("read Node: the API server sent a %T", obj)
	}
	return n, nil
}
