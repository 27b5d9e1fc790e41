package file

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/cnikit/cnikit/overlay"
)

// Version is the version of the format that this package reads and writes.
const Version = 1

// document is the whole file. The nodes are decoded one by one, so that one of a wrong type does not cost the others.
type document struct {
	Version int               `json:"version"`
	Nodes   []json.RawMessage `json:"nodes"`
}

// entry is a node in the file.
type entry struct {
	Name      string    `json:"name"`
	UID       string    `json:"uid"`
	Created   time.Time `json:"created,omitzero"`
	PodCIDRs  []string  `json:"podCIDRs,omitempty"`
	Addresses []string  `json:"addresses,omitempty"`
}

// An entryError is a node that could not be decoded.
type entryError struct {
	index int
	name  string // "" if not even that
	err   error
}

func (e *entryError) Error() string {
	return fmt.Sprintf("node %q (entry %d): %v; the other nodes are used, of this one what was last good", e.name, e.index+1, e.err)
}

func (e *entryError) Unwrap() error { return e.err }

// parse decodes a file. The error is about the file as a whole; entries that cannot be decoded are returned apart.
func parse(data []byte) ([]overlay.Node, []*entryError, error) {
	if len(data) == 0 {
		return nil, nil, errors.New("the file is empty")
	}
	var d document
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, nil, err
	}
	if d.Version != Version {
		return nil, nil, fmt.Errorf("version %d is not known; write version %d, or use a release that reads it", d.Version, Version)
	}
	if d.Nodes == nil {
		return nil, nil, errors.New(`"nodes" is missing; an empty network has an empty list`)
	}
	nodes := make([]overlay.Node, 0, len(d.Nodes))
	var bad []*entryError
	for i, raw := range d.Nodes {
		var e entry
		if err := json.Unmarshal(raw, &e); err != nil {
			bad = append(bad, &entryError{index: i, name: nameOf(raw), err: err})
			continue
		}
		nodes = append(nodes, overlay.Node(e))
	}
	return nodes, bad, nil
}

// nameOf returns the name of an entry that could not be decoded, if it has one.
func nameOf(raw json.RawMessage) string {
	var fields map[string]json.RawMessage
	var name string
	if json.Unmarshal(raw, &fields) == nil {
		_ = json.Unmarshal(fields["name"], &name) // no string: no name
	}
	return name
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
