package cni

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strconv"
)

// findFault finds the member that a configuration does not decode for.
func findFault[C any](data []byte, err error) error {
	eachMember(data, func(key string, value, member json.RawMessage) bool {
		fault := json.Unmarshal(member, new(C))
		if fault != nil {
			err = narrowFault[C](key, value, fault, func(value json.RawMessage) []byte { return memberOf(key, value) })
		}
		return fault == nil
	})
	return err
}

// longestPath is the most bytes of a path that is gone on from: each step decodes anew.
const longestPath = 100

// narrowFault goes into a value as long as one of its parts alone has the same fault, and
// an empty value has not. The configuration is what within makes of a value.
func narrowFault[C any](path string, value json.RawMessage, fault error, within func(json.RawMessage) []byte) error {
	same := func(value []byte) bool {
		err := json.Unmarshal(within(value), new(C))
		return err != nil && err.Error() == fault.Error()
	}
	var found error
	eachPart(value, func(step string, part json.RawMessage, alone func(json.RawMessage) []byte) bool {
		if len(path) < longestPath && same(alone(part)) && !same(emptied(value)) {
			found = narrowFault[C](path+step, part, fault, func(part json.RawMessage) []byte { return within(alone(part)) })
		}
		return found == nil
	})
	if found != nil {
		return found
	}
	e := &FieldError{Key: path, Value: value, Reason: fault.Error()}
	var mismatch *json.UnmarshalTypeError
	if errors.As(fault, &mismatch) {
		e.Reason = "has the wrong type: want " + nameKind(mismatch.Type) + ", not " + mismatch.Value
	}
	return e
}

// emptied is an object or a list without its parts.
func emptied(value json.RawMessage) []byte {
	if bytes.HasPrefix(value, []byte("{")) {
		return []byte("{}")
	}
	return []byte("[]")
}

// eachPart calls fn for the members of an object and the elements of a list, until fn
// returns false: with the step that leads to the part, and what makes a value of a part
// alone.
func eachPart(value json.RawMessage, fn func(step string, part json.RawMessage, alone func(json.RawMessage) []byte) bool) {
	eachMember(value, func(key string, part, _ json.RawMessage) bool {
		return fn("."+key, part, func(part json.RawMessage) []byte { return memberOf(key, part) })
	})
	var elements []json.RawMessage
	_ = json.Unmarshal(value, &elements) // what is no list has none
	for i, part := range elements {
		alone := func(part json.RawMessage) []byte { return slices.Concat([]byte("["), part, []byte("]")) }
		if !fn("["+strconv.Itoa(i)+"]", part, alone) {
			return
		}
	}
}

// nameKind names a Go type as the author of a configuration knows it.
func nameKind(t reflect.Type) string {
	if reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return "a string"
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Pointer:
		return nameKind(t.Elem())
	}
	return "a whole number (" + t.Kind().String() + ")"
}
