// Command libcni runs one command of the runtime library libcni, for comparison. It reads a request in JSON and exits with 1 when libcni fails.
// It is built in the module that pins libcni.
//
// Package chain is tested beside it: both runtimes must call plugins alike.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/types"
)

type request struct {
	Command  string
	List     string
	Path     []string
	CacheDir string
	Bare     bool // leave out all parameters that can be
	Valid    []types.GCAttachment
}

func main() {
	var r request
	if err := json.NewDecoder(os.Stdin).Decode(&r); err != nil {
		fail(err)
	}
	if err := r.run(context.Background()); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func (r request) run(ctx context.Context) error {
	list, err := libcni.NetworkConfFromBytes([]byte(r.List))
	if err != nil {
		return err
	}
	rt := &libcni.RuntimeConf{ContainerID: "c1", IfName: "eth0"}
	if !r.Bare {
		rt.NetNS, rt.Args = "/run/netns/c1", [][2]string{{"K", "v"}}
		rt.CapabilityArgs = map[string]any{"mac": "02:00:00:00:00:01"}
	}
	config := libcni.NewCNIConfigWithCacheDir(r.Path, r.CacheDir, nil)
	switch r.Command {
	case "parse":
		fmt.Printf("%s|%s|%s\n", list.Name, list.CNIVersion, list.Plugins[0].Network.Type)
		return nil
	case "add":
		_, err := config.AddNetworkList(ctx, list, rt)
		return err
	case "del":
		return config.DelNetworkList(ctx, list, rt)
	case "check":
		return config.CheckNetworkList(ctx, list, rt)
	case "status":
		return config.GetStatusNetworkList(ctx, list)
	case "gc":
		return config.GCNetworkList(ctx, list, &libcni.GCArgs{ValidAttachments: r.Valid})
	}
	return fmt.Errorf("unknown command %q", r.Command)
}
