package cni_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strings"

	"github.com/cnikit/cnikit/cni"
)

// config is what the plugin of the example reads from standard input.
type config struct {
	Address netip.Prefix `json:"address"`
}

// Validate runs before ADD, CHECK and STATUS.
func (c config) Validate() error {
	if !c.Address.Addr().Is4() {
		return &cni.FieldError{Key: "address", Value: c.Address, Reason: "is no IPv4 address", Fix: "use one such as 10.1.2.3/24"}
	}
	return nil
}

func add(_ context.Context, r *cni.Request[config]) (*cni.Result, error) {
	r.Log.Info("logs go to standard error")
	return &cni.Result{IPs: []cni.IP{{Address: r.Config.Address}}}, nil
}

// A plugin is a value. Its program is one line, cni.Main(plugin.Handler()). Here a
// Process stands for what a container runtime would give to it.
func Example() {
	plugin := cni.Plugin[config]{
		Type:           "fixed",
		Add:            add,
		Del:            cni.NoState[config],
		Check:          cni.NoState[config],
		Status:         cni.Ready[config],
		GC:             cni.NoState[config],
		AllowHostNetNS: true, // this one only hands out an address and enters no namespace
	}
	call := func(command, config string) {
		process := cni.Process{
			Env: []string{
				"CNI_COMMAND=" + command,
				"CNI_CONTAINERID=c1",
				"CNI_NETNS=/proc/self/ns/net",
				"CNI_IFNAME=eth0",
			},
			Stdin:  strings.NewReader(config),
			Stdout: os.Stdout,
		}
		fmt.Println("exit code", process.Run(context.Background(), plugin.Handler()))
	}
	call("ADD", `{"cniVersion": "1.1.0", "name": "lan", "type": "fixed", "address": "10.1.2.3/24"}`)
	call("ADD", `{"cniVersion": "0.4.0", "name": "lan", "type": "fixed", "address": "10.1.2.3/24"}`)
	call("ADD", `{"cniVersion": "1.1.0", "name": "lan", "type": "fixed", "address": "fd00::3/64"}`)
	call("STATUS", `{"cniVersion": "1.0.0", "name": "lan", "type": "fixed", "address": "10.1.2.3/24"}`)
	// Output:
	// {"cniVersion":"1.1.0","ips":[{"address":"10.1.2.3/24"}]}
	// exit code 0
	// {"cniVersion":"0.4.0","ips":[{"version":"4","address":"10.1.2.3/24"}]}
	// exit code 0
	// {"cniVersion":"1.1.0","code":7,"msg":"invalid configuration: address=\"fd00::3/64\": is no IPv4 address; use one such as 10.1.2.3/24"}
	// exit code 1
	// {"cniVersion":"1.0.0","code":1,"msg":"config version does not allow STATUS"}
	// exit code 1
}

// Two plugins become one, which is executed as one: the second gets the result of the
// first, and its failure would undo the first.
func ExampleChain() {
	type resolver struct {
		DNS cni.DNS `json:"dns"`
	}
	address := cni.Plugin[config]{
		Type: "address", Add: add, AllowHostNetNS: true,
		Del: cni.NoState[config], Check: cni.NoState[config], Status: cni.Ready[config], GC: cni.NoState[config],
	}
	names := cni.Plugin[resolver]{
		Type: "names", AllowHostNetNS: true,
		Add: func(_ context.Context, r *cni.Request[resolver]) (*cni.Result, error) {
			result, err := r.RequirePrevResult()
			if err == nil {
				result.DNS = r.Config.DNS.Join(result.DNS)
			}
			return result, err
		},
		Del: cni.NoState[resolver], Check: cni.NoState[resolver], Status: cni.Ready[resolver], GC: cni.NoState[resolver],
	}
	process := cni.Process{
		Env:    []string{"CNI_COMMAND=ADD", "CNI_CONTAINERID=c1", "CNI_NETNS=/proc/self/ns/net", "CNI_IFNAME=eth0"},
		Stdin:  strings.NewReader(`{"cniVersion": "1.1.0", "name": "lan", "type": "both", "address": "10.1.2.3/24", "dns": {"nameservers": ["10.1.2.1"]}}`),
		Stdout: os.Stdout,
	}
	process.Run(context.Background(), cni.Chain(address.Handler(), names.Handler()))
	// Output: {"cniVersion":"1.1.0","ips":[{"address":"10.1.2.3/24"}],"dns":{"nameservers":["10.1.2.1"]}}
}

// A plugin that makes an interface has another one give it the addresses. The type in its
// configuration is that of an executable in CNI_PATH, or as here of a plugin linked in.
func ExampleRequest_Delegate() {
	type delegating struct {
		IPAM struct {
			Type string `json:"type"`
		} `json:"ipam"`
	}
	type request = cni.Request[delegating]
	ipam := func(r *request) *cni.Delegate { return r.Delegate(r.Config.IPAM.Type) }
	addresses := cni.Plugin[config]{
		Type: "addresses", Add: add, AllowHostNetNS: true,
		Del: cni.NoState[config], Check: cni.NoState[config], Status: cni.Ready[config], GC: cni.NoState[config],
	}
	checkVacant := func(_, ifName string) error { // stands for netif.CheckVacant
		if ifName == "lo" {
			return errors.New("interface exists")
		}
		return nil
	}
	plugin := cni.Plugin[delegating]{
		Type: "delegating", Delegates: cni.Builtin{"addresses": addresses.Handler()}, AllowHostNetNS: true,
		Add: func(ctx context.Context, r *request) (*cni.Result, error) {
			// A second ADD must not cost the first one its addresses.
			if err := checkVacant(r.NetNS.Path, r.IfName); err != nil {
				return nil, cni.Errorf(cni.CodeInvalidEnvironment, "CNI_IFNAME=%q cannot be used: %w", r.IfName, err)
			}
			result, err := ipam(r).Add(ctx)
			if err != nil {
				return nil, err
			}
			result.Interfaces = []cni.Interface{{Name: r.IfName, Sandbox: r.NetNS.Path}} // the interface would be made here
			return result, nil
		},
		Del:    func(ctx context.Context, r *request) error { return ipam(r).Del(ctx) },
		Check:  func(ctx context.Context, r *request) error { return ipam(r).Check(ctx) },
		Status: func(ctx context.Context, r *request) error { return ipam(r).Status(ctx) },
		GC:     func(ctx context.Context, r *request) error { return ipam(r).GC(ctx) },
	}
	for _, ifName := range []string{"pod0", "lo"} {
		process := cni.Process{
			Env:    []string{"CNI_COMMAND=ADD", "CNI_CONTAINERID=c1", "CNI_NETNS=/proc/self/ns/net", "CNI_IFNAME=" + ifName},
			Stdin:  strings.NewReader(`{"cniVersion": "1.1.0", "name": "lan", "type": "delegating", "ipam": {"type": "addresses"}, "address": "10.1.2.3/24"}`),
			Stdout: os.Stdout,
		}
		process.Run(context.Background(), plugin.Handler())
	}
	// Output:
	// {"cniVersion":"1.1.0","interfaces":[{"name":"pod0","sandbox":"/proc/self/ns/net"}],"ips":[{"address":"10.1.2.3/24"}]}
	// {"cniVersion":"1.1.0","code":4,"msg":"CNI_IFNAME=\"lo\" cannot be used: interface exists"}
}

func ExampleDecodeArgs() {
	type pod struct {
		Namespace string `cni:"K8S_POD_NAMESPACE"`
		Name      string `cni:"K8S_POD_NAME"`
	}
	args, _ := cni.ParseArgs("IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=web-0;K8S_POD_UID=5;")
	decoded, err := cni.DecodeArgs[pod](args)
	fmt.Println(decoded.Namespace, decoded.Name, err)
	_, err = cni.DecodeArgs[pod](cni.Args{{Key: "MAC", Value: "02:00:00:00:00:01"}})
	fmt.Println(err)
	// Output:
	// default web-0 <nil>
	// invalid CNI_ARGS: MAC="02:00:00:00:00:01": is unknown to this plugin; leave it out, or add IgnoreUnknown=true
}
