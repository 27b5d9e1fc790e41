package bridge

import (
	"context"
	"errors"
	"fmt"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/cni/netif"
)

// join sees to the bridge and its addresses and makes the link a port, switched off. It
// holds the node's lock, so that an ADD that fails beside this one does not take away
// what this one found.
func (a *attachment) join(ctx context.Context) error {
	unlock, err := a.node.Lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	c := a.r.Config
	bridge, err := a.ensureBridge()
	if err != nil {
		return err
	}
	ports, err := a.node.Ports(bridge.Name)
	if err != nil {
		return err
	}
	mtu, err := linkMTU(c, &a.layout, bridge, ports)
	if err != nil {
		return err
	}
	if c.gateway() {
		if err := a.setGateways(bridge.Name, ports); err != nil {
			return err
		}
	}
	return a.plug(bridge.Name, mtu)
}

// plug makes the veth pair and the node's end a port.
func (a *attachment) plug(bridge string, mtu int) error {
	if err := a.removeLeftover(); err != nil {
		return err
	}
	veth := netif.Veth{Name: a.host, Alias: a.owner.alias(), Peer: a.r.IfName, MTU: mtu}
	if _, _, err := a.node.CreateVeth(veth, a.pod); err != nil {
		if _, e := a.pod.Link(a.r.IfName); e == nil {
			return a.taken()
		}
		return err
	}
	a.undo("remove the veth pair", func(_ context.Context, node *netif.Namespace) error {
		return node.DeleteLink(a.host)
	})
	return a.node.SetPort(a.host, bridge, netif.PortOptions{Hairpin: a.r.Config.HairpinMode})
}

// setGateways registers how to take the addresses away again, unless a port joined the
// bridge in the meantime, whose container then relies on them.
func (a *attachment) setGateways(bridge string, ports []netif.Link) error {
	change, err := a.node.SetGateways(bridge, a.layout.gateways(), a.r.Config.ForceAddress)
	if err != nil {
		return explainAddress(a.r.Config, err)
	}
	if change.Empty() {
		return nil
	}
	a.undo("take back the gateway addresses", func(ctx context.Context, node *netif.Namespace) error {
		unlock, err := node.Lock(ctx)
		if err != nil {
			return err
		}
		defer unlock()
		now, err := node.Ports(bridge)
		if errors.Is(err, netif.ErrNotFound) || err == nil && joined(ports, now) {
			return nil
		}
		return errors.Join(err, node.RevertAddresses(bridge, change))
	})
	return nil
}

// joined reports whether now has a port that before has not.
func joined(before, now []netif.Link) bool {
	known := map[int]bool{}
	for _, port := range before {
		known[port.Index] = true
	}
	for _, port := range now {
		if !known[port.Index] {
			return true
		}
	}
	return false
}

func explainAddress(c Config, err error) error {
	var conflict *netif.AddressConflict
	if !errors.As(err, &conflict) {
		return err
	}
	return &cni.FieldError{Key: "bridge", Value: c.bridge(),
		Reason: fmt.Sprintf("it has the address %s, beside which it cannot be the gateway %s", conflict.Has, conflict.Wanted),
		Fix:    "remove that address, name another bridge, or set forceAddress to true to have it replaced"}
}

// undo registers a step back with a handle of its own: those of the ADD are closed by
// the time it runs.
func (a *attachment) undo(what string, fn func(context.Context, *netif.Namespace) error) {
	a.r.Undo(what, func(ctx context.Context) error {
		node, err := netif.Current()
		if err != nil {
			return err
		}
		defer node.Close()
		return fn(ctx, node)
	})
}
