package datapath_test

import (
	"github.com/cilium/ebpf"

	"github.com/cnikit/cnikit/datapath"
)

// instrument puts the hooks of an object file around the program "xdp" of a collection.
func instrument(spec *ebpf.CollectionSpec, object string, limit uint32) (*datapath.Plan, error) {
	hooks, err := ebpf.LoadCollectionSpec(object)
	if err != nil {
		return nil, err
	}
	if err := hooks.Variables["limit"].Set(limit); err != nil {
		return nil, err
	}
	return datapath.NewPlan(spec, []datapath.Hook{
		{Owner: "acme", Name: "long", Entrypoint: "xdp", Kind: datapath.Pre, Collection: hooks, Program: "drop_long"},
		{Owner: "acme", Name: "reflect", Entrypoint: "xdp", Kind: datapath.Post, Collection: hooks, Program: "reflect"},
		{Owner: "acme", Name: "account", Entrypoint: "xdp", Kind: datapath.Observer, Collection: hooks, Program: "account"},
	}, datapath.Options{})
}
