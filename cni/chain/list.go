package chain

import (
	"encoding/json"
	"fmt"

	"github.com/cnikit/cnikit/cni"
)

// List is a network configuration: a name and the plugins that make one attachment to the network. [Parse], [Load] and [LoadNetwork] make
// one; it is not to be changed afterwards and then safe for concurrent use.
type List struct {
	// Name is the network's name, valid by the specification's rule.
	Name string
	// CNIVersions are the versions that both the configuration (cniVersion and cniVersions) and package cni know, the highest first. A
	// configuration that names none means 0.1.0. There is at least one.
	CNIVersions []string
	// DisableCheck makes CHECK succeed without running anything.
	DisableCheck bool
	// DisableGC makes GC succeed without running anything.
	DisableGC bool
	// LoadOnlyInlinedPlugins says that [Load] looked for no further plugins in the folder named after the network.
	LoadOnlyInlinedPlugins bool
	// Plugins run first to last for ADD, CHECK, STATUS and GC, last to first for DEL. There is at least one.
	Plugins []Plugin

	source object // the document, with the plugins that were added from other files
}

// Plugin is one entry of a [List].
type Plugin struct {
	// Type is the file name of the executable.
	Type string
	// Capabilities says which capability arguments the plugin takes; false means that it does not.
	Capabilities map[string]bool

	config object // the entry as it was written
}

// Version returns the protocol version that requests carry: the highest of CNIVersions.
func (l *List) Version() string { return l.CNIVersions[0] }

// MarshalJSON returns the configuration, with what [Load] added from other files. Unknown keys and numbers are as they were written; parsing
// the text again gives the same list.
func (l *List) MarshalJSON() ([]byte, error) { return l.source.encode(), nil }

// MarshalJSON returns the entry as it was written.
func (p Plugin) MarshalJSON() ([]byte, error) { return p.config.encode(), nil }

// Parse reads a network configuration, a conflist. It is strict about what the runtime itself uses (see [cni.FieldError] for what an error
// names) and carries everything else along unread. Keys count as the specification spells them, in upper and lower case too.
//
// A configuration without "plugins" but with a "type" is the single-plugin format of the versions before 1.0.0 and becomes a list of one; with
// a newer version it is refused.
func Parse(data []byte) (*List, error) {
	l, err := parse(data)
	if err == nil {
		err = l.complete()
	}
	if err != nil {
		return nil, fmt.Errorf("parse network configuration: %w", err)
	}
	return l, nil
}

// parse is Parse for a document to which plugins may still be added.
func parse(data []byte) (*List, error) {
	o, err := parseDocument(data)
	if err != nil {
		return nil, err
	}
	l := &List{source: o}
	if l.Name, err = stringKey(o, "name"); err != nil {
		return nil, err
	}
	if l.Name == "" {
		return nil, missing(o, "name", "name the network")
	}
	if err := checkIdentifier("name", l.Name); err != nil {
		return nil, err
	}
	if l.CNIVersions, err = declaredVersions(o); err != nil {
		return nil, err
	}
	if err := l.parseSwitches(o); err != nil {
		return nil, err
	}
	return l, l.parsePlugins(o)
}

func (l *List) parseSwitches(o object) error {
	var err error
	if l.DisableCheck, err = boolKey(o, "disableCheck"); err != nil {
		return err
	}
	if l.DisableGC, err = boolKey(o, "disableGC"); err != nil {
		return err
	}
	l.LoadOnlyInlinedPlugins, err = boolKey(o, "loadOnlyInlinedPlugins")
	return err
}

func (l *List) parsePlugins(o object) error {
	if _, ok := o.get("plugins"); !ok {
		return l.parseSingle(o)
	}
	entries, err := arrayKey(o, "plugins")
	if err != nil {
		return err
	}
	if len(entries) == 0 {
		return &cni.FieldError{Key: "plugins", Value: []string{}, Reason: "is empty", Fix: "list at least one plugin, or leave the key out"}
	}
	for i, raw := range entries {
		p, err := parsePlugin(raw)
		if err != nil {
			return fmt.Errorf("plugins[%d]: %w", i, err)
		}
		l.Plugins = append(l.Plugins, p)
	}
	return nil
}

// parseSingle turns the single-plugin format into a list of one. Without a type there is nothing to run yet.
func (l *List) parseSingle(o object) error {
	plugin, ok := o.get("type")
	if !ok {
		return nil
	}
	if atLeast(l.Version(), noSingleConfigs) {
		return &cni.FieldError{
			Key: "type", Value: plugin, Reason: "a configuration of version " + l.Version() + " is a list of plugins",
			Fix: `move the plugin's keys into "plugins": [{…}], or set "cniVersion": "0.4.0"`,
		}
	}
	p, err := parsePlugin(o.encode())
	l.Plugins = []Plugin{p}
	return err
}

// complete reports whether the list has everything it needs to run.
func (l *List) complete() error {
	if len(l.Plugins) > 0 {
		return nil
	}
	if l.LoadOnlyInlinedPlugins {
		return &cni.FieldError{
			Key: "loadOnlyInlinedPlugins", Value: true, Reason: "there is no key plugins to load from", Fix: "list the plugins",
		}
	}
	return missing(l.source, "plugins", `list the plugins: "plugins": [{"type": …}]`)
}

// add appends a plugin from another file.
func (l *List) add(p Plugin) error {
	l.Plugins = append(l.Plugins, p)
	raw, err := marshal(l.Plugins)
	if err != nil {
		return fmt.Errorf("encode plugins: %w", err)
	}
	l.source = l.source.with("plugins", raw)
	return nil
}

func parsePlugin(raw json.RawMessage) (Plugin, error) {
	o, err := parseObject(raw)
	if err != nil {
		return Plugin{}, err
	}
	p := Plugin{config: o}
	if p.Type, err = stringKey(o, "type"); err != nil {
		return Plugin{}, err
	}
	if p.Type == "" {
		return Plugin{}, missing(o, "type", "name the plugin's executable")
	}
	if err := checkPluginType("type", p.Type); err != nil {
		return Plugin{}, err
	}
	if err := checkIPAMType(o); err != nil {
		return Plugin{}, err
	}
	p.Capabilities, err = capabilitiesKey(o)
	return p, err
}

func capabilitiesKey(o object) (map[string]bool, error) {
	raw, ok := o.get("capabilities")
	if !ok {
		return nil, nil
	}
	if kind(raw) != "object" {
		return nil, wrongKind("capabilities", raw, `an object such as {"portMappings": true}`)
	}
	entries, err := parseObject(raw)
	if err != nil {
		return nil, err
	}
	capabilities := make(map[string]bool, len(entries))
	for _, m := range entries {
		var declared bool
		if err := json.Unmarshal(m.value, &declared); err != nil {
			return nil, wrongKind("capabilities."+m.key, m.value, "true or false")
		}
		capabilities[m.key] = declared
	}
	return capabilities, nil
}

// checkIPAMType applies the rule for types to the standard key ipam, where the plugin hands it on as the name of an executable.
func checkIPAMType(o object) error {
	raw, ok := o.get("ipam")
	if !ok || kind(raw) != "object" {
		return nil
	}
	ipam, err := parseObject(raw)
	if err != nil {
		return fmt.Errorf("ipam: %w", err)
	}
	value, err := stringKey(ipam, "type")
	if err != nil || value == "" {
		return nil // the plugin's to judge
	}
	return checkPluginType("ipam.type", value)
}

func missing(o object, key, fix string) error {
	e := &cni.FieldError{Key: key, Value: "", Reason: "is missing", Fix: fix}
	if found, ok := o.misspelled(key); ok {
		e.Reason, e.Fix = fmt.Sprintf("is missing; there is a key %q", found), "spell it "+key
	}
	return e
}
