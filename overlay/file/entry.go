package file

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cnikit/cnikit/overlay"
)

// An EntryError is what is wrong with one node of the file. The other nodes are used.
type EntryError struct {
	Index int    // of the entry, from 0
	Node  string // its name; empty if not even that could be read
	Used  bool   // the node is used: what is wrong is a key that is not known
	Err   error

	kept bool // the node stays as it was last read
}

// Error names node, key, reason and consequence.
func (e *EntryError) Error() string {
	where, fate := fmt.Sprintf("node %q (entry %d)", e.Node, e.Index+1), "the node is left out"
	if e.Node == "" {
		where = fmt.Sprintf("entry %d", e.Index+1)
	}
	switch {
	case e.Used:
		fate = "the node is used without"
	case e.kept:
		fate = "the node stays as it was last read"
	}
	return fmt.Sprintf("%s: %v; %s", where, e.Err, fate)
}

// Unwrap returns Err.
func (e *EntryError) Unwrap() error { return e.Err }

// parseEntry decodes one node. The values are decoded one by one, to say of each what it should have been.
func parseEntry(raw json.RawMessage) (overlay.Node, *EntryError) {
	var n overlay.Node
	var fields map[string]json.RawMessage
	if kind := kindOf(raw); kind != object {
		return n, &EntryError{Err: fmt.Errorf("want an object, not %s", kind)}
	}
	if err := json.Unmarshal(raw, &fields); err != nil {
		return n, &EntryError{Err: err}
	}
	var wrong, unknown []string
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		reason, known := parseField(&n, key, fields[key])
		switch {
		case !known:
			unknown = append(unknown, fmt.Sprintf("%q", key))
		case reason != "":
			wrong = append(wrong, reason)
		}
	}
	used := len(wrong) == 0
	if len(unknown) > 0 {
		wrong = append(wrong, unknownKeys(unknown))
	}
	if len(wrong) == 0 {
		return n, nil
	}
	return n, &EntryError{Node: n.Name, Used: used, Err: errors.New(strings.Join(wrong, "; "))}
}

func unknownKeys(keys []string) string {
	others := ""
	if len(keys) > 1 {
		others = ", nor " + strings.Join(keys[1:], ", ")
	}
	return "key " + keys[0] + " is not known" + others + "; use name, uid, created, podCIDRs, addresses"
}

// parseField sets one field of n, and says what is wrong with its value.
func parseField(n *overlay.Node, key string, raw json.RawMessage) (reason string, known bool) {
	var err error
	switch key {
	case "name":
		n.Name, err = parseText(raw)
	case "uid":
		n.UID, err = parseText(raw)
	case "podCIDRs":
		n.PodCIDRs, err = parseTexts(raw)
	case "addresses":
		n.Addresses, err = parseTexts(raw)
	case "created":
		if json.Unmarshal(raw, &n.Created) != nil {
			err = fmt.Errorf(": write RFC 3339, such as 2025-03-01T12:00:00Z, not %s", brief(raw))
		}
	default:
		return "", false
	}
	if err != nil {
		return key + err.Error(), true
	}
	return "", true
}

// parseText decodes a string. Null is an empty one.
func parseText(raw json.RawMessage) (s string, err error) {
	if kind := kindOf(raw); kind != text && kind != null {
		return "", fmt.Errorf(": want a string, not %s", kind)
	}
	return s, json.Unmarshal(raw, &s)
}

// parseTexts decodes a list of strings. Null is an empty one.
func parseTexts(raw json.RawMessage) ([]string, error) {
	var items []json.RawMessage
	if kind := kindOf(raw); kind != list && kind != null {
		return nil, fmt.Errorf(": want a list of strings, not %s", kind)
	}
	if err := json.Unmarshal(raw, &items); err != nil {
		return nil, err
	}
	var texts []string
	for i, item := range items {
		if kind := kindOf(item); kind != text {
			return nil, fmt.Errorf("[%d]: want a string, not %s", i, kind)
		}
		s, err := parseText(item)
		if err != nil {
			return nil, err
		}
		texts = append(texts, s)
	}
	return texts, nil
}

// A kind of JSON value, in words.
type kind string

const (
	missing kind = "nothing"
	null    kind = "null"
	text    kind = "a string"
	number  kind = "a number"
	boolean kind = "a boolean"
	list    kind = "a list"
	object  kind = "an object"
)

// kindOf returns the kind of a valid JSON value without white space around it.
func kindOf(raw []byte) kind {
	if len(raw) == 0 {
		return missing
	}
	switch raw[0] {
	case '"':
		return text
	case '{':
		return object
	case '[':
		return list
	case 't', 'f':
		return boolean
	case 'n':
		return null
	}
	return number
}

// brief quotes a value if it is short, else says what it is.
func brief(raw []byte) string {
	if k := kindOf(raw); k == object || k == list || len(raw) > 60 {
		return string(k)
	}
	return string(raw)
}
