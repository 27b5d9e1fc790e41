package cni

import (
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
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
	if v, ok := any(&c).(interface{ Validate() error }); ok {
		if err := v.Validate(); err != nil {
			return c, invalidConfig(err)
		}
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

// findFault finds the key that a configuration does not decode for.
func findFault[C any](data []byte, err error) error {
	eachMember(data, func(key string, value, member json.RawMessage) bool {
		fault := json.Unmarshal(member, new(C))
		if fault == nil {
			return true
		}
		err = &FieldError{Key: key, Value: value, Reason: fault.Error()}
		var mismatch *json.UnmarshalTypeError
		if errors.As(fault, &mismatch) {
			err = typeFault(mismatch, key, member)
		}
		return false
	})
	return err
}

func typeFault(mismatch *json.UnmarshalTypeError, key string, member json.RawMessage) error {
	path := mismatch.Field
	if path == "" {
		path = key
	}
	value := member
	for part := range strings.SplitSeq(path, ".") {
		var members map[string]json.RawMessage
		if json.Unmarshal(value, &members) != nil || members[part] == nil {
			break
		}
		value = members[part]
	}
	return &FieldError{Key: path, Value: value, Reason: "has the wrong type: want " + nameKind(mismatch.Type) + ", not " + mismatch.Value}
}

// nameKind names a Go type as the author of a configuration knows it.
func nameKind(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Pointer:
		return nameKind(t.Elem())
	}
	return "a whole number (" + t.Kind().String() + ")"
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
		var o object
		o.raw(key, members[key])
		if !fn(key, members[key], o.bytes()) {
			return
		}
	}
}
