package main

import (
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/cnikit/cnikit/cni/install"
	"github.com/cnikit/cnikit/overlay/vxlan"
)

// Where a node has its things.
const (
	defaultBinDir = "/opt/cni/bin"
	defaultStatus = "/run/cnikit/status.json"
)

// options are the flags of all commands; each has some of them.
type options struct {
	given map[string]bool // flags that are in the arguments

	node       string
	source     string
	topology   string
	kubeconfig string

	network      string
	bridge       string
	confDir      string
	conflist     string
	templateFile string
	template     *install.Template // nil: the default
	badTemplate  error             // why the one that is named cannot be used
	dataDir      string
	status       string

	binDir      string
	executables string
	replace     bool

	podCIDRs prefixes

	device string
	vni    int
	port   int
	mtu    int
	resync time.Duration
}

func (o *options) sourceFlags(f *flag.FlagSet, env environment) {
	node := env.getenv("NODE_NAME")
	f.StringVar(&o.node, "node", node, "`name` of this node among the nodes (default: the environment variable NODE_NAME)")
	f.Lookup("node").DefValue = "" // the help is the same everywhere
	f.StringVar(&o.source, "source", sourceFile, "`kind` of source of the nodes: file, or kube for the Nodes of the Kubernetes API")
	f.StringVar(&o.topology, "topology", defaultTopology, "source file: `file` with the nodes of the cluster")
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "source kube: `file` that says how to reach the API (default: the service account of the pod)")
}

// nameFlags say which conflist is meant.
func (o *options) nameFlags(f *flag.FlagSet) {
	f.StringVar(&o.conflist, "conflist", "10-cnikit.conflist", "`name` of the conflist in -conf-dir, with the suffix .conflist")
	f.StringVar(&o.confDir, "conf-dir", "/etc/cni/net.d", "`directory` that the runtime reads conflists from")
	f.StringVar(&o.network, "network", "cnikit", "`name` of the network in the conflist")
	f.StringVar(&o.bridge, "bridge", "cni0", "`name` of the bridge that joins the pods of this node")
}

// contentFlags say what else is in it.
func (o *options) contentFlags(f *flag.FlagSet) {
	f.StringVar(&o.templateFile, "conflist-template", "", "`file` with a template for the conflist, as package cni/install describes it; read at the start (default, also when it is not there: cnikit-bridge with cnikit-ipam)")
	f.StringVar(&o.dataDir, "data-dir", "/var/lib/cni/networks", "`directory` of the address leases")
}

func (o *options) deviceFlags(f *flag.FlagSet) {
	f.StringVar(&o.device, "device", "", "`name` of the VXLAN device (default: cnikit. and the -vni)")
	f.IntVar(&o.vni, "vni", 5000, "VXLAN network identifier, the same on all nodes")
}

func (o *options) statusFlag(f *flag.FlagSet, usage string) {
	f.StringVar(&o.status, "status-file", defaultStatus, usage)
}

// complete fills in what was left out, as far as a command has it.
func (o *options) complete(env environment) error {
	if o.device == "" && o.vni != 0 {
		o.device = fmt.Sprintf("cnikit.%d", o.vni)
	}
	if o.executables == "" && o.binDir != "" {
		self, err := env.executable()
		if err != nil {
			return fmt.Errorf("find the directory of this program: %w; use -executables", err)
		}
		o.executables = filepath.Dir(self)
	}
	o.readTemplate(env)
	return nil
}

// tunnel is the configuration of the backend.
func (o options) tunnel() vxlan.Config {
	return vxlan.Config{VNI: o.vni, Port: o.port, Device: o.device, MTU: o.mtu, Network: o.network}
}

// interval is the value of a flag: a duration, whose error says how to write one.
type interval time.Duration

var _ flag.Value = (*interval)(nil)

// Set implements [flag.Value].
func (i *interval) Set(s string) error {
	d, err := time.ParseDuration(s)
	if _, notNumber := strconv.ParseFloat(s, 64); err != nil && notNumber == nil {
		return fmt.Errorf("it has no unit; write %ss for seconds, or %sm for minutes", s, s)
	}
	if err != nil {
		return errors.New("it is no duration; write one such as 90s or 1m30s")
	}
	*i = interval(d)
	return nil
}

// String implements [flag.Value].
func (i *interval) String() string { return time.Duration(*i).String() }

// prefixes are the value of a flag: prefixes with commas between them.
type prefixes []netip.Prefix

var _ flag.Value = (*prefixes)(nil)

// Set implements [flag.Value].
func (p *prefixes) Set(s string) error {
	*p = nil
	for part := range strings.SplitSeq(s, ",") {
		prefix, err := netip.ParsePrefix(strings.TrimSpace(part))
		if err != nil {
			return fmt.Errorf("%q is no prefix; write an address and a length, such as 10.1.2.0/24", part)
		}
		*p = append(*p, prefix)
	}
	return nil
}

// String implements [flag.Value].
func (p *prefixes) String() string {
	if len(*p) == 0 {
		return ""
	}
	return strings.Trim(fmt.Sprint([]netip.Prefix(*p)), "[]")
}
