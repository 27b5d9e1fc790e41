package plugin_test

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"strings"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/ipam"
	"github.com/cnikit/cnikit/ipam/plugin"
)

// The plugin as its executable runs it, with cni.Process in place of cni.Main.
func Example() {
	dataDir, err := os.MkdirTemp("", "networks")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dataDir) }()
	process := cni.Process{
		Env: []string{"CNI_COMMAND=ADD", "CNI_CONTAINERID=web", "CNI_IFNAME=eth0", "CNI_NETNS=/proc/self/ns/net"},
		Stdin: strings.NewReader(`{
			"cniVersion": "1.1.0", "name": "mynet", "type": "bridge",
			"ipam": {
				"type": "cnikit-ipam", "dataDir": "` + dataDir + `",
				"ranges": [[{"subnet": "10.1.0.0/24"}], [{"subnet": "fd00:1::/64"}]],
				"routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}]
			}
		}`),
		Stdout: os.Stdout,
	}
	process.Run(context.Background(), plugin.Plugin().Handler())
	// Output:
	// {"cniVersion":"1.1.0","ips":[{"address":"10.1.0.2/24","gateway":"10.1.0.1"},{"address":"fd00:1::2/64","gateway":"fd00:1::1"}],"routes":[{"dst":"0.0.0.0/0"},{"dst":"::/0"}]}
}

// Any allocator can be served, here one in memory, and built into the plugin that
// delegates to it.
func ExampleOver() {
	store := ipam.NewMemory(ipam.MemoryOptions{})
	inMemory := plugin.Over("memory", func(_ *cni.Request[plugin.Config], sets []ipam.RangeSet) (ipam.Allocator, error) {
		return ipam.NewPool(store, ipam.PoolOptions{}, sets...)
	})
	delegates := cni.Builtin{"memory": inMemory.Handler()}

	out, err := delegates.Execute(context.Background(), "memory", cni.Invocation{
		Command: cni.CommandAdd, ContainerID: "web", IfName: "eth0", NetNS: "/proc/self/ns/net",
		Config: []byte(`{"cniVersion": "1.1.0", "name": "mynet", "ipam": {"type": "memory", "subnet": "10.1.0.0/24"}}`),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := cni.ParseResult(out, "1.1.0")
	fmt.Println(result.IPs[0].Address, err)

	o := ipam.Owner{ContainerID: "web", IfName: "eth0"}
	pool, _ := ipam.NewPool(store, ipam.PoolOptions{}, ipam.RangeSet{{Subnet: netip.MustParsePrefix("10.1.0.0/24")}})
	leases, err := pool.Leases(context.Background(), o)
	fmt.Println(leases, err)
	// Output:
	// 10.1.0.2/24 <nil>
	// [10.1.0.2/24 web/eth0] <nil>
}
