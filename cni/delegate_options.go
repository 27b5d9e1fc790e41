package cni

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// DelegateOptions say what a delegate gets instead of what the request has. The zero
// value changes nothing.
type DelegateOptions struct {
	// Config makes the delegate a network of its own: the plugin object that it gets, as
	// it would stand in a list of plugins. Unknown keys are kept as they are. What a
	// runtime adds is added: the name of this network if it has none; the version of the
	// request unless it names its own in cniVersion or cniVersions; of the request's
	// runtimeConfig, the capabilities that it declares, unless it has one; prevResult and
	// the list for GC as below. Keys that only a runtime may set are dropped.
	//
	// The name identifies the network to the delegate, which on GC removes all but the
	// valid attachments of that name. It must not be used by anybody else on the node.
	Config json.RawMessage

	IfName string   // another name of the interface
	Args   Args     // other CNI_ARGS; nil: those of the request
	Env    []string // further environment, "KEY=value", in place of entries with that key

	// PrevResult is what the delegate gets instead of the prevResult of the request. A
	// delegate with a Config gets none for ADD; for CHECK and DEL, one with Config or
	// IfName gets the part of the request's that is about its interface (see
	// [Result.Split]).
	PrevResult *Result

	// Valid are the delegate's attachments that a GC must spare; nil: those of the
	// request, with IfName if that is set. Too many do no harm.
	Valid []Attachment
}

// DelegateWith returns a plugin as a delegate of this request that gets something
// else than the request. An empty plugin stands for the type that o.Config names.
// What is wrong with the options is an error of each call.
func (r *Request[C]) DelegateWith(plugin string, o DelegateOptions) *Delegate {
	d := &Delegate{
		plugin: plugin, network: r.Network, ifName: r.IfName, version: r.CNIVersion, options: o,
		inv: r.inv, prev: r.PrevResult, valid: r.Valid, executor: r.delegates, undo: r.Undo,
	}
	if d.executor == nil {
		d.executor = Exec{}
	}
	if o.IfName != "" {
		d.ifName, d.inv.IfName = o.IfName, o.IfName
		d.refuse("IfName", o.IfName, ifNameFault(o.IfName))
	}
	if o.Args != nil {
		d.inv.Args = o.Args.String()
		if err := o.Args.Validate(); err != nil {
			d.refuse("Args", d.inv.Args, err.Error())
		}
	}
	d.inv.Env = replaceEnv(d.inv.Env, o.Env)
	if o.Config != nil {
		d.configure(r.RawConfig)
	}
	return d
}

func (d *Delegate) refuse(option string, value any, fault string) {
	if fault != "" && d.err == nil {
		d.err = &FieldError{Key: option, Value: value, Reason: fault}
	}
}

// replaceEnv appends entries and drops those with the same keys.
func replaceEnv(env, more []string) []string {
	kept := slices.DeleteFunc(slices.Clone(env), func(entry string) bool {
		key, _, _ := strings.Cut(entry, "=")
		return slices.ContainsFunc(more, func(entry string) bool { return strings.HasPrefix(entry, key+"=") })
	})
	return append(kept, more...)
}

// configure takes over the delegate's own configuration.
func (d *Delegate) configure(request []byte) {
	config, err := readDocument(d.options.Config)
	if err != nil {
		d.refuse("Config", d.options.Config, "is no JSON object")
		return
	}
	if d.plugin == "" {
		d.plugin = config.text("type")
	}
	if name := config.text("name"); name != "" {
		d.network = name
	}
	if version := config.ownVersion(); version != "" {
		d.version = version
	}
	own := config.get("runtimeConfig")
	config = slices.DeleteFunc(config, func(m member) bool {
		return strings.HasPrefix(strings.ToLower(m.key), "cni.dev/")
	}).without("runtimeConfig").with("name", quote(d.network))
	if own == nil {
		own = runtimeConfig(config.get("capabilities"), request)
	}
	if own != nil {
		config = config.with("runtimeConfig", own)
	}
	d.config = config.without("prevResult").without("capabilities")
}

// ownVersion is the highest that cniVersion and cniVersions name, as far as this
// package speaks them; "" for none.
func (d document) ownVersion() string {
	var named []string
	_ = json.Unmarshal(d.get("cniVersions"), &named) // what does not decode names none
	named = append(named, d.text("cniVersion"))
	for _, version := range slices.Backward(SupportedVersions()) {
		if slices.Contains(named, version) {
			return version
		}
	}
	return ""
}

// runtimeConfig is what the runtime gave of the declared capabilities; nil for none.
func runtimeConfig(capabilities json.RawMessage, request []byte) json.RawMessage {
	var declared map[string]bool
	_ = json.Unmarshal(capabilities, &declared) // what does not decode declares none
	config, err := readDocument(request)
	if err != nil {
		return nil
	}
	given, err := readDocument(config.get("runtimeConfig"))
	if err != nil {
		return nil
	}
	chosen := slices.DeleteFunc(given, func(m member) bool { return !declared[m.key] })
	if len(chosen) == 0 {
		return nil
	}
	return chosen.encode()
}

func quote(s string) json.RawMessage {
	var o object
	o.encode(s)
	return o.buf.Bytes()
}

// delegateCall is one command with what the request for it carries.
type delegateCall struct {
	command Command
	prev    *Result      // nil: none
	valid   []Attachment // GC
	derived bool         // whether the request differs from the plugin's own
}

// call derives a command of a single delegate.
func (d *Delegate) call(command Command) delegateCall {
	c := delegateCall{command: command, prev: d.options.PrevResult, valid: d.validAttachments()}
	c.derived = d.own() || d.options.PrevResult != nil || d.options.Valid != nil
	switch {
	case d.added != nil && command != CommandAdd:
		c.prev = d.added
	case d.wantsPart(command):
		c.prev = d.prev.about(d.ifName)
	}
	return c
}

// own reports whether the delegate is about an attachment of its own.
func (d *Delegate) own() bool { return d.config != nil || d.options.IfName != "" }

// wantsPart reports whether the delegate gets a part of the request's prevResult.
func (d *Delegate) wantsPart(command Command) bool {
	return d.own() && d.added == nil && d.options.PrevResult == nil && (command == CommandCheck || command == CommandDel)
}

// about is the part of the result that is about one interface in the container, of
// which there may be others.
func (r *Result) about(ifName string) *Result {
	if r == nil {
		return nil
	}
	names := []string{ifName}
	for _, iface := range r.Interfaces {
		names = append(names, iface.Name) // in parts of their own
	}
	return r.Split(names...)[0]
}

func (d *Delegate) validAttachments() []Attachment {
	if d.options.Valid != nil {
		return d.options.Valid
	}
	valid := slices.Clone(d.valid)
	for i := range valid {
		if d.options.IfName != "" {
			valid[i].IfName = d.options.IfName
		}
	}
	return valid
}

// request is the configuration that the delegate gets with a call. The very text of
// the request is handed on if nothing differs.
func (d *Delegate) request(c delegateCall) ([]byte, error) {
	if !c.derived && !d.negotiated {
		return d.inv.Config, nil
	}
	config := d.config
	if config == nil {
		given, err := readDocument(d.inv.Config)
		if err != nil {
			return nil, Errorf(CodeDecode, "read configuration: %w", err)
		}
		config = given
	}
	config = config.with("cniVersion", quote(d.version))
	if c.command == CommandGC {
		list, err := json.Marshal(append([]Attachment{}, c.valid...))
		return config.with("cni.dev/valid-attachments", list).with("cni.dev/attachments", list).encode(), err
	}
	return d.withPrevResult(config, c)
}

func (d *Delegate) withPrevResult(config document, c delegateCall) ([]byte, error) {
	prev := c.prev
	if prev == nil && d.config == nil {
		prev = d.prev // for ADD, in the version that was negotiated
	}
	if prev == nil || perFamily(d.version) || !c.command.attaches() { // before 0.3.0 there was no prevResult
		return config.without("prevResult").encode(), nil
	}
	version := d.version
	if !slices.Contains(SupportedVersions(), version) { // a DEL of whatever there was
		version = newestVersion()
	}
	doc, err := prev.Encode(version)
	if err != nil {
		return nil, fmt.Errorf("convert prevResult: %w", err)
	}
	return config.with("prevResult", doc).encode(), nil
}
