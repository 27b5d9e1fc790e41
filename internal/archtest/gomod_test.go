package archtest

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// goLine is what importers inherit. "go get" lifts it silently, which is why it is
// checked.
const goLine = "1.25.0"

// pins are the highest versions that keep goLine; a trailing dot pins the series.
var pins = map[string]string{
	"golang.org/x/sys":                    "v0.47.0",
	"golang.org/x/net":                    "v0.58.0",
	"github.com/prometheus/client_golang": "v1.24.1",
	"google.golang.org/grpc":              "v1.84.0",
	"k8s.io/client-go":                    "v0.35.",
	"k8s.io/apimachinery":                 "v0.35.",
	"k8s.io/api":                          "v0.35.",
}

// goMod is go.mod as "go mod edit -json" prints it.
type goMod struct {
	Module    struct{ Path string }
	Go        string
	Toolchain string
	Require   []struct{ Path, Version string }
	Replace   []any
	Exclude   []any
	Tool      []any
}

func TestGoModKeepsItsPromises(t *testing.T) {
	edit := exec.Command("go", "mod", "edit", "-json")
	edit.Dir = root(t)
	out, err := edit.Output()
	require.NoError(t, err)
	var mod goMod
	require.NoError(t, json.Unmarshal(out, &mod))
	require.Equal(t, modulePath, mod.Module.Path)
	report(t, checkGoMod(mod))
}

func checkGoMod(mod goMod) []string {
	var findings []string
	bad := func(format string, args ...any) {
		findings = append(findings, "go.mod: "+fmt.Sprintf(format, args...))
	}
	if mod.Go != goLine {
		bad("says go %s; every importer inherits it, so it stays go %s (a go get lifted it: find the requirement and lower it)", mod.Go, goLine)
	}
	if mod.Toolchain != "" {
		bad("has a toolchain line (%s); remove it", mod.Toolchain)
	}
	if len(mod.Replace)+len(mod.Exclude) > 0 {
		bad("has replace or exclude directives, which importers do not get; remove them")
	}
	if len(mod.Tool) > 0 {
		bad("has a tool block, which makes the tools requirements of every importer; use internal/tools")
	}
	for _, required := range mod.Require {
		pin, ok := pins[required.Path]
		if !ok || required.Version == pin || strings.HasSuffix(pin, ".") && strings.HasPrefix(required.Version, pin) {
			continue
		}
		bad("requires %s %s; the highest version that keeps go %s is %s", required.Path, required.Version, goLine, pin)
	}
	return findings
}

func TestGoModCheckFindsWhatIsBroken(t *testing.T) {
	tests := []struct {
		name, mod, want string
	}{
		{"kept", `{"Go":"1.25.0","Require":[{"Path":"golang.org/x/sys","Version":"v0.47.0"},{"Path":"k8s.io/client-go","Version":"v0.35.4"}]}`, ""},
		{"go line lifted", `{"Go":"1.26.0"}`, "go 1.26.0"},
		{"go line without patch", `{"Go":"1.25"}`, "go 1.25;"},
		{"toolchain", `{"Go":"1.25.0","Toolchain":"go1.26.8"}`, "toolchain line"},
		{"replace", `{"Go":"1.25.0","Replace":[{}]}`, "replace"},
		{"exclude", `{"Go":"1.25.0","Exclude":[{}]}`, "exclude"},
		{"tool", `{"Go":"1.25.0","Tool":[{"Path":"x"}]}`, "tool block"},
		{"pin lifted", `{"Go":"1.25.0","Require":[{"Path":"golang.org/x/sys","Version":"v0.48.0"}]}`, "x/sys v0.48.0"},
		{"series left", `{"Go":"1.25.0","Require":[{"Path":"k8s.io/client-go","Version":"v0.36.0"}]}`, "client-go v0.36.0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var mod goMod
			require.NoError(t, json.Unmarshal([]byte(tt.mod), &mod))
			findings := checkGoMod(mod)
			if tt.want == "" {
				assert.Empty(t, findings)
				return
			}
			require.Len(t, findings, 1)
			assert.Contains(t, findings[0], tt.want)
		})
	}
}
