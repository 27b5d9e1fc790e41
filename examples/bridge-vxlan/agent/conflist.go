package main

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/cni/install"
	"github.com/cnikit/cnikit/cni/netif"
	"github.com/cnikit/cnikit/overlay"
)

// pods is the network of a node's pods.
func (o options) pods(podCIDRs []netip.Prefix, mtu int) install.Network {
	network := install.Network{
		Name: o.network, Bridge: o.bridge, MTU: mtu, DataDir: o.dataDir, ReadyFile: o.status, TunnelDevice: o.device,
	}
	for _, cidr := range podCIDRs {
		network.Subnets = append(network.Subnets, install.Subnet{Prefix: cidr})
	}
	return network
}

// wantConflist leaves the conflist as it is as long as the bridge has the gateways of other
// Pod CIDRs, and when a new one cannot be made.
func (a *agent) wantConflist(self overlay.Peer, mtu int) {
	if a.unfit = a.tooNarrow(self.PodCIDRs, mtu); a.unfit != "" {
		return
	}
	content, err := a.opts.render(self.PodCIDRs, mtu)
	if err != nil {
		content, err = a.present(self.PodCIDRs, err)
	} else {
		a.flaw = ""
	}
	free := a.gateways.want(self.PodCIDRs, a.engine)
	switch {
	case err != nil:
		a.unfit = err.Error()
	case free:
		a.madeFor = self.PodCIDRs
		a.conflist.Replace(map[string]install.File{a.opts.conflist: {Content: content}})
	}
}

// tooNarrow says that the underlay leaves too little for IPv6 (RFC 8200, section 5), ""
// when it does not. An MTU that is given is judged by its flag.
func (a *agent) tooNarrow(podCIDRs []netip.Prefix, mtu int) string {
	const least = 1280
	if mtu >= least || !slices.ContainsFunc(podCIDRs, func(p netip.Prefix) bool { return p.Addr().Is6() }) {
		return ""
	}
	overhead := a.backend.Overhead()
	return fmt.Sprintf("the underlay's MTU of %d less %d for the tunnel is %d, and pods with IPv6 need %d; raise it to %d or more, or give the nodes Pod CIDRs of IPv4 alone",
		mtu+overhead, overhead, mtu, least, least+overhead)
}

// badBridge says why the bridge plugin could not use an interface of that name, "" when
// it could, or would make it. What cannot be looked at counts as good: the plugin will
// say what is wrong.
func badBridge(name string) string {
	host, err := netif.Current()
	if err != nil {
		return ""
	}
	defer host.Close()
	link, err := host.Link(name)
	if err != nil || link.Kind == "bridge" {
		return ""
	}
	return (&cni.FieldError{
		Key: "-bridge", Value: name, Reason: fmt.Sprintf("is an interface of kind %q, not a bridge", link.Kind),
		Fix: "use the name of a bridge, or one that no interface has",
	}).Error()
}
