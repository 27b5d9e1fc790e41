package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"slices"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/cni/install"
	"github.com/cnikit/cnikit/cni/netif"
	"github.com/cnikit/cnikit/overlay"
)

// readTemplate reads the template for conflists, if one is named. One that is not there
// counts as none, for it comes from an optional ConfigMap where Kubernetes deploys the
// agent.
func (o *options) readTemplate(env environment) error {
	if o.templateFile == "" {
		return nil
	}
	text, err := os.ReadFile(o.templateFile)
	if errors.Is(err, fs.ErrNotExist) {
		env.log().Info("no template for the conflist there, so it is the default", "path", o.templateFile)
		return nil
	}
	if err != nil {
		return fmt.Errorf("read -conflist-template: %w", err)
	}
	o.template, err = install.ParseTemplate(string(text))
	if err != nil {
		return fmt.Errorf("-conflist-template=%q: %w", o.templateFile, err)
	}
	return nil
}

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

// render makes the conflist of a node.
func (o options) render(podCIDRs []netip.Prefix, mtu int) ([]byte, error) {
	network := o.pods(podCIDRs, mtu)
	if o.template != nil {
		return o.template.Render(network)
	}
	return install.Conflist(network)
}

// wantConflist leaves the conflist as it is when it cannot be made, and as long as the
// bridge has the gateways of other Pod CIDRs.
func (a *agent) wantConflist(self overlay.Peer, mtu int) {
	if a.unfit = a.tooNarrow(self.PodCIDRs, mtu); a.unfit != "" {
		return
	}
	content, err := a.opts.render(self.PodCIDRs, mtu)
	if err != nil {
		a.unfit = fmt.Sprintf("conflist: %v", err)
		return
	}
	if a.gateways.want(self.PodCIDRs, a.engine) {
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
