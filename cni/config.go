package cni

import (
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
)

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

// decodeConfig decodes a configuration, which is an object, into the plugin's type
// and validates it. An error names key, value and reason.
func decodeConfig[C any](data []byte) (C, error) {
	var c C
	if err := json.Unmarshal(data, &c); err != nil {
		return c, Errorf(CodeInvalidConfig, "invalid configuration: %w", findFault[C](data, err))
	}
	type validator interface{ Validate() error }
	v, ok := any(&c).(validator)
	if !ok {
		v, ok = any(c).(validator) // of a pointer type, which has the methods itself
	}
	if !ok {
		return c, nil
	}
	if err := v.Validate(); err != nil {
		return c, invalidConfig(err)
	}
	return c, nil
}

func invalidConfig(err error) *Error {
	code := codeOf(err)
	if code == CodeInternal {
		code = CodeInvalidConfig
	}
	return Errorf(code, "invalid configuration: %w", err)
}

// salvageConfig decodes what can be decoded. A plugin that cleans up must get on
// with the configuration that an ADD was refused for.
func salvageConfig[C any](data []byte, log *slog.Logger) C {
	var c C
	if json.Unmarshal(data, &c) == nil {
		return c
	}
	eachMember(data, func(key string, value, member json.RawMessage) bool {
		if err := json.Unmarshal(member, &c); err != nil {
			log.Warn("configuration key is ignored", "key", key, "value", shorten(string(value), 200), "error", err)
		}
		return true
	})
	return c
}

// eachMember calls fn for the members of an object in the order of their keys,
// with the value and with an object that has only that member, until fn returns
// false.
func eachMember(data []byte, fn func(key string, value, member json.RawMessage) bool) {
	var members map[string]json.RawMessage
	if json.Unmarshal(data, &members) != nil {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(members)) {
		if !fn(key, members[key], memberOf(key, members[key])) {
			return
		}
	}
}

// memberOf is an object with one member.
func memberOf(key string, value json.RawMessage) []byte {
	var o object
	o.raw(key, value)
	return o.bytes()
}
