package install_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/cnikit/cnikit/cni/install"
	"github.com/cnikit/cnikit/reconcile"
)

// An agent keeps a conflist in place: it renders it, wants it, and an engine writes it.
func Example() {
	dir, err := os.MkdirTemp("", "net.d")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()

	const name = "10-pods.conflist"
	files, err := install.NewFiles("conflist", dir, install.Options{Names: []string{name}})
	if err != nil {
		fmt.Println(err)
		return
	}
	content, err := install.Conflist(install.Network{
		Name: "pods", Bridge: "cni0", MTU: 1450,
		Subnets: []install.Subnet{{Prefix: netip.MustParsePrefix("10.1.2.0/24")}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	files.Replace(map[string]install.File{name: {Content: content}})

	ctx, cancel := context.WithCancel(context.Background())
	engine, err := reconcile.New(reconcile.Options{
		Targets: []reconcile.Target{files},
		OnRound: func(r reconcile.Round) { fmt.Println("written:", r.Applied); cancel() },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	plan, _ := engine.Plan(ctx)
	fmt.Print(plan)
	_ = engine.Run(ctx) // an agent also runs files.Watch(ctx, engine.Trigger)
	written, err := os.ReadFile(filepath.Join(dir, name))
	fmt.Println(len(written) == len(content), err)
	// Output:
	// conflist (phase 0):
	//   + 10-pods.conflist: -rw-r--r--, 489 bytes
	// written: 1
	// true <nil>
}

func ExampleConflist() {
	_, err := install.Conflist(install.Network{
		Name: "pods", Bridge: "cni0",
		Subnets: []install.Subnet{{Prefix: netip.MustParsePrefix("10.1.2.0/24"), Gateway: netip.MustParseAddr("10.9.9.1")}},
	})
	fmt.Println(err)
	// Output:
	// ipam.ranges[0].gateway="10.9.9.1": is not in the subnet 10.1.2.0/24; use an address of it that pods could have, such as 10.1.2.1
}

// An operator brings other plugins: a template says how their conflist follows the network.
func ExampleTemplate() {
	template, err := install.ParseTemplate(`{
		"cniVersion": "1.0.0",
		"name": {{json .Name}},
		"plugins": [{
			"type": "bridge", "bridge": {{json .Bridge}}, "mtu": {{.MTU}}, "isDefaultGateway": true,
			"ipam": {"type": "host-local", "ranges": [
				{{- range $i, $s := .Subnets}}{{if $i}},{{end}}[{"subnet": {{json .Prefix}}, "gateway": {{json .FirstGateway}}}]{{end -}}
			]}
		}]
	}`)
	if err != nil {
		fmt.Println(err)
		return
	}
	conflist, err := template.Render(install.Network{
		Name: "pods", Bridge: "cni0", MTU: 1450,
		Subnets: []install.Subnet{{Prefix: netip.MustParsePrefix("10.1.2.0/24")}},
	})
	fmt.Print(string(conflist), err)
	// Output:
	// {
	//   "cniVersion": "1.0.0",
	//   "name": "pods",
	//   "plugins": [
	//     {
	//       "type": "bridge",
	//       "bridge": "cni0",
	//       "mtu": 1450,
	//       "isDefaultGateway": true,
	//       "ipam": {
	//         "type": "host-local",
	//         "ranges": [
	//           [
	//             {
	//               "subnet": "10.1.2.0/24",
	//               "gateway": "10.1.2.1"
	//             }
	//           ]
	//         ]
	//       }
	//     }
	//   ]
	// }
	// <nil>
}

// An install command brings the plugins that lie beside it, and an uninstall command removes them.
func ExampleExecutables() {
	ctx := context.Background()
	bin, _ := os.MkdirTemp("", "bin")
	from, _ := os.MkdirTemp("", "image")
	defer func() { _ = errors.Join(os.RemoveAll(bin), os.RemoveAll(from)) }()
	_ = os.WriteFile(filepath.Join(from, "my-plugin"), []byte("#!/bin/sh\n"), 0o755)

	plugins, err := install.NewExecutables("plugins", bin, install.ExecutablesOptions{
		From: from, Names: []string{"my-plugin"}, Owner: "my-agent",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	engine, _ := reconcile.New(reconcile.Options{Targets: []reconcile.Target{plugins}})
	plan, _ := engine.Plan(ctx) // an agent runs the engine and plugins.Watch(ctx, engine.Trigger)
	fmt.Print(plan)
	fmt.Println("install:", plugins.Install(ctx))
	plan, _ = engine.Plan(ctx)
	fmt.Print(plan)

	// Somebody else's plugin of the same name is not touched.
	fmt.Println("uninstall:", plugins.Cleanup(ctx))
	_ = os.WriteFile(filepath.Join(bin, "my-plugin"), []byte("#!/bin/bash\n"), 0o755)
	fmt.Println("foreign:", errors.Is(plugins.Install(ctx), install.ErrForeign))
	// Output:
	// plugins (phase 0):
	//   + my-plugin: -rwxr-xr-x, 10 bytes, sha256 a8076d3d28d2
	// install: <nil>
	// plugins (phase 0): nothing to do
	// uninstall: <nil>
	// foreign: true
}
