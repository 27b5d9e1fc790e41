package fromskel_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/version"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/cni/fromskel"
)

// This file is the plugin of docs/migrating-from-skel.md in all its stages.

const about = "CNI plugin search v1.0.0"

// searchConf is the configuration, as plugins for skel have it.
type searchConf struct {
	types.PluginConf
	Search []string `json:"search"`
}

func loadConf(stdin []byte) (*searchConf, *types100.Result, error) {
	conf := &searchConf{}
	if err := json.Unmarshal(stdin, conf); err != nil {
		return nil, nil, fmt.Errorf("failed to load netconf: %w", err)
	}
	if err := version.ParsePrevResult(&conf.PluginConf); err != nil {
		return nil, nil, err
	}
	if conf.PrevResult == nil {
		return nil, nil, errors.New("must be called as a chained plugin")
	}
	result, err := types100.NewResultFromResult(conf.PrevResult)
	return conf, result, err
}

func searchAdd(args *skel.CmdArgs) error {
	conf, result, err := loadConf(args.StdinData)
	if err != nil {
		return err
	}
	result.DNS.Search = append(result.DNS.Search, conf.Search...)
	return types.PrintResult(result, conf.CNIVersion)
}

func searchCheck(args *skel.CmdArgs) error {
	conf, result, err := loadConf(args.StdinData)
	if err != nil {
		return err
	}
	for _, domain := range conf.Search {
		if !slices.Contains(result.DNS.Search, domain) {
			return fmt.Errorf("search domain %s is missing", domain)
		}
	}
	return nil
}

func searchDel(*skel.CmdArgs) error { return nil }

func noop(*skel.CmdArgs) error { return nil }

// The main functions of the stages.

func mainWithSkel() {
	funcs := skel.CNIFuncs{Add: searchAdd, Del: searchDel, Check: searchCheck}
	skel.PluginMainFuncs(funcs, version.All, about)
}

func mainWithCallbacks() {
	funcs := skel.CNIFuncs{Add: searchAdd, Del: searchDel, Check: searchCheck, Status: noop, GC: noop}
	fromskel.Main(funcs, version.All, about)
}

func mainHalfWay() {
	funcs := skel.CNIFuncs{Add: searchAdd, Check: searchCheck}
	plugin := fromskel.Plugin[searchConfig](funcs, version.All, about)
	plugin.Del = cni.NoState[searchConfig]
	plugin.Status = cni.Ready[searchConfig]
	plugin.GC = cni.NoState[searchConfig]
	cni.Main(plugin.Handler())
}

func mainTyped() { cni.Main(searchPlugin().Handler()) }

// searchConfig is the configuration: the plugin's own keys. What the specification
// defines is in the request.
type searchConfig struct {
	Search []string `json:"search"`
}

// Validate runs before ADD, CHECK and STATUS. What it finds reaches the runtime as code 7.
func (c searchConfig) Validate() error {
	for _, domain := range c.Search {
		if strings.ContainsAny(domain, " /") {
			return &cni.FieldError{Key: "search", Value: domain, Reason: "is not a domain"}
		}
	}
	return nil
}

func searchPlugin() cni.Plugin[searchConfig] {
	return cni.Plugin[searchConfig]{
		Type:   "search",
		About:  about,
		Add:    addSearch,
		Del:    cni.NoState[searchConfig], // an ADD leaves nothing behind
		Check:  checkSearch,
		Status: cni.Ready[searchConfig], // and needs nothing that could be missing
		GC:     cni.NoState[searchConfig],
	}
}

func addSearch(_ context.Context, r *cni.Request[searchConfig]) (*cni.Result, error) {
	result, err := r.RequirePrevResult()
	if err != nil {
		return nil, err
	}
	result.DNS.Search = append(result.DNS.Search, r.Config.Search...)
	return result, nil
}

func checkSearch(_ context.Context, r *cni.Request[searchConfig]) error {
	result, err := r.RequirePrevResult()
	if err != nil {
		return err
	}
	for _, domain := range r.Config.Search {
		if !slices.Contains(result.DNS.Search, domain) {
			return fmt.Errorf("search domain %s is missing", domain)
		}
	}
	return nil
}
