package chain

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/cnikit/cnikit/cni"
)

// object is a JSON object whose members keep their order and their exact text but for white space: numbers never pass through a float64 and
// unknown members are carried along untouched.
type object []member

type member struct {
	key   string
	value json.RawMessage
}

// parseDocument reads data as exactly one JSON object. Syntax errors name line and column.
func parseDocument(data []byte) (object, error) {
	if !utf8.Valid(data) {
		return nil, errors.New("decode JSON: the text is not UTF-8; save it as UTF-8")
	}
	var text json.RawMessage
	if err := json.Unmarshal(data, &text); err != nil { // Compact does not tell the place of an error
		return nil, syntaxError(data, err)
	}
	var raw bytes.Buffer
	if err := json.Compact(&raw, text); err != nil {
		return nil, fmt.Errorf("decode JSON: %w", err)
	}
	return parseObject(raw.Bytes())
}

// parseObject splits raw, which must be valid JSON, into the members of an object. A key given twice is refused: readers disagree about which
// one counts.
func parseObject(raw json.RawMessage) (object, error) {
	if k := kind(raw); k != "object" {
		return nil, fmt.Errorf("decode JSON: found %s %s, want an object {…}", k, shorten(raw))
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	if _, err := dec.Token(); err != nil {
		return nil, fmt.Errorf("decode JSON: %w", err)
	}
	var o object
	for dec.More() {
		m, err := nextMember(dec)
		if err != nil {
			return nil, err
		}
		if _, twice := o.get(m.key); twice {
			return nil, &cni.FieldError{Key: m.key, Value: m.value, Reason: "the key is given twice", Fix: "keep one of the two"}
		}
		o = append(o, m)
	}
	return o, nil
}

func nextMember(dec *json.Decoder) (member, error) {
	token, err := dec.Token()
	if err != nil {
		return member{}, fmt.Errorf("decode JSON: %w", err)
	}
	m := member{key: fmt.Sprint(token)}
	if err := dec.Decode(&m.value); err != nil {
		return member{}, fmt.Errorf("decode JSON: key %q: %w", m.key, err)
	}
	return m, nil
}

// get returns the value of key, spelled exactly so. JSON null counts as absent.
func (o object) get(key string) (json.RawMessage, bool) {
	for _, m := range o {
		if m.key == key {
			return m.value, !bytes.Equal(m.value, []byte("null"))
		}
	}
	return nil, false
}

// misspelled returns a member that equals key but for upper and lower case, for error messages.
func (o object) misspelled(key string) (string, bool) {
	for _, m := range o {
		if m.key != key && strings.EqualFold(m.key, key) {
			return m.key, true
		}
	}
	return "", false
}

// without returns a copy that lacks the members whose key satisfies drop.
func (o object) without(drop func(key string) bool) object {
	kept := make(object, 0, len(o))
	for _, m := range o {
		if !drop(m.key) {
			kept = append(kept, m)
		}
	}
	return kept
}

// with returns o with key set to value: replaced where it stands, appended otherwise.
func (o object) with(key string, value json.RawMessage) object {
	out := append(make(object, 0, len(o)+1), o...)
	for i := range out {
		if out[i].key == key {
			out[i].value = value
			return out
		}
	}
	return append(out, member{key, value})
}

// encode renders the object on one line.
func (o object) encode() json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(quote(m.key))
		b.WriteByte(':')
		b.Write(m.value)
	}
	b.WriteByte('}')
	return b.Bytes()
}

// marshal is json.Marshal without the HTML escapes, which would alter what a user wrote.
func marshal(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

func quote(s string) json.RawMessage {
	raw, err := marshal(s)
	if err != nil {
		return json.RawMessage(`""`) // unreachable: a string always encodes
	}
	return raw
}

// kind names the JSON type of raw for error messages.
func kind(raw json.RawMessage) string {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return "nothing"
	}
	switch raw[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	return "number"
}

// shorten makes raw fit into an error message.
func shorten(raw json.RawMessage) string {
	const most = 64
	s := strings.ToValidUTF8(strings.Join(strings.Fields(string(raw)), " "), "?")
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// syntaxError adds line and column to an error of package json.
func syntaxError(data []byte, err error) error {
	var syntax *json.SyntaxError
	if !errors.As(err, &syntax) {
		return fmt.Errorf("decode JSON: %w", err)
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return fmt.Errorf("decode JSON: the text is empty: %w", err)
	}
	before := data[:min(int(syntax.Offset), len(data))]
	line := bytes.Count(before, []byte("\n")) + 1
	column := len(before) - bytes.LastIndexByte(before, '\n') - 1
	return fmt.Errorf("decode JSON: line %d, column %d: %w", line, column, err)
}
