package bridge

import (
	"context"
	"errors"
	"net/netip"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/cni/netif"
)

func add(ctx context.Context, r *cni.Request[Config]) (*cni.Result, error) {
	node, err := netif.Current()
	if err != nil {
		return nil, err
	}
	defer node.Close()
	pod, err := netif.Open(r.NetNS.Path)
	if err != nil {
		return nil, err
	}
	defer pod.Close()
	warnTypos(r.Log, r.RawConfig)
	a := attachment{r: r, owner: ownerOf(r), host: netif.HostName(r.ContainerID, r.IfName), node: node, pod: pod}
	if err := a.precheck(); err != nil {
		return nil, err
	}
	allocated, err := a.allocate(ctx)
	if err != nil {
		return nil, err
	}
	if a.layout, err = arrange(r.Config, allocated); err != nil {
		return nil, err
	}
	if err := a.join(ctx); err != nil {
		return nil, err
	}
	if err := a.configure(ctx); err != nil {
		return nil, err
	}
	if err := a.keepBridge(); err != nil {
		return nil, err
	}
	return a.result()
}

// attachment is one ADD on its way.
type attachment struct {
	r         *cni.Request[Config]
	owner     owner
	host      string // name of the node's end
	node, pod *netif.Namespace
	layout    layout

	firstOnBridge bool // no ADD had succeeded on the bridge when this one joined it
}

// precheck finds what would fail the ADD before anything is reserved or made.
func (a *attachment) precheck() error {
	if err := a.owner.check(); err != nil {
		return cni.Errorf(cni.CodeInvalidEnvironment, "%w", err)
	}
	_, err := a.pod.Link(a.r.IfName)
	if err == nil {
		return a.taken()
	}
	if !errors.Is(err, netif.ErrNotFound) {
		return err
	}
	if err := a.checkHostEnd(); err != nil {
		return err
	}
	return checkBridge(a.node, a.r.Config)
}

func (a *attachment) taken() error {
	return cni.Errorf(cni.CodeInvalidEnvironment, "CNI_IFNAME=%s: the container has an interface of that name; choose another, or DEL first",
		a.r.IfName)
}

// allocate is nil without an IPAM plugin.
func (a *attachment) allocate(ctx context.Context) (*cni.Result, error) {
	if a.r.Config.IPAM.Type == "" {
		return nil, nil
	}
	return a.r.Delegate(a.r.Config.IPAM.Type).Add(ctx)
}

// configure completes the container's side, then switches the link on. What it sets goes
// with the link.
func (a *attachment) configure(ctx context.Context) error {
	name, l := a.r.IfName, &a.layout
	if err := a.pod.AddAddresses(name, l.addresses()...); err != nil {
		return err
	}
	if err := a.pod.SetUp(name); err != nil {
		return err
	}
	if err := a.pod.AddRoutes(name, l.kernelRoutes()...); err != nil {
		return explainRoute(a.r.Config, name, err)
	}
	if a.r.Config.gateway() {
		if err := a.node.EnableForwarding(ctx, l.gateways()...); err != nil {
			return err
		}
	}
	if err := a.node.SetUp(a.host); err != nil {
		return err
	}
	return a.publish(ctx)
}

// publish waits until the link passes packets and answers for its addresses, and the
// bridge for the gateways, then announces the addresses.
func (a *attachment) publish(ctx context.Context) error {
	name, bridge := a.r.IfName, a.r.Config.bridge()
	var own, gateways []netip.Addr
	for _, ip := range a.layout.ips {
		own = append(own, ip.Address.Addr())
		if a.r.Config.gateway() {
			gateways = append(gateways, ip.Gateway)
		}
	}
	err := errors.Join(a.node.WaitRunning(ctx, a.host), a.node.WaitRunning(ctx, bridge), a.pod.WaitRunning(ctx, name),
		a.pod.WaitAnswering(ctx, name, own...), a.node.WaitAnswering(ctx, bridge, gateways...))
	if err != nil {
		return err
	}
	return a.pod.Announce(name, own...)
}
