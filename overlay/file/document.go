package file

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/cnikit/cnikit/overlay"
)

// Version is the version of the format that this package reads and writes.
const Version = 1

// entry is a node in the file, as it is written.
type entry struct {
	Name      string    `json:"name"`
	UID       string    `json:"uid"`
	Created   time.Time `json:"created,omitzero"`
	PodCIDRs  []string  `json:"podCIDRs,omitempty"`
	Addresses []string  `json:"addresses,omitempty"`
}

// parse decodes a file. The error is about the file as a whole; what is wrong with single entries is returned apart, so that
// one of a wrong type does not cost the others.
func parse(data []byte) ([]overlay.Node, []*EntryError, error) {
	entries, err := split(data)
	if err != nil {
		return nil, nil, err
	}
	nodes := make([]overlay.Node, 0, len(entries))
	var bad []*EntryError
	for i, raw := range entries {
		n, err := parseEntry(raw)
		if err != nil {
			err.Index = i
			bad = append(bad, err)
		}
		if err == nil || err.Used {
			nodes = append(nodes, n)
		}
	}
	return nodes, bad, nil
}

// split returns the undecoded nodes of a file.
func split(data []byte) ([]json.RawMessage, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, errors.New("the file is empty; " + whole)
	}
	var fields map[string]json.RawMessage
	err := json.Unmarshal(data, &fields)
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		return nil, fmt.Errorf("%s: %w; %s", position(data, syntax.Offset), err, whole)
	case err != nil, fields == nil:
		return nil, fmt.Errorf(`want an object with "version" and "nodes", not %s`, kindOf(bytes.TrimSpace(data)))
	}
	if err := checkVersion(fields["version"]); err != nil {
		return nil, err
	}
	var entries []json.RawMessage
	switch kind := kindOf(fields["nodes"]); kind {
	case missing, null:
		return nil, errors.New(`"nodes" is missing; an empty network has an empty list`)
	case list:
		err = json.Unmarshal(fields["nodes"], &entries)
	default:
		err = fmt.Errorf("nodes: want a list of objects, not %s", kind)
	}
	return entries, err
}

// whole is the way out when the file is incomplete.
const whole = "replace the file as a whole, by rename"

// position says where the byte is with which a decoder gave up after so many.
func position(data []byte, offset int64) string {
	before := data[:max(min(int(offset), len(data))-1, 0)]
	return fmt.Sprintf("line %d, column %d", 1+bytes.Count(before, []byte("\n")), len(before)-bytes.LastIndexByte(before, '\n'))
}

func checkVersion(raw json.RawMessage) error {
	switch kind := kindOf(raw); kind {
	case missing, null:
		return fmt.Errorf(`"version" is missing; write %d`, Version)
	case number:
		var v int
		if json.Unmarshal(raw, &v) == nil && v == Version {
			return nil
		}
		return fmt.Errorf("version: %s is not known; write %d, or use a release that reads it", raw, Version)
	default:
		return fmt.Errorf("version: want a number, not %s", kind)
	}
}

// encode is the inverse of parse.
func encode(nodes []overlay.Node) ([]byte, error) {
	d := struct {
		Version int     `json:"version"`
		Nodes   []entry `json:"nodes"`
	}{Version, make([]entry, 0, len(nodes))}
	for _, n := range nodes {
		d.Nodes = append(d.Nodes, entry(n))
	}
	data, err := json.MarshalIndent(d, "", "  ")
	return append(data, '\n'), err
}
