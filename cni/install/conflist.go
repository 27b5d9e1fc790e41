package install

import (
	"encoding/json"
	"net/netip"
)

// Network describes a network of pods on one node: a bridge, with addresses from the node's Pod CIDRs.
type Network struct {
	Name    string   // of the network
	Bridge  string   // name of the bridge interface
	MTU     int      // bytes; 0 leaves it to the plugin
	Subnets []Subnet // the node's Pod CIDRs; a pod gets an address of each
	DataDir string   // where the IPAM plugin keeps its leases; empty leaves it to the plugin

	// ReadyFile is a file that says whether pods can be attached, for the plugin's STATUS; absolute and under /run, so that it
	// goes with a reboot. Empty: none.
	ReadyFile string
	// TunnelDevice is an interface without which STATUS says that the network is not ready. Empty: none.
	TunnelDevice string

	BridgeType string // name of the plugin executable; default "cnikit-bridge"
	IPAMType   string // likewise; default "cnikit-ipam"

	NoDefaultGateway bool // pods get no default route through the bridge; for a second network
	NoHairpin        bool // pods cannot reach themselves through a service address
	ForceAddress     bool // the bridge's address may be changed to that of the gateway

	// Chained are the configurations of further plugins, each an object with a "type". They run after the bridge plugin, in
	// this order.
	Chained []json.RawMessage
}

// Subnet is a range of addresses for pods.
type Subnet struct {
	Prefix  netip.Prefix // without host bits
	Gateway netip.Addr   // the address of the bridge; zero leaves it to the IPAM plugin, which takes the first one
}

// FirstGateway returns the gateway, or the one that an IPAM plugin takes when it is left to it: the first address behind that
// of the network.
func (s Subnet) FirstGateway() netip.Addr {
	if s.Gateway.IsValid() {
		return s.Gateway
	}
	return s.Prefix.Addr().Next()
}

// Family returns 4 or 6.
func (s Subnet) Family() int {
	if s.Prefix.Addr().Is4() {
		return 4
	}
	return 6
}

// Conflist renders the network configuration list of a network. The same network always gives the same bytes.
//
// It says cniVersion 1.0.0 and cniVersions 1.0.0 and 1.1.0: a runtime that does not know cniVersions uses the former, a newer
// one the highest that it knows.
//
// What no plugin could work with is refused, with a [*cni.FieldError] that names the key as it would be written.
//
// It is [DefaultTemplate], rendered. For other plugins, or other settings, see [ParseTemplate].
func Conflist(n Network) ([]byte, error) {
	t, err := ParseTemplate(DefaultTemplate)
	if err != nil {
		return nil, err
	}
	return t.Render(n)
}

func orDefault(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
