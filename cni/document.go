package cni

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// document is a JSON object whose members keep their order and their text, so that a
// configuration or a result is handed on without loss.
type document []member

type member struct {
	key   string
	value json.RawMessage
}

func readDocument(data []byte) (document, error) {
	if !json.Valid(data) || !bytes.HasPrefix(bytes.TrimSpace(data), []byte("{")) {
		return nil, fmt.Errorf("the document: is %s, want an object", describeJSON(data))
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	_, _ = decoder.Token() // the brace; the rest is known to be valid, too
	d := document{}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return nil, err
		}
		m := member{key: fmt.Sprint(key)}
		if err := decoder.Decode(&m.value); err != nil {
			return nil, err
		}
		d = append(d, m)
	}
	return d, nil
}

// get returns a member, nil if it is absent or null. Of two with the same key the
// last counts, as for package json.
func (d document) get(key string) json.RawMessage {
	for _, m := range slices.Backward(d) {
		if m.key == key {
			if string(m.value) == "null" {
				return nil
			}
			return m.value
		}
	}
	return nil
}

// text returns a member that is a string, and is empty if it is none.
func (d document) text(key string) (s string) {
	if value := d.get(key); value != nil && json.Unmarshal(value, &s) != nil {
		return ""
	}
	return s
}

// with returns a copy with the member, and without any whose key differs in upper and
// lower case only: decoders that do not tell the two apart, as Go's, would take it.
func (d document) with(key string, value json.RawMessage) document {
	at := slices.IndexFunc(d, func(m member) bool { return m.key == key })
	c := make(document, 0, len(d)+1)
	for i, m := range d {
		switch {
		case i == at:
			c = append(c, member{key, value})
		case !strings.EqualFold(m.key, key):
			c = append(c, m)
		}
	}
	if at < 0 {
		c = append(c, member{key, value})
	}
	return c
}

// without returns a copy that lacks the member, whatever the case of its key.
func (d document) without(key string) document {
	return slices.DeleteFunc(slices.Clone(d), func(m member) bool { return strings.EqualFold(m.key, key) })
}

func (d document) encode() []byte {
	var o object
	for _, m := range d {
		o.raw(m.key, m.value)
	}
	return o.bytes()
}
