package chain

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/cnikit/cnikit/cni"
)

// stringKey returns the string at key, "" when it is absent.
func stringKey(o object, key string) (string, error) {
	raw, ok := o.get(key)
	if !ok {
		return "", nil
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", wrongKind(key, raw, "a string")
	}
	return s, nil
}

// stringsKey returns the list of strings at key, nil when it is absent.
func stringsKey(o object, key string) ([]string, error) {
	items, err := arrayKey(o, key)
	if err != nil {
		return nil, err
	}
	list := make([]string, len(items))
	for i, raw := range items {
		if kind(raw) != "string" {
			return nil, wrongKind(fmt.Sprintf("%s[%d]", key, i), raw, "a string")
		}
		if err := json.Unmarshal(raw, &list[i]); err != nil {
			return nil, wrongKind(key, raw, "a list of strings")
		}
	}
	return list, nil
}

// arrayKey returns the elements of the array at key, nil when it is absent.
func arrayKey(o object, key string) ([]json.RawMessage, error) {
	raw, ok := o.get(key)
	if !ok {
		return nil, nil
	}
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		return nil, wrongKind(key, raw, "a list […]")
	}
	return items, nil
}

// boolKey returns the boolean at key, false when it is absent. As in libcni the strings "true" and "false" stand for the boolean, in upper or
// lower case.
func boolKey(o object, key string) (bool, error) {
	raw, ok := o.get(key)
	if !ok {
		return false, nil
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return false, wrongKind(key, raw, "true or false")
	}
	switch v := v.(type) {
	case bool:
		return v, nil
	case string:
		switch strings.ToLower(v) {
		case "true":
			return true, nil
		case "false":
			return false, nil
		}
	}
	return false, wrongKind(key, raw, "true or false")
}

func wrongKind(key string, raw json.RawMessage, want string) error {
	return &cni.FieldError{Key: key, Value: raw, Reason: "is of type " + kind(raw), Fix: "write " + want}
}
