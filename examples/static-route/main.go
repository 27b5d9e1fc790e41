// Command static-route is a complete chained CNI plugin in one file. Behind a plugin that
// makes the container's interface, it adds the routes of its configuration to it:
//
//	{"type": "static-route", "routes": [{"dst": "198.51.100.0/24", "via": "10.1.0.1"}]}
package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/cni/netif"
)

func main() { cni.Main(plugin().Handler()) }

func plugin() cni.Plugin[config] {
	return cni.Plugin[config]{
		Type: "static-route", About: "CNI plugin that adds routes behind a plugin that makes an interface",
		Add: add, Del: del, Check: check,
		Status: cni.Ready[config],   // an ADD needs nothing that could be missing
		GC:     cni.NoState[config], // the routes go with the container
	}
}

// config is what the plugin reads of its entry in the network configuration.
type config struct {
	Routes []netif.Route `json:"routes"` // keys: dst, via, mtu, advmss, priority, table, scope
}

// Validate runs before ADD, CHECK and STATUS; what it finds reaches the runtime as code 7.
func (c config) Validate() error {
	if len(c.Routes) == 0 {
		return &cni.FieldError{Key: "routes", Value: c.Routes, Reason: "is empty", Fix: "name a route, or leave the plugin out"}
	}
	for i, route := range c.Routes {
		var invalid *netif.InvalidRoute
		if errors.As(route.Validate(), &invalid) {
			key := fmt.Sprintf("routes[%d].%s", i, strings.ToLower(invalid.Field))
			return &cni.FieldError{Key: key, Value: invalid.Value, Reason: invalid.Reason, Fix: invalid.Fix}
		}
	}
	return nil
}

// explain names the key of a route that a container cannot have beside one that is there.
func (c config) explain(err error) error {
	var conflict *netif.RouteConflict
	if !errors.As(err, &conflict) {
		return err
	}
	i := slices.IndexFunc(c.Routes, conflict.Route.Equal)
	return &cni.FieldError{Key: fmt.Sprintf("routes[%d].dst", i), Value: conflict.Route.Dst, Reason: conflict.Error(),
		Fix: "leave the route out, or give it a priority of its own"}
}

// add returns what the plugins before it made, and its own routes.
func add(_ context.Context, r *cni.Request[config]) (*cni.Result, error) {
	result, err := r.RequirePrevResult()
	if err != nil {
		return nil, err
	}
	err = inside(r, func(pod *netif.Namespace) error { return pod.AddRoutes(r.IfName, r.Config.Routes...) })
	if err != nil {
		return nil, r.Config.explain(err)
	}
	r.Undo("delete the routes", func(ctx context.Context) error { return del(ctx, r) })
	for _, route := range r.Config.Routes {
		result.Routes = append(result.Routes, cni.Route{Dst: route.Dst, GW: route.Via, MTU: route.MTU, AdvMSS: route.AdvMSS,
			Priority: route.Priority, Table: route.Table, Scope: route.Scope})
	}
	return result, nil
}

// del succeeds when nothing is left to delete: a runtime may repeat it. The path of the
// namespace may lead to another container by then, whose routes stay.
func del(_ context.Context, r *cni.Request[config]) error {
	if r.NetNS.Gone {
		return nil
	}
	return inside(r, func(pod *netif.Namespace) error {
		made, _ := r.PrevResult.Interface(r.IfName, r.NetNS.Path)
		link, err := pod.Link(r.IfName)
		if err == nil && made.MAC != "" && !strings.EqualFold(made.MAC, link.MAC.String()) {
			return nil
		}
		return pod.DeleteRoutes(r.IfName, r.Config.Routes...)
	})
}

// check says which routes are not as the ADD left them.
func check(_ context.Context, r *cni.Request[config]) error {
	return inside(r, func(pod *netif.Namespace) error {
		has, err := pod.Routes(r.IfName)
		for _, route := range r.Config.Routes {
			if err == nil && !slices.ContainsFunc(has, route.Equal) {
				err = fmt.Errorf("%s has lost its route %s", r.IfName, route)
			}
		}
		return err
	})
}

func inside(r *cni.Request[config], fn func(pod *netif.Namespace) error) error {
	pod, err := netif.Open(r.NetNS.Path)
	if err != nil {
		return err
	}
	defer pod.Close()
	return fn(pod)
}
