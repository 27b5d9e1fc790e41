package kube_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"

	"k8s.io/client-go/rest"

	"github.com/cnikit/cnikit/overlay"
	"github.com/cnikit/cnikit/overlay/kube"
)

// cluster answers as the API server of a cluster with one Node does: with the Nodes, and the mark that these are all.
func cluster(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"type": "ADDED", "object": {"apiVersion": "v1", "kind": "Node",
		"metadata": {"name": "node-a", "uid": "1", "resourceVersion": "7"},
		"spec": {"podCIDRs": ["10.1.1.0/24"]},
		"status": {"addresses": [{"type": "InternalIP", "address": "192.0.2.1"}]}}}
	{"type": "BOOKMARK", "object": {"apiVersion": "v1", "kind": "Node",
		"metadata": {"resourceVersion": "7", "annotations": {"k8s.io/initial-events-end": "true"}}}}`)
	w.(http.Flusher).Flush()
	<-r.Context().Done()
}

// printer is a sink that prints the nodes it is given and then ends the source.
type printer struct{ done func() }

func (p printer) Replace(nodes []overlay.Node) {
	for _, n := range nodes {
		fmt.Println(n.Name, n.PodCIDRs, n.Addresses)
	}
	p.done()
}

func (printer) Upsert(overlay.Node) {}
func (printer) Delete(string)       {}

func Example() {
	server := httptest.NewServer(http.HandlerFunc(cluster))
	defer server.Close()

	// In a pod: config, err := kube.Config("")
	source, err := kube.New(&rest.Config{Host: server.URL}, kube.Options{})
	fmt.Println(err)

	ctx, cancel := context.WithCancel(context.Background())
	fmt.Println(source.Run(ctx, printer{cancel}))
	// Output:
	// <nil>
	// node-a [10.1.1.0/24] [192.0.2.1]
	// <nil>
}
