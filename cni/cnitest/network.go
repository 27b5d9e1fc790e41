package cnitest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// network is the configuration of a target: the plugin objects in order, of which the
// one at the index is under test.
type network struct {
	name, version string
	plugins       []document
	index         int
}

func (n *network) plugin() document { return n.plugins[n.index] }

// parseNetwork reads a plugin object or a list.
func parseNetwork(config []byte, plugin string) (*network, error) {
	doc, err := parseDocument(config)
	if err != nil {
		return nil, err
	}
	n := &network{name: doc.text("name"), version: doc.text("cniVersion")}
	if n.name == "" {
		n.name = "cnitest"
	}
	list, isList := doc["plugins"].([]any)
	if !isList {
		n.plugins = []document{doc}
		if doc.text("type") == "" && plugin != "" {
			doc["type"] = plugin
		}
		return n, n.check()
	}
	n.index = -1
	for i, entry := range list {
		object, ok := entry.(map[string]any)
		if !ok {
			return nil, fmt.Errorf("plugins[%d] is no object", i)
		}
		n.plugins = append(n.plugins, object)
		if document(object).text("type") == plugin {
			n.index = i
		}
	}
	if plugin == "" {
		n.index = len(n.plugins) - 1
	}
	if n.index < 0 {
		return nil, fmt.Errorf("plugins has no entry of type %q, or none at all", plugin)
	}
	return n, n.check()
}

func (n *network) check() error {
	for i, p := range n.plugins {
		if t := p.text("type"); t == "" || strings.ContainsAny(t, `/\`) {
			return fmt.Errorf("plugin %d has type %q, want the file name of an executable", i, t)
		}
	}
	return nil
}

// document is a JSON object whose numbers are kept as they are written.
type document map[string]any

func parseDocument(data []byte) (document, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	var d document
	if err := decoder.Decode(&d); err != nil {
		return nil, err
	}
	if d == nil {
		return nil, errors.New("is null, want an object")
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("has something behind the object")
	}
	return d, nil
}

// text is the string at a path of keys, "" if there is none.
func (d document) text(path ...string) string {
	s, _ := d.at(path...).(string)
	return s
}

// at is the value at a path of keys, nil if there is none.
func (d document) at(path ...string) any {
	var v any = map[string]any(d)
	for _, key := range path {
		object, _ := v.(map[string]any)
		v = object[key]
	}
	return v
}

// object is the object at a path of keys, nil if there is none.
func (d document) object(path ...string) document {
	o, _ := d.at(path...).(map[string]any)
	return o
}

// list is the list at a path of keys.
func (d document) list(path ...string) []any {
	l, _ := d.at(path...).([]any)
	return l
}

// clone copies the document with everything in it.
func (d document) clone() document { return cloneValue(map[string]any(d)).(map[string]any) }

func cloneValue(v any) any {
	switch v := v.(type) {
	case map[string]any:
		c := make(map[string]any, len(v))
		for key, value := range v {
			c[key] = cloneValue(value)
		}
		return c
	case []any:
		c := make([]any, len(v))
		for i, value := range v {
			c[i] = cloneValue(value)
		}
		return c
	}
	return v
}

// replaced is the document with a text in all its strings replaced.
func (d document) replaced(old, with string) document {
	var walk func(any) any
	walk = func(v any) any {
		switch v := v.(type) {
		case string:
			return strings.ReplaceAll(v, old, with)
		case map[string]any:
			for key, value := range v {
				v[key] = walk(value)
			}
		case []any:
			for i, value := range v {
				v[i] = walk(value)
			}
		}
		return v
	}
	c := d.clone()
	walk(map[string]any(c))
	return c
}

// encode renders the document; keys are sorted.
func (d document) encode() []byte {
	var buf bytes.Buffer
	encoder := json.NewEncoder(&buf)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(map[string]any(d)); err != nil {
		return []byte("null") // it was decoded from JSON, or made of values that can be encoded
	}
	return bytes.TrimSpace(buf.Bytes())
}

// keys lists the keys, sorted.
func (d document) keys() []string { return slices.Sorted(maps.Keys(d)) }
