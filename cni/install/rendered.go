package install

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cnikit/cnikit/cni"
)

// checkConflist returns the first thing in a rendered conflist that would keep a runtime from using it for the network of that
// name. Keys are case-sensitive, as for runtimes.
func checkConflist(text []byte, network string) error {
	var doc map[string]json.RawMessage
	if err := json.Unmarshal(text, &doc); err != nil {
		return explainJSON(text, err)
	}
	if doc == nil {
		return errors.New("is no object; write one JSON object")
	}
	for _, check := range []func() error{
		func() error { return checkName(doc["name"], network) },
		func() error { return checkVersions(doc["cniVersion"], doc["cniVersions"]) },
		func() error { return checkPlugins(doc["plugins"]) },
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// explainJSON adds the line to an error of package json.
func explainJSON(text []byte, err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		before := text[:max(0, min(int(syntax.Offset), len(text))-1)]
		number := bytes.Count(before, []byte("\n"))
		line := strings.TrimSpace(strings.Split(string(text), "\n")[number])
		return fmt.Errorf("line %d, %q: %w; let it become one JSON object, with {{json X}} for values", number+1, line, err)
	}
	return errors.New("is no object; write one JSON object")
}

func checkName(raw json.RawMessage, network string) error {
	var name string
	if json.Unmarshal(raw, &name) != nil || name != network {
		return &cni.FieldError{Key: "name", Value: raw, Reason: fmt.Sprintf("is not the name of the network, %q", network),
			Fix: "write {{json .Name}}"}
	}
	return nil
}

func checkVersions(one, more json.RawMessage) error {
	known := cni.SupportedVersions()
	fault := func(key string, raw json.RawMessage) error {
		return &cni.FieldError{Key: key, Value: raw, Reason: "is no version of the CNI specification", Fix: "use one of " + strings.Join(known, ", ")}
	}
	var version string
	if json.Unmarshal(one, &version) != nil || !slices.Contains(known, version) {
		return fault("cniVersion", one)
	}
	if more == nil {
		return nil
	}
	var versions []json.RawMessage
	if json.Unmarshal(more, &versions) != nil || len(versions) == 0 {
		return &cni.FieldError{Key: "cniVersions", Value: more, Reason: "is no list of versions", Fix: `write one, such as ["1.0.0", "1.1.0"], or leave it out`}
	}
	for i, raw := range versions {
		if json.Unmarshal(raw, &version) != nil || !slices.Contains(known, version) {
			return fault(fmt.Sprintf("cniVersions[%d]", i), raw)
		}
	}
	return nil
}

func checkPlugins(raw json.RawMessage) error {
	var plugins []json.RawMessage
	if json.Unmarshal(raw, &plugins) != nil || len(plugins) == 0 {
		return &cni.FieldError{Key: "plugins", Value: raw, Reason: "is no list of plugins", Fix: `write one of objects, each with a "type"`}
	}
	for i, plugin := range plugins {
		if err := checkPlugin(fmt.Sprintf("plugins[%d]", i), plugin); err != nil {
			return err
		}
	}
	return nil
}

func checkPlugin(key string, raw json.RawMessage) error {
	var conf map[string]json.RawMessage
	if json.Unmarshal(raw, &conf) != nil || conf == nil {
		return &cni.FieldError{Key: key, Value: raw, Reason: "is no configuration of a plugin", Fix: `write an object with a "type"`}
	}
	var name string
	if json.Unmarshal(conf["type"], &name) != nil || !isPlugin(name) {
		return &cni.FieldError{Key: key + ".type", Value: conf["type"], Reason: "is no name of an executable", Fix: "give its name without a path"}
	}
	return nil
}
