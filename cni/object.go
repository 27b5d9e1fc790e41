package cni

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
)

// object writes one JSON object, member by member in a fixed order, and keeps the
// first error with its path. The zero value is empty.
type object struct {
	buf     bytes.Buffer
	members int
	err     error
}

func (o *object) bytes() []byte {
	if o.members == 0 {
		return []byte("{}")
	}
	return append(bytes.Clone(o.buf.Bytes()), '}')
}

// raw adds a member that is JSON already.
func (o *object) raw(key string, value []byte) {
	separator := byte(',')
	if o.members == 0 {
		separator = '{'
	}
	o.buf.WriteByte(separator)
	o.encode(key)
	o.buf.WriteByte(':')
	o.buf.Write(value)
	o.members++
}

func (o *object) encode(v any) {
	encoder := json.NewEncoder(&o.buf)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil && o.err == nil {
		o.err = err
	}
	if last := o.buf.Len() - 1; last >= 0 && o.buf.Bytes()[last] == '\n' {
		o.buf.Truncate(last)
	}
}

// value adds a member, whatever its value.
func (o *object) value(key string, v any) {
	o.raw(key, nil)
	o.encode(v)
}

// text, texts, number and addr add a member unless it is empty.

func (o *object) text(key, s string) {
	if s != "" {
		o.value(key, s)
	}
}

func (o *object) texts(key string, s []string) {
	if len(s) > 0 {
		o.value(key, s)
	}
}

func (o *object) number(key string, n int) {
	if n != 0 {
		o.value(key, n)
	}
}

func (o *object) addr(key string, a netip.Addr) {
	if a.IsValid() {
		o.value(key, a)
	}
}

// object adds an object.
func (o *object) object(key string, inner *object) {
	if inner.err != nil && o.err == nil {
		o.err = fmt.Errorf("%s.%w", key, inner.err)
	}
	o.raw(key, inner.bytes())
}

// addList adds a list of objects unless it is empty.
func addList[T any](o *object, key string, list []T, version string, encode func(T, *object, string)) {
	if len(list) == 0 {
		return
	}
	var buf bytes.Buffer
	for i, item := range list {
		separator := byte(',')
		if i == 0 {
			separator = '['
		}
		buf.WriteByte(separator)
		var inner object
		encode(item, &inner, version)
		if inner.err != nil && o.err == nil {
			o.err = fmt.Errorf("%s[%s].%w", key, strconv.Itoa(i), inner.err)
		}
		buf.Write(inner.bytes())
	}
	buf.WriteByte(']')
	o.raw(key, buf.Bytes())
}

// extra adds unknown members in the order of their keys, without the known ones.
func (o *object) extra(extra map[string]json.RawMessage, known ...string) {
	for _, key := range slices.Sorted(maps.Keys(extra)) {
		if slices.Contains(known, key) {
			continue
		}
		if !json.Valid(extra[key]) && o.err == nil {
			o.err = fmt.Errorf("%s: is %s, want JSON", key, describeJSON(extra[key]))
		}
		o.raw(key, extra[key])
	}
}
