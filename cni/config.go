package cni

import "encoding/json"

// IPAM is the standard "ipam" key, for use in configuration types.
type IPAM struct {
	Type string `json:"type"` // the plugin to delegate to
}

// DNS is the standard "dns" object of configurations and results.
type DNS struct {
	Nameservers []string `json:"nameservers,omitempty"` // in order of priority, both families
	Domain      string   `json:"domain,omitempty"`
	Search      []string `json:"search,omitempty"` // outranks Domain
	Options     []string `json:"options,omitempty"`

	Extra map[string]json.RawMessage `json:"-"` // unknown keys of a result, kept
}

// Attachment names one attachment of a network: an interface of a container.
type Attachment struct {
	ContainerID string `json:"containerID"`
	IfName      string `json:"ifname"`
}
