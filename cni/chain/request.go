package chain

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/cnikit/cnikit/cni"
)

// reservedPrefix marks the keys that only the runtime sets, in upper or lower case.
const reservedPrefix = "cni.dev/"

// parameters are what a request carries beside the plugin's own configuration.
type parameters struct {
	command      cni.Command
	capabilities map[string]json.RawMessage // what the runtime provides
	previous     json.RawMessage            // nil: none
	valid        json.RawMessage            // GC: the list of valid attachments
}

// attached reports whether the command is about one attachment.
func (p parameters) attached() bool {
	return slices.Contains([]cni.Command{cni.CommandAdd, cni.CommandDel, cni.CommandCheck}, p.command)
}

// request derives what the plugin reads on its standard input (specification, "Deriving request configuration from plugin configuration").
func (l *List) request(plugin Plugin, p parameters) ([]byte, error) {
	o := plugin.config.without(func(key string) bool { return p.replaces(key) })
	o = append(o, member{"cniVersion", quote(l.Version())}, member{"name", quote(l.Name)})
	if p.attached() {
		raw, err := marshal(plugin.runtimeConfig(p.capabilities))
		if err != nil {
			return nil, fmt.Errorf("encode runtimeConfig: %w", err)
		}
		o = append(o, member{"runtimeConfig", raw})
	}
	if p.previous != nil {
		o = append(o, member{"prevResult", p.previous})
	}
	if p.command == cni.CommandGC {
		// The specification's tag 1.1.0 has the second spelling, its main branch and libcni the first.
		o = append(o, member{"cni.dev/valid-attachments", p.valid}, member{"cni.dev/attachments", p.valid})
	}
	return o.encode(), nil
}

// replaces reports whether a stored key gives way to what the runtime has to say, in whatever case it is written: decoders that do not tell
// upper from lower case, as Go's, would take a stored "PrevResult" for ours. A stored "args" passes: it is the convention by which whoever
// writes the configuration hands arguments over, and this runtime inserts none.
func (p parameters) replaces(key string) bool {
	if len(key) >= len(reservedPrefix) && strings.EqualFold(key[:len(reservedPrefix)], reservedPrefix) {
		return true
	}
	is := func(reserved string) bool { return strings.EqualFold(key, reserved) }
	return slices.ContainsFunc([]string{"cniVersion", "name", "prevResult", "runtimeConfig"}, is) || p.attached() && is("capabilities")
}

// runtimeConfig holds exactly the capabilities that the plugin declares and the runtime provides.
func (p Plugin) runtimeConfig(provided map[string]json.RawMessage) map[string]json.RawMessage {
	config := make(map[string]json.RawMessage)
	for name, declared := range p.Capabilities {
		if value, ok := provided[name]; ok && declared {
			config[name] = value
		}
	}
	return config
}

// encodeCapabilities turns the runtime's arguments into JSON once, so that every plugin and the cache get the same.
func encodeCapabilities(capabilities map[string]any) (map[string]json.RawMessage, error) {
	if capabilities == nil {
		return nil, nil
	}
	encoded := make(map[string]json.RawMessage, len(capabilities))
	for name, value := range capabilities {
		raw, err := marshal(value)
		if err != nil {
			return nil, &cni.FieldError{
				Key: "capabilities." + name, Value: fmt.Sprintf("%T", value), Reason: "cannot be encoded: " + err.Error(), Fix: "give what JSON can hold",
			}
		}
		encoded[name] = raw
	}
	return encoded, nil
}

// encodeValid renders the attachments for GC. None is [], never null, which plugins may take for no list at all.
func encodeValid(valid []cni.Attachment) (json.RawMessage, error) {
	for i, a := range valid {
		if err := checkIdentifier(fmt.Sprintf("valid[%d].containerID", i), a.ContainerID); err != nil {
			return nil, err
		}
		if err := checkIfName(a.IfName); err != nil {
			return nil, fmt.Errorf("valid[%d]: %w", i, err)
		}
	}
	if valid == nil {
		valid = []cni.Attachment{}
	}
	return marshal(valid)
}
