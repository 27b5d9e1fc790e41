package main

import (
	"github.com/cnikit/cnikit/overlay"
	"github.com/cnikit/cnikit/overlay/file"
	"github.com/cnikit/cnikit/overlay/kube"
)

// The sources of nodes.
const (
	sourceFile = "file"
	sourceKube = "kube"

	defaultTopology = "/etc/cnikit/topology.json"
)

// newSource returns the source that the options name. What is wrong with it is told by
// trouble as long as it lasts.
func (a *agent) newSource() (overlay.Source, error) {
	good := func() { a.onTrouble(nil) }
	if a.opts.source == sourceFile {
		return file.New(a.opts.topology, file.Options{Log: a.log, OnError: a.onTrouble, OnGood: good}), nil
	}
	config, err := kube.Config(a.opts.kubeconfig)
	if err != nil {
		return nil, err
	}
	source, err := kube.New(config, kube.Options{Log: a.log, OnError: a.onTrouble, OnGood: good})
	if err != nil {
		return nil, err
	}
	return source, nil
}
