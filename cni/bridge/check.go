package bridge

import (
	"context"
	"fmt"
	"slices"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/cni/netif"
)

func check(ctx context.Context, r *cni.Request[Config]) error {
	if err := cni.CheckWith[Config](netif.Verify)(ctx, r); err != nil {
		return err
	}
	if err := checkNode(r); err != nil {
		return err
	}
	if r.Config.IPAM.Type == "" {
		return nil
	}
	return r.Delegate(r.Config.IPAM.Type).Check(ctx)
}

// checkNode looks at the node's side: the bridge, its addresses and the port.
func checkNode(r *cni.Request[Config]) error {
	node, err := netif.Current()
	if err != nil {
		return err
	}
	defer node.Close()
	if err := checkBridgeName(node, r.Config); err != nil {
		return err
	}
	bridge, err := node.Link(r.Config.bridge())
	if err != nil {
		return fmt.Errorf("check bridge: %w", err)
	}
	if !bridge.Up {
		return fmt.Errorf("bridge %q is switched off", bridge.Name)
	}
	if err := checkPort(node, r, bridge); err != nil {
		return err
	}
	if !r.Config.gateway() {
		return nil
	}
	return checkGateways(node, r, bridge)
}

func checkPort(node *netif.Namespace, r *cni.Request[Config], bridge netif.Link) error {
	name := netif.HostName(r.ContainerID, r.IfName)
	host, err := node.Link(name)
	if err != nil {
		return fmt.Errorf("check the node's end of %s: %w", r.IfName, err)
	}
	inPod, err := containerEnd(r)
	if err != nil {
		return err
	}
	switch {
	case host.Peer != inPod.Index || inPod.Peer != host.Index:
		return fmt.Errorf("%q is not the other end of the container's %s", name, r.IfName)
	case host.Master != bridge.Index:
		return fmt.Errorf("%q is no port of the bridge %q", name, bridge.Name)
	}
	port, err := node.Port(name)
	if err != nil {
		return err
	}
	if port.Hairpin != r.Config.HairpinMode {
		return fmt.Errorf("hairpin mode of %q is %t, not %t as configured", name, port.Hairpin, r.Config.HairpinMode)
	}
	return nil
}

func containerEnd(r *cni.Request[Config]) (netif.Link, error) {
	pod, err := netif.Open(r.NetNS.Path)
	if err != nil {
		return netif.Link{}, err
	}
	defer pod.Close()
	return pod.Link(r.IfName)
}

// checkGateways takes the gateways from the previous result, where they are those of
// the container's own interface.
func checkGateways(node *netif.Namespace, r *cni.Request[Config], bridge netif.Link) error {
	has, err := node.Addresses(bridge.Name)
	if err != nil {
		return err
	}
	var own []cni.IP
	for _, ip := range r.PrevResult.IPs {
		if i := ip.Interface; i != nil && *i < len(r.PrevResult.Interfaces) && r.PrevResult.Interfaces[*i].Name == r.IfName {
			own = append(own, ip)
		}
	}
	for _, gateway := range gatewaysOf(own) {
		if !slices.Contains(has, gateway) {
			return fmt.Errorf("bridge %q has lost the gateway address %s", bridge.Name, gateway)
		}
	}
	return nil
}
