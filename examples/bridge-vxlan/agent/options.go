package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/cnikit/cnikit/cni/install"
	"github.com/cnikit/cnikit/overlay/vxlan"
)

// options are the agent's flags.
type options struct {
	node     string
	topology string
	cleanup  bool

	network  string
	bridge   string
	conflist string
	confDir  string
	dataDir  string
	status   string

	device string
	vni    int
	port   int
	mtu    int
	resync time.Duration
}

// parseOptions writes the help to help if it is asked for; the error is then
// [flag.ErrHelp].
func parseOptions(args []string, help io.Writer) (options, error) {
	var o options
	f := o.flags()
	switch err := f.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprintln(help, "Usage: cnikit-agent -node name [flags]")
		f.SetOutput(help)
		f.PrintDefaults()
		return o, err
	case err != nil:
		return o, fmt.Errorf("%w; see -help", err)
	case f.NArg() > 0:
		return o, fmt.Errorf("argument %q: is not a flag; see -help", f.Arg(0))
	}
	if o.device == "" {
		o.device = fmt.Sprintf("cnikit.%d", o.vni)
	}
	return o, o.validate()
}

func (o *options) flags() *flag.FlagSet {
	f := flag.NewFlagSet("cnikit-agent", flag.ContinueOnError)
	f.SetOutput(io.Discard) // it would print each error, and all flags with it
	f.StringVar(&o.node, "node", "", "`name` of this node in the topology (required)")
	f.StringVar(&o.topology, "topology", "/etc/cnikit/topology.json", "`file` with the nodes of the cluster")
	f.BoolVar(&o.cleanup, "cleanup", false, "remove tunnel, routes, conflist and bridge of this node, and exit")
	f.StringVar(&o.network, "network", "cnikit", "`name` of the network in the conflist")
	f.StringVar(&o.bridge, "bridge", "cni0", "`name` of the bridge that joins the pods of this node")
	f.StringVar(&o.conflist, "conflist", "10-cnikit.conflist", "`name` of the conflist in -conf-dir, with the suffix .conflist")
	f.StringVar(&o.confDir, "conf-dir", "/etc/cni/net.d", "`directory` that the runtime reads conflists from")
	f.StringVar(&o.dataDir, "data-dir", "/var/lib/cni/networks", "`directory` of the address leases")
	f.StringVar(&o.status, "status-file", "", "`file` that says whether the node is ready, and why not; empty: none")
	f.StringVar(&o.device, "device", "", "`name` of the VXLAN device; empty: cnikit. and the -vni")
	f.IntVar(&o.vni, "vni", 5000, "VXLAN network identifier, the same on all nodes")
	f.IntVar(&o.port, "port", 4789, "UDP port of the tunnel, the same on all nodes")
	f.IntVar(&o.mtu, "mtu", 0, "MTU of tunnel and pods in `bytes`; 0: what the underlay leaves")
	f.DurationVar(&o.resync, "resync", time.Minute, "time between full looks without a cause; negative: never")
	return f
}

// tunnel is the configuration of the backend.
func (o options) tunnel() vxlan.Config {
	return vxlan.Config{VNI: o.vni, Port: o.port, Device: o.device, MTU: o.mtu, Network: o.network}
}

// render makes the conflist of a node.
func (o options) render(podCIDRs []netip.Prefix, mtu int) ([]byte, error) {
	network := install.Network{Name: o.network, Bridge: o.bridge, MTU: mtu, DataDir: o.dataDir}
	for _, cidr := range podCIDRs {
		network.Subnets = append(network.Subnets, install.Subnet{Prefix: cidr})
	}
	return install.Conflist(network)
}
