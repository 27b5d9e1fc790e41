package chain

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/internal/testenv"
)

func outcome(err error) string {
	if err != nil {
		return "fails"
	}
	return "succeeds"
}

// command is one command of a scenario: "add", "del", "del bare", "check", "status", "gc" with the valid container.
type command string

func (c command) verb() string { return strings.Fields(string(c))[0] }

func (c command) bare() bool { return c == "del bare" }

func (c command) valid() []cni.Attachment {
	valid := []cni.Attachment{}
	if id, ok := strings.CutPrefix(string(c), "gc "); ok {
		valid = append(valid, cni.Attachment{ContainerID: id, IfName: "eth0"})
	}
	return valid
}

// do runs the command as this package does.
func (k *kit) do(t *testing.T, text string, c command) error {
	t.Helper()
	a := Attachment{ContainerID: "c1", IfName: "eth0"}
	if !c.bare() {
		a.NetNS, a.Args = "/run/netns/c1", cni.Args{{Key: "K", Value: "v"}}
		a.Capabilities = map[string]any{"mac": "02:00:00:00:00:01"}
	}
	l := parsed(t, text)
	switch c.verb() {
	case "add":
		_, err := k.Add(t.Context(), l, a)
		return err
	case "del":
		return k.Del(t.Context(), l, a)
	case "check":
		return k.Check(t.Context(), l, a)
	case "status":
		return k.Status(t.Context(), l)
	}
	return k.GC(t.Context(), l, c.valid())
}

// libcni is the program in testdata/libcni, the path of its executable.
type libcni string

func buildLibcni(t *testing.T) libcni {
	t.Helper()
	source, err := filepath.Abs("testdata/libcni/main.go")
	require.NoError(t, err)
	program := filepath.Join(t.TempDir(), "libcni")
	build := exec.Command(testenv.Tool(t, "go"), "build", "-C", "../../internal/peers", "-o", program, source)
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOTOOLCHAIN=auto")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return libcni(program)
}

// do runs the command as libcni does, with the executed plugins of k.
func (p libcni) do(t *testing.T, k *kit, text string, c command) error {
	t.Helper()
	_, err := p.run(t, map[string]any{
		"Command": c.verb(), "List": text, "Path": k.Path, "CacheDir": k.CacheDir, "Bare": c.bare(), "Valid": c.valid(),
	})
	return err
}

// run returns what the program printed; an error is libcni's.
func (p libcni) run(t *testing.T, request map[string]any) (string, error) {
	t.Helper()
	input, err := json.Marshal(request)
	require.NoError(t, err)
	program := exec.Command(string(p))
	program.Env = append(os.Environ(), promptExit) // libcni hands its environment on
	program.Stdin = bytes.NewReader(input)
	out, err := program.Output()
	var exit *exec.ExitError
	if err != nil {
		require.ErrorAs(t, err, &exit)
		require.Equal(t, 1, exit.ExitCode(), "%s", exit.Stderr)
		return "", fmt.Errorf("%s", exit.Stderr)
	}
	return strings.TrimSpace(string(out)), nil
}

// compare lists how two sequences of invocations differ.
func compare(t *testing.T, theirs, ours []seen) []string {
	var differences []string
	if a, b := fmt.Sprint(theirs), fmt.Sprint(ours); a != b {
		list := func(calls []seen) string {
			names := make([]string, len(calls))
			for i, c := range calls {
				names[i] = c.String()
			}
			return "[" + strings.Join(names, ", ") + "]"
		}
		differences = append(differences, fmt.Sprintf("order: libcni %s, chain %s", list(theirs), list(ours)))
	}
	for i := range min(len(theirs), len(ours)) {
		if theirs[i].String() == ours[i].String() {
			differences = append(differences, compareCall(t, theirs[i], ours[i])...)
		}
	}
	return differences
}

func compareCall(t *testing.T, theirs, ours seen) []string {
	var differences []string
	differ := func(key, a, b string) {
		if a != b {
			differences = append(differences, fmt.Sprintf("%s: %s: libcni %s, chain %s", ours, key, a, b))
		}
	}
	differ("CNI_CONTAINERID", theirs.Inv.ContainerID, ours.Inv.ContainerID)
	differ("CNI_NETNS", theirs.Inv.NetNS, ours.Inv.NetNS)
	differ("CNI_IFNAME", theirs.Inv.IfName, ours.Inv.IfName)
	differ("CNI_ARGS", theirs.Inv.Args, ours.Inv.Args)
	a, b := canonical(t, theirs.Inv.Config), canonical(t, ours.Inv.Config)
	keys := map[string]bool{}
	for key := range a {
		keys[key] = true
	}
	for key := range b {
		keys[key] = true
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		differ(key, orNothing(a[key]), orNothing(b[key]))
	}
	return differences
}

func orNothing(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}

// canonical renders each member of a request with sorted keys and numbers as they are written.
func canonical(t *testing.T, raw []byte) map[string]string {
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.UseNumber()
	var decoded map[string]any
	require.NoError(t, dec.Decode(&decoded))
	members := map[string]string{}
	for key, value := range decoded {
		text, err := marshal(value)
		require.NoError(t, err)
		members[key] = string(text)
	}
	return members
}
