package main

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/cnikit/cnikit/cni/install"
	"github.com/cnikit/cnikit/cni/netif"
	"github.com/cnikit/cnikit/reconcile"
)

// bridgeMark begins the alias of a bridge that the plugin made, see package cni/bridge.
const bridgeMark = "cnikit:bridge"

// gateways is the target that keeps the bridge from being the gateway of Pod CIDRs which
// the node no longer has. The plugin gives the bridge its addresses with the first pod,
// and refuses to attach a pod of other Pod CIDRs beside them; and the kernel would deliver
// on the bridge what is meant for the node that has the Pod CIDR by now.
//
// There is one key, the name of the bridge. Addresses are looked at that the plugin could
// have set, on a bridge that it made; others are somebody else's. Those of the present
// Pod CIDRs may be there or not.
type gateways struct {
	*reconcile.Table[string, []netip.Prefix]
	bridge string

	mu      sync.Mutex
	present []netip.Prefix // last wanted
}

func newGateways(bridge string) *gateways {
	g := &gateways{bridge: bridge}
	g.Table = reconcile.NewTable("bridge addresses", gatewayStore{bridge}, reconcile.TableOptions[string, []netip.Prefix]{
		Phase: bridgePhase,
		Equal: func(desired, observed []netip.Prefix) bool { return len(without(observed, desired)) == 0 },
	})
	return g
}

// want says which Pod CIDRs the node has, and reports whether the bridge is clear of
// others.
func (g *gateways) want(podCIDRs []netip.Prefix, engine *reconcile.Engine) bool {
	var present []netip.Prefix
	for _, cidr := range podCIDRs {
		present = append(present, netip.PrefixFrom(install.Subnet{Prefix: cidr}.FirstGateway(), cidr.Bits()))
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if !slices.Equal(present, g.present) {
		// The plugin does not tell of what it does, so what the engine remembers is old. The
		// look comes first: to compare the new wish with an old look would find nothing wrong.
		g.present = present
		engine.Trigger(g)
		g.Replace(map[string][]netip.Prefix{g.bridge: present})
	}
	for _, t := range engine.Status().Targets {
		if t.Name == g.Name() {
			return t.Converged
		}
	}
	return false
}

// gatewayStore is the kernel.
type gatewayStore struct{ bridge string }

var _ reconcile.Store[string, []netip.Prefix] = gatewayStore{}

// Observe implements [reconcile.Store].
func (s gatewayStore) Observe(context.Context) (map[string][]netip.Prefix, error) {
	host, err := netif.Current()
	if err != nil {
		return nil, err
	}
	defer host.Close()
	has, err := s.look(host)
	if err != nil {
		return nil, err
	}
	return map[string][]netip.Prefix{s.bridge: has}, nil
}

// look returns the gateway addresses of the bridge, none of one that the plugin has not
// made.
func (s gatewayStore) look(host *netif.Namespace) ([]netip.Prefix, error) {
	link, err := host.Link(s.bridge)
	if errors.Is(err, netif.ErrNotFound) || err == nil && (link.Kind != "bridge" || !strings.HasPrefix(link.Alias, bridgeMark)) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	has, err := host.Addresses(s.bridge)
	if errors.Is(err, netif.ErrNotFound) {
		return nil, nil
	}
	return slices.DeleteFunc(has, func(p netip.Prefix) bool { return p.Addr() != p.Masked().Addr().Next() }), err
}

// Apply implements [reconcile.Store]: it removes the gateways of other Pod CIDRs and sets
// the present ones, so that an ADD under way with the old conflist is refused instead of
// bringing the others back.
func (s gatewayStore) Apply(ctx context.Context, _ string, present []netip.Prefix, _ *[]netip.Prefix) error {
	host, err := netif.Current()
	if err != nil {
		return err
	}
	defer host.Close()
	unlock, err := host.Lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	has, err := s.look(host)
	if err != nil {
		return err
	}
	gone := without(has, present)
	if len(gone) == 0 {
		return nil
	}
	if err := host.RevertAddresses(s.bridge, netif.AddressChange{Added: gone}); err != nil {
		return err
	}
	_, err = host.SetGateways(s.bridge, present, false)
	return err
}

// Delete implements [reconcile.Store]. Nobody wants the key away: the plugin's Cleanup
// removes the bridge.
func (s gatewayStore) Delete(context.Context, string, []netip.Prefix) error { return nil }

// without returns the elements of all that are not among some.
func without(all, some []netip.Prefix) []netip.Prefix {
	return slices.DeleteFunc(slices.Clone(all), func(p netip.Prefix) bool { return slices.Contains(some, p) })
}
