package cni

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// fields takes the members of one JSON object apart and keeps the first error,
// with its path. What was not taken is the rest. Keys are case-sensitive.
type fields struct {
	path    string // of the object, "" for the document
	members map[string]json.RawMessage
	err     error
}

func readFields(path string, data []byte) (*fields, error) {
	f := &fields{path: path}
	if err := json.Unmarshal(data, &f.members); err != nil || f.members == nil {
		return nil, fmt.Errorf("%s: is %s, want an object", orDocument(path), describeJSON(data))
	}
	return f, nil
}

func orDocument(path string) string {
	if path == "" {
		return "the document"
	}
	return path
}

func (f *fields) at(key string) string {
	if f.path == "" {
		return key
	}
	return f.path + "." + key
}

func (f *fields) fail(key, format string, args ...any) {
	if f.err == nil {
		f.err = fmt.Errorf("%s: %w", f.at(key), fmt.Errorf(format, args...))
	}
}

func (f *fields) adopt(inner *fields) {
	if f.err == nil {
		f.err = inner.err
	}
}

// raw removes a member; nil if it is absent or null.
func (f *fields) raw(key string) json.RawMessage {
	value, ok := f.members[key]
	delete(f.members, key)
	if !ok || string(value) == "null" {
		return nil
	}
	return value
}

func (f *fields) take(key string, into any, want string) {
	value := f.raw(key)
	if value == nil {
		return
	}
	if err := json.Unmarshal(value, into); err != nil {
		f.fail(key, "is %s, want %s", describeJSON(value), want)
	}
}

func (f *fields) text(key string) (s string) {
	f.take(key, &s, "a string")
	return s
}

func (f *fields) number(key string) (n int) {
	f.take(key, &n, "a whole number")
	return n
}

func (f *fields) numberPointer(key string) (n *int) {
	f.take(key, &n, "a whole number")
	return n
}

func (f *fields) addr(key string) netip.Addr {
	s := f.text(key)
	if s == "" {
		return netip.Addr{}
	}
	addr, err := netip.ParseAddr(s)
	if err != nil || addr.Zone() != "" {
		f.fail(key, "%q is not an IP address", s)
	}
	return addr.Unmap()
}

func (f *fields) prefix(key string) netip.Prefix {
	s := f.text(key)
	prefix, err := netip.ParsePrefix(s)
	if err != nil {
		f.fail(key, "%q is not an IP address with a prefix length", s)
		return netip.Prefix{}
	}
	return unmap(prefix)
}

// unmap makes an IPv4 prefix of one in IPv6 form, an invalid one if that is too short.
func unmap(p netip.Prefix) netip.Prefix {
	if p.Addr().Is4In6() {
		return netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p
}

// object removes a member that is an object; nil if it is absent, null or wrong.
func (f *fields) object(key string) *fields {
	value := f.raw(key)
	if value == nil {
		return nil
	}
	inner, err := readFields(f.at(key), value)
	if err != nil && f.err == nil {
		f.err = err
	}
	return inner
}

// readList removes a member that is a list of objects.
func readList[T any](f *fields, key string, read func(*fields) T) []T {
	var items []json.RawMessage
	f.take(key, &items, "a list of objects")
	var list []T
	for i, item := range items {
		inner, err := readFields(f.at(key)+"["+strconv.Itoa(i)+"]", item)
		if err != nil {
			inner = &fields{err: err}
		}
		list = append(list, read(inner))
		f.adopt(inner)
	}
	return list
}

func (f *fields) rest() map[string]json.RawMessage {
	if len(f.members) == 0 {
		return nil
	}
	return f.members
}

// describeJSON shows a value in an error message, shortened.
func describeJSON(data []byte) string {
	const most = 60
	switch {
	case len(data) == 0:
		return "empty"
	case !json.Valid(data):
		return "not JSON (" + strconv.Quote(shorten(string(data), most)) + ")"
	}
	return shorten(string(data), most)
}

// shorten cuts s to about n bytes.
func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
