package bridge

import (
	"encoding/json"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// warnTypos logs keys that are unknown, and so ignored, but one edit away from a known one.
func warnTypos(log *slog.Logger, config json.RawMessage) {
	var keys map[string]json.RawMessage
	_ = json.Unmarshal(config, &keys) // decoded before
	known := []string{"cniVersion", "cniVersions", "name", "type", "args", "capabilities", "runtimeConfig", "prevResult"}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[Config]()) {
		if tag := field.Tag.Get("json"); tag != "" {
			known = append(known, tag)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if slices.ContainsFunc(known, func(k string) bool { return strings.EqualFold(k, key) }) {
			continue
		}
		if i := slices.IndexFunc(known, func(k string) bool { return oneEdit(k, key) }); i >= 0 {
			log.Warn("unknown configuration key is ignored", "key", key, "similar", known[i])
		}
	}
}

// oneEdit reports whether a becomes b by one letter more, less, changed or swapped.
func oneEdit(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	for a != "" && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	if len(a) < len(b) {
		return a == b[1:]
	}
	return a != "" && (a[1:] == b[1:] || len(a) > 1 && a[:2] == b[1:2]+b[:1] && a[2:] == b[2:])
}
