package bridge

import (
	"encoding/json"
	"fmt"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/cni/netif"
)

const (
	defaultBridge = "cni0"

	minMTU     = 68   // bytes; RFC 791
	minIPv6MTU = 1280 // bytes; RFC 8200
	maxMTU     = 65535
)

// Config is the configuration of a network. Standard keys that the plugin does not
// need, and keys that it does not know, are ignored.
type Config struct {
	// Bridge is the name of the bridge, which is created when it is missing. Default
	// "cni0".
	Bridge string `json:"bridge"`

	// IsGateway gives the bridge the gateway addresses and lets the node forward. An
	// IPAM plugin that names no gateway gets the first address of the subnet.
	IsGateway bool `json:"isGateway"`

	// IsDefaultGateway implies IsGateway and adds default routes through the bridge,
	// for the families in which the IPAM plugin gave none.
	IsDefaultGateway bool `json:"isDefaultGateway"`

	// ForceAddress lets the plugin remove addresses from the bridge that cannot stay
	// beside the gateway addresses. Without it they are an error. The kernel removes the
	// routes that depend on such an address with it: those through a gateway of its
	// subnet, and those with it as source. An ADD that fails later puts the address back,
	// but neither these routes nor the address's label, lifetime or peer. Use it for
	// bridges whose addresses nothing else relies on.
	ForceAddress bool `json:"forceAddress"`

	// MTU of the container's link in bytes, 68 to 65535, with IPv6 at least 1280.
	// Default: that of the bridge. It cannot be more than that of an uplink of the
	// bridge, or of a bridge that something else created.
	MTU int `json:"mtu"`

	// HairpinMode lets a container reach itself through a service address.
	HairpinMode bool `json:"hairpinMode"`

	// IPMasq is not supported yet.
	IPMasq bool `json:"ipMasq"`

	// IPAM names the plugin that gives out addresses. Without the key, or with an empty
	// object, the link has none; an object that lacks only the type is refused.
	IPAM IPAM `json:"ipam"`

	// DNS goes into the result instead of that of the IPAM plugin.
	DNS cni.DNS `json:"dns"`

	// ReadyFile is where the node agent says whether the node is ready: a JSON object with
	// "ready" (a boolean) and, while that is false, "reason" (a text); other keys are
	// ignored. An absolute path under /run, where nothing survives a reboot. The agent
	// replaces the file whole (rename) and leaves it when it ends, so that its absence does
	// not count. Only STATUS reads it. Default: none.
	ReadyFile string `json:"readyFile"`

	// TunnelDevice is the interface of the node through which containers reach other nodes.
	// Only STATUS looks at it: it has to be there and to be on. Default: none.
	TunnelDevice string `json:"tunnelDevice"`

	unserved
}

// unserved are keys of the reference plugin that change who can talk to whom or what is
// created. Ignoring them would build another network than the one asked for.
type unserved struct {
	VLAN                      int               `json:"vlan"`
	VLANTrunk                 []json.RawMessage `json:"vlanTrunk"`
	MACSpoofCheck             bool              `json:"macspoofchk"`
	PortIsolation             bool              `json:"portIsolation"`
	PromiscMode               bool              `json:"promiscMode"`
	EnableDAD                 bool              `json:"enabledad"`
	DisableContainerInterface bool              `json:"disableContainerInterface"`
}

// Validate reports the first value that the plugin refuses, as a [*cni.FieldError].
func (c Config) Validate() error {
	if err := netif.CheckName(c.bridge()); err != nil {
		return &cni.FieldError{Key: "bridge", Value: c.Bridge, Reason: err.Error(),
			Fix: "use up to 15 letters, digits, dots, dashes and underscores, such as " + defaultBridge}
	}
	if err := c.checkMTU(); err != nil {
		return err
	}
	if err := c.validateReady(); err != nil {
		return err
	}
	if err := c.IPAM.validate(); err != nil {
		return err
	}
	if c.gateway() && c.IPAM.Type == "" {
		key := "isGateway"
		if c.IsDefaultGateway {
			key = "isDefaultGateway"
		}
		return &cni.FieldError{Key: key, Value: true, Reason: "there are no addresses to be the gateway for",
			Fix: `add "ipam", or leave the key out for a link without addresses`}
	}
	if c.IPMasq {
		return &cni.FieldError{Key: "ipMasq", Value: true, Unsupported: true, Reason: "the plugin does not masquerade",
			Fix: "set it to false, and let a plugin behind this one or the node agent masquerade"}
	}
	return c.unserved.validate()
}

func (c Config) checkMTU() error {
	if c.MTU != 0 && (c.MTU < minMTU || c.MTU > maxMTU) {
		return &cni.FieldError{Key: "mtu", Value: c.MTU, Reason: fmt.Sprintf("is not within %d to %d bytes", minMTU, maxMTU),
			Fix: "leave it out to use that of the bridge"}
	}
	return nil
}

func (u unserved) validate() error {
	for _, key := range []struct {
		name  string
		value any
		set   bool
	}{
		{"vlan", u.VLAN, u.VLAN != 0},
		{"vlanTrunk", fmt.Sprintf("%s", u.VLANTrunk), len(u.VLANTrunk) > 0},
		{"macspoofchk", true, u.MACSpoofCheck},
		{"portIsolation", true, u.PortIsolation},
		{"promiscMode", true, u.PromiscMode},
		{"enabledad", true, u.EnableDAD},
		{"disableContainerInterface", true, u.DisableContainerInterface},
	} {
		if key.set {
			return &cni.FieldError{Key: key.name, Value: key.value, Unsupported: true,
				Reason: "the plugin does not serve this key of the reference plugin bridge",
				Fix:    "leave it out, or use that plugin for this network"}
		}
	}
	return nil
}

// bridge is the name with its default.
func (c Config) bridge() string {
	if c.Bridge == "" {
		return defaultBridge
	}
	return c.Bridge
}

func (c Config) gateway() bool { return c.IsGateway || c.IsDefaultGateway }
