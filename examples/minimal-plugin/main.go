// Command minimal-plugin is a whole CNI plugin: behind one that makes the container's
// interface, it tells the runtime which name servers the container shall use.
package main

import (
	"context"

	"github.com/cnikit/cnikit/cni"
)

type config struct {
	DNS cni.DNS `json:"dns"`
}

func main() { cni.Main(plugin().Handler()) }

func plugin() cni.Plugin[config] {
	return cni.Plugin[config]{
		Type:   "minimal-plugin",
		Add:    add,
		Del:    cni.NoState[config],
		Check:  cni.NoState[config],
		Status: cni.Ready[config],
		GC:     cni.NoState[config],
	}
}

func add(_ context.Context, r *cni.Request[config]) (*cni.Result, error) {
	result, err := r.RequirePrevResult()
	if err != nil {
		return nil, err
	}
	result.DNS = r.Config.DNS.Join(result.DNS)
	return result, nil
}
