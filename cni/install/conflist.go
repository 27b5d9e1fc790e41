package install

import (
	"encoding/json"
	"fmt"
	"net/netip"
)

// Network describes a network of pods on one node: a bridge, with addresses from the node's Pod CIDRs.
type Network struct {
	Name    string   // of the network
	Bridge  string   // name of the bridge interface
	MTU     int      // bytes; 0 leaves it to the plugin
	Subnets []Subnet // the node's Pod CIDRs; a pod gets an address of each
	DataDir string   // where the IPAM plugin keeps its leases; empty leaves it to the plugin

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

// The parts of the document, in the order in which they are written.
type (
	conflist struct {
		CNIVersion  string            `json:"cniVersion"`
		CNIVersions []string          `json:"cniVersions"`
		Name        string            `json:"name"`
		Plugins     []json.RawMessage `json:"plugins"`
	}
	bridgeConf struct {
		Type             string   `json:"type"`
		Bridge           string   `json:"bridge"`
		IsGateway        bool     `json:"isGateway"`
		IsDefaultGateway bool     `json:"isDefaultGateway"`
		ForceAddress     bool     `json:"forceAddress"`
		HairpinMode      bool     `json:"hairpinMode"`
		MTU              int      `json:"mtu,omitempty"`
		IPAM             ipamConf `json:"ipam"`
	}
	ipamConf struct {
		Type    string        `json:"type"`
		DataDir string        `json:"dataDir,omitempty"`
		Ranges  [][]rangeConf `json:"ranges"`
	}
	rangeConf struct {
		Subnet  netip.Prefix `json:"subnet"`
		Gateway netip.Addr   `json:"gateway,omitzero"`
	}
)

// Conflist renders the network configuration list of a network. The same network always gives the same bytes.
//
// It says cniVersion 1.0.0 and cniVersions 1.0.0 and 1.1.0: a runtime that does not know cniVersions uses the former, a newer
// one the highest that it knows.
//
// What no plugin could work with is refused, with a [*cni.FieldError] that names the key as it would be written.
func Conflist(n Network) ([]byte, error) {
	n.BridgeType, n.IPAMType = orDefault(n.BridgeType, "cnikit-bridge"), orDefault(n.IPAMType, "cnikit-ipam")
	if err := n.validate(); err != nil {
		return nil, err
	}
	first, err := json.Marshal(n.bridge())
	if err != nil {
		return nil, fmt.Errorf("render conflist: %w", err)
	}
	data, err := json.MarshalIndent(conflist{
		CNIVersion:  "1.0.0",
		CNIVersions: []string{"1.0.0", "1.1.0"},
		Name:        n.Name,
		Plugins:     append([]json.RawMessage{first}, n.Chained...),
	}, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("render conflist: %w", err)
	}
	return append(data, '\n'), nil
}

func (n Network) bridge() bridgeConf {
	b := bridgeConf{
		Type: n.BridgeType, Bridge: n.Bridge, MTU: n.MTU,
		IsGateway: true, IsDefaultGateway: !n.NoDefaultGateway, ForceAddress: n.ForceAddress, HairpinMode: !n.NoHairpin,
		IPAM: ipamConf{Type: n.IPAMType, DataDir: n.DataDir},
	}
	for _, s := range n.Subnets {
		b.IPAM.Ranges = append(b.IPAM.Ranges, []rangeConf{{Subnet: s.Prefix, Gateway: s.Gateway}})
	}
	return b
}

func orDefault(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
