package file_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/cnikit/cnikit/overlay"
	"github.com/cnikit/cnikit/overlay/file"
)

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
	dir, err := os.MkdirTemp("", "topology")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()

	path := filepath.Join(dir, "topology.json")
	err = file.Write(path, []overlay.Node{
		{Name: "node-a", UID: "1", PodCIDRs: []string{"10.1.1.0/24"}, Addresses: []string{"192.0.2.1"}},
		{Name: "node-b", UID: "2", PodCIDRs: []string{"10.1.2.0/24"}, Addresses: []string{"192.0.2.2"}},
	})
	fmt.Println(err)

	ctx, cancel := context.WithCancel(context.Background())
	fmt.Println(file.New(path, file.Options{}).Run(ctx, printer{cancel}))
	// Output:
	// <nil>
	// node-a [10.1.1.0/24] [192.0.2.1]
	// node-b [10.1.2.0/24] [192.0.2.2]
	// <nil>
}
