package fromskel

import (
	"encoding/json"
	"slices"

	"github.com/cnikit/cnikit/cni"
)

// stdinFor is the configuration for a callback: that of the request, with a
// prevResult that version.ParsePrevResult reads. A DEL may have a version that the
// callback does not speak; the configuration gets the newest that it does.
func stdinFor[C any](r *cni.Request[C], speaks []string) []byte {
	var members map[string]json.RawMessage
	if json.Unmarshal(r.RawConfig, &members) != nil {
		return r.RawConfig
	}
	version, changed := r.CNIVersion, false
	if !slices.Contains(speaks, version) && len(speaks) > 0 {
		version, changed = newest(speaks), true
		members["cniVersion"] = json.RawMessage(`"` + version + `"`)
	}
	if raw := members["prevResult"]; raw != nil && string(raw) != "null" {
		switch {
		case r.PrevResult == nil:
			delete(members, "prevResult")
			changed = true
		case r.PrevResult.CNIVersion != version:
			converted, err := r.PrevResult.Encode(version)
			if err != nil {
				r.Log.Warn("prevResult is passed on as it is", "error", err)
				break
			}
			members["prevResult"] = converted
			changed = true
		}
	}
	if !changed {
		return r.RawConfig
	}
	config, err := json.Marshal(members)
	if err != nil {
		return r.RawConfig
	}
	return config
}

func newest(speaks []string) string {
	all := cni.SupportedVersions()
	return slices.MaxFunc(speaks, func(a, b string) int { return slices.Index(all, a) - slices.Index(all, b) })
}
