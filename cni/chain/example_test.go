package chain_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/cni/chain"
)

type config struct {
	MTU int `json:"mtu"`
}

// plugin is a plugin that touches nothing and tells what it is asked to do.
func plugin(name string, add func(*cni.Request[config]) (*cni.Result, error)) cni.Handler {
	tell := func(_ context.Context, r *cni.Request[config]) error {
		fmt.Println(r.Command, name, r.ContainerID)
		return nil
	}
	return cni.Plugin[config]{
		Type: name,
		Add: func(ctx context.Context, r *cni.Request[config]) (*cni.Result, error) {
			_ = tell(ctx, r)
			return add(r)
		},
		Del: tell, Check: tell, Status: tell, GC: tell,
		AllowHostNetNS: true, // nothing is touched, so any namespace does
	}.Handler()
}

// A runner attaches containers to a network. The plugins of this one are part of the program; without an Executor they are executables in Path.
func Example() {
	list, err := chain.Parse([]byte(`{
		"cniVersion": "1.1.0",
		"name": "pods",
		"plugins": [{"type": "address"}, {"type": "limit", "mtu": 1450}]
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	cacheDir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(cacheDir) }()

	runner := chain.Runner{CacheDir: cacheDir, Executor: cni.Builtin{
		"address": plugin("address", func(*cni.Request[config]) (*cni.Result, error) {
			return &cni.Result{IPs: []cni.IP{{Address: netip.MustParsePrefix("10.244.1.7/24")}}}, nil
		}),
		"limit": plugin("limit", func(r *cni.Request[config]) (*cni.Result, error) {
			if r.Config.MTU < 1280 {
				return nil, errors.New("mtu: want at least 1280")
			}
			return r.PrevResult, nil
		}),
	}}
	ctx := context.Background()
	pod := chain.Attachment{ContainerID: "c1", NetNS: "/proc/self/ns/net", IfName: "eth0"}

	result, err := runner.Add(ctx, list, pod)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("address:", result.IPs[0].Address)
	fmt.Println("check:", runner.Check(ctx, list, pod))
	fmt.Println("del:", runner.Del(ctx, list, pod))
	fmt.Println("not attached any more:", errors.Is(runner.Check(ctx, list, pod), chain.ErrNotAttached))
	// Output:
	// ADD address c1
	// ADD limit c1
	// address: 10.244.1.7/24
	// CHECK address c1
	// CHECK limit c1
	// check: <nil>
	// DEL limit c1
	// DEL address c1
	// del: <nil>
	// not attached any more: true
}
