package cnitest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ErrNoDefault means that a configuration has to be given for plugins of that type.
var ErrNoDefault = errors.New("there is no default configuration")

// KnownTarget returns a target for a plugin of a well-known type: a configuration that
// works on the kit's nodes and keeps state in [Placeholder], and what the runtime has to
// provide with it. The delegate is the type of the IPAM plugin that it names, a
// host-local or one that reads its configuration. The caller adds Path or Handler. For
// any other type the error matches [ErrNoDefault]; for well-known ones that no default
// can serve it matches [errors.ErrUnsupported] and says why.
func KnownTarget(plugin, delegate string) (Target, error) {
	t := Target{Plugin: plugin, Profile: knownProfile(plugin)}
	if why, ok := unservable[plugin]; ok {
		return t, fmt.Errorf("plugin of type %q without a configuration is %w: %s", plugin, errors.ErrUnsupported, why)
	}
	config, ok := defaults[plugin]
	if !ok {
		return t, fmt.Errorf("%w for plugins of type %q", ErrNoDefault, plugin)
	}
	t.Config = []byte(strings.NewReplacer(
		"OWN", fmt.Sprintf(defaultAddresses, plugin), "ADDRESSES", fmt.Sprintf(defaultAddresses, delegate), "TYPE", plugin,
	).Replace(config))
	if plugin == "portmap" {
		t.Capabilities = map[string]any{"portMappings": []any{
			map[string]any{"hostPort": 8080, "containerPort": 80, "protocol": "tcp"},
			map[string]any{"hostPort": 5353, "containerPort": 53, "protocol": "udp"},
		}}
	}
	return t, nil
}

// KnownTypes lists the types that [KnownTarget] has a configuration for, sorted.
func KnownTypes() []string { return slices.Sorted(maps.Keys(defaults)) }

// defaultAddresses is the ipam object for IPAM plugins like host-local.
const defaultAddresses = `{
    "type": %q,
    "ranges": [[{"subnet": "10.88.0.0/24"}]],
    "routes": [{"dst": "0.0.0.0/0"}],
    "dataDir": "{{dir}}"
  }`

// defaults are the configurations of well-known types.
var defaults = map[string]string{
	"bridge": `{
  "type": "TYPE",
  "bridge": "cnitest0",
  "isGateway": true,
  "ipMasq": true,
  "ipam": ADDRESSES
}`,
	"cnikit-bridge": `{
  "type": "TYPE",
  "bridge": "cnitest0",
  "isGateway": true,
  "ipam": ADDRESSES
}`,
	"ptp":     `{"type": "TYPE", "ipMasq": true, "ipam": ADDRESSES}`,
	"macvlan": `{"type": "TYPE", "master": "` + uplink + `", "ipam": ADDRESSES}`,
	"ipvlan":  `{"type": "TYPE", "master": "` + uplink + `", "ipam": ADDRESSES}`,
	"vlan":    `{"type": "TYPE", "master": "` + uplink + `", "vlanId": 88, "ipam": ADDRESSES}`,
	"dummy":   `{"type": "TYPE", "ipam": ADDRESSES}`,
	"tap":     `{"type": "TYPE", "ipam": ADDRESSES}`,

	"host-local":  `{"type": "TYPE", "ipam": OWN}`,
	"cnikit-ipam": `{"type": "TYPE", "ipam": OWN}`,
	"static": `{
  "type": "TYPE",
  "ipam": {
    "type": "TYPE",
    "addresses": [{"address": "10.88.0.5/24", "gateway": "10.88.0.1"}],
    "routes": [{"dst": "0.0.0.0/0"}]
  }
}`,

	"loopback": `{"type": "TYPE"}`,
	"portmap":  `{"type": "TYPE", "snat": true, "capabilities": {"portMappings": true}}`,
	"tuning": `{
  "type": "TYPE",
  "mtu": 1400,
  "sysctl": {"net.ipv4.conf.IFNAME.arp_filter": "1"},
  "dataDir": "{{dir}}"
}`,
	"firewall": `{"type": "TYPE"}`,
	"bandwidth": `{
  "type": "TYPE",
  "ingressRate": 8000000,
  "ingressBurst": 8000000,
  "egressRate": 8000000,
  "egressBurst": 8000000
}`,
	"sbr":            `{"type": "TYPE"}`,
	"route-override": `{"type": "TYPE", "addroutes": [{"dst": "198.51.100.0/24"}]}`,
	"vrf":            `{"type": "TYPE", "vrfname": "cnitest"}`,
}

// unservable says of well-known types why there can be no default.
var unservable = map[string]string{
	"dhcp":        "it needs its daemon to run and a DHCP server to answer",
	"host-device": "it moves a device of the node, and each container needs one of its own",
	"flannel":     "it needs the subnet file that the flannel daemon writes",
	"multus":      "it needs Kubernetes, or a configuration that names its delegates",
	"calico":      "it needs the Kubernetes API",
	"cilium-cni":  "it needs the cilium agent",
	"whereabouts": "it needs the Kubernetes API",
	"istio-cni":   "it needs the Kubernetes API",
	"linkerd-cni": "it needs the Kubernetes API",
	"aws-cni":     "it needs the agent of its node",
	"ovs":         "it needs Open vSwitch",
	"sriov":       "it moves a device of the node, and each container needs one of its own",
	"bond":        "it joins interfaces that other plugins have made in the container",
}
