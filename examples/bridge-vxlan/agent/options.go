package main

import (
	"flag"
	"fmt"
	"io"
	"net/netip"
	"path/filepath"
	"time"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/cni/install"
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

// parseOptions writes what goes with -help or a wrong flag to usage.
func parseOptions(args []string, usage io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("cnikit-agent", flag.ContinueOnError)
	f.SetOutput(usage)
	f.StringVar(&o.node, "node", "", "`name` of this node in the topology (required)")
	f.StringVar(&o.topology, "topology", "/etc/cnikit/topology.json", "`file` with the nodes of the cluster")
	f.BoolVar(&o.cleanup, "cleanup", false, "remove tunnel, routes, conflist and bridge of this node, and exit")
	f.StringVar(&o.network, "network", "cnikit", "`name` of the network in the conflist")
	f.StringVar(&o.bridge, "bridge", "cni0", "`name` of the bridge that joins the pods of this node")
	f.StringVar(&o.conflist, "conflist", "10-cnikit.conflist", "`name` of the conflist in -conf-dir")
	f.StringVar(&o.confDir, "conf-dir", "/etc/cni/net.d", "`directory` that the runtime reads conflists from")
	f.StringVar(&o.dataDir, "data-dir", "/var/lib/cni/networks", "`directory` of the address leases")
	f.StringVar(&o.status, "status-file", "", "`file` that says whether the node is ready, and why not; empty: none")
	f.StringVar(&o.device, "device", "", "`name` of the VXLAN device; empty: the backend's default")
	f.IntVar(&o.vni, "vni", 5000, "VXLAN network identifier")
	f.IntVar(&o.port, "port", 4789, "UDP port of the tunnel")
	f.IntVar(&o.mtu, "mtu", 0, "MTU of tunnel and pods in `bytes`; 0: what the underlay leaves")
	f.DurationVar(&o.resync, "resync", time.Minute, "time between full looks without a cause; negative: never")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("argument %q: not a flag; see -help", f.Arg(0))
	}
	return o, o.validate()
}

// validate checks what no package that gets the value can check for us, and what would
// be found only when the conflist is made.
func (o options) validate() error {
	if o.node == "" && !o.cleanup {
		return &cni.FieldError{Key: "-node", Value: o.node, Reason: "is empty", Fix: "give this node's name in the topology"}
	}
	for _, p := range []struct{ flag, path string }{
		{"-topology", o.topology}, {"-conf-dir", o.confDir}, {"-data-dir", o.dataDir}, {"-status-file", o.status},
	} {
		if p.path != "" && !filepath.IsAbs(p.path) {
			return &cni.FieldError{Key: p.flag, Value: p.path, Reason: "is not an absolute path", Fix: "start it with a slash"}
		}
	}
	_, err := o.render([]netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, o.mtu) // any subnet will do
	return err
}

// render makes the conflist of a node.
func (o options) render(podCIDRs []netip.Prefix, mtu int) ([]byte, error) {
	network := install.Network{Name: o.network, Bridge: o.bridge, MTU: mtu, DataDir: o.dataDir}
	for _, cidr := range podCIDRs {
		network.Subnets = append(network.Subnets, install.Subnet{Prefix: cidr})
	}
	return install.Conflist(network)
}
