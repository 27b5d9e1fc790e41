package fromskel_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/types/create"
	"github.com/containernetworking/cni/pkg/version"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/cni/fromskel"
)

// cmdAdd is the callback of a plugin that hands out one address.
func cmdAdd(args *skel.CmdArgs) error {
	cniVersion, err := create.DecodeVersion(args.StdinData)
	if err != nil {
		return err
	}
	fmt.Println("a line that somebody left here")
	result := &types100.Result{
		CNIVersion: types100.ImplementedSpecVersion,
		IPs:        []*types100.IPConfig{{Address: net.IPNet{IP: net.IPv4(10, 1, 2, 3), Mask: net.CIDRMask(24, 32)}}},
	}
	return types.PrintResult(result, cniVersion)
}

func cmdDel(*skel.CmdArgs) error { return nil }

func cmdCheck(*skel.CmdArgs) error { return nil }

// The main function of the program is one line, fromskel.Main(funcs, version.All,
// "about"). Here a Process stands for what a container runtime would give to it.
func Example() {
	funcs := skel.CNIFuncs{Add: cmdAdd, Del: cmdDel, Check: cmdCheck}
	plugin := fromskel.Plugin[struct{}](funcs, version.All, "CNI plugin fixed")
	plugin.Status = cni.Ready[struct{}]
	plugin.GC = cni.NoState[struct{}]
	plugin.AllowHostNetNS = true // this one only hands out an address and enters no namespace
	call := func(command string) {
		process := cni.Process{
			Env: []string{
				"CNI_COMMAND=" + command,
				"CNI_CONTAINERID=c1",
				"CNI_NETNS=/proc/self/ns/net",
				"CNI_IFNAME=eth0",
			},
			Stdin:  strings.NewReader(`{"cniVersion": "1.1.0", "name": "lan", "type": "fixed"}`),
			Stdout: os.Stdout,
		}
		fmt.Println("exit code", process.Run(context.Background(), plugin.Handler()))
	}
	call("ADD")
	call("STATUS")
	// Output:
	// a line that somebody left here
	// {"cniVersion":"1.1.0","ips":[{"address":"10.1.2.3/24"}]}
	// exit code 0
	// exit code 0
}
