package cni_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni"
)

// testConfig is the configuration of the plugins in tests.
type testConfig struct {
	Bridge string            `json:"bridge"`
	MTU    int               `json:"mtu"`
	IPAM   testIPAM          `json:"ipam"`
	Labels map[string]string `json:"labels"`
}

type testIPAM struct {
	Type   string   `json:"type"`
	Ranges []string `json:"ranges"`
	Used   bool     `json:"used"`
}

func (c testConfig) Validate() error {
	if strings.Contains(c.Bridge, "/") {
		return &cni.FieldError{Key: "bridge", Value: c.Bridge, Reason: "contains a slash"}
	}
	return nil
}

type (
	request = cni.Request[testConfig]
	plugin  = cni.Plugin[testConfig]
)

// testPlugin answers everything with success. It may work in the host's namespace,
// so that tests need no right to make another.
func testPlugin() plugin {
	return plugin{
		Type: "test",
		Add: func(context.Context, *request) (*cni.Result, error) {
			return &cni.Result{IPs: []cni.IP{{Address: netip.MustParsePrefix("10.0.0.5/24")}}}, nil
		},
		Del:            cni.NoState[testConfig],
		Check:          cni.NoState[testConfig],
		Status:         cni.Ready[testConfig],
		GC:             cni.NoState[testConfig],
		AllowHostNetNS: true,
	}
}

// ownNetNS is the namespace of the test itself.
const ownNetNS = "/proc/self/ns/net"

// environment is a complete one for the command; a change "KEY=value" replaces, a
// change "KEY" removes.
func environment(command string, changes ...string) []string {
	env := []string{
		"CNI_COMMAND=" + command, "CNI_CONTAINERID=c1", "CNI_NETNS=" + ownNetNS,
		"CNI_IFNAME=eth0", "CNI_PATH=/nowhere", "OTHER=1",
	}
	for _, change := range changes {
		key, _, set := strings.Cut(change, "=")
		env = slices.DeleteFunc(env, func(entry string) bool { return strings.HasPrefix(entry, key+"=") })
		if set {
			env = append(env, change)
		}
	}
	return env
}

// network is a configuration of the version with further members.
func network(version string, members ...string) string {
	return `{` + strings.Join(append([]string{
		`"cniVersion":"` + version + `"`, `"name":"lan"`, `"type":"test"`, `"cni.dev/valid-attachments":[]`,
	}, members...), ",") + `}`
}

// answer is what a process left behind.
type answer struct {
	code           int
	stdout, stderr string
}

func run(p plugin, env []string, stdin string) answer {
	return runContext(context.Background(), p, env, strings.NewReader(stdin))
}

func runContext(ctx context.Context, p plugin, env []string, stdin io.Reader) answer {
	var stdout, stderr bytes.Buffer
	process := cni.Process{Env: env, Stdin: stdin, Stdout: &stdout, Stderr: &stderr}
	code := process.Run(ctx, p.Handler())
	return answer{code, stdout.String(), stderr.String()}
}

// failed checks that there is exactly one document, an error as the protocol wants
// it, and returns it.
func (a answer) failed(t *testing.T) cni.Error {
	t.Helper()
	assert.NotZero(t, a.code, "exit code")
	var doc struct {
		CNIVersion string  `json:"cniVersion"`
		Code       *uint   `json:"code"`
		Msg        string  `json:"msg"`
		Details    *string `json:"details"`
	}
	decoder := json.NewDecoder(strings.NewReader(a.stdout))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(&doc), "stdout: %q", a.stdout)
	_, err := decoder.Token()
	require.ErrorIs(t, err, io.EOF, "more than one document: %q", a.stdout)
	assert.NotEmpty(t, doc.CNIVersion)
	assert.NotEmpty(t, doc.Msg)
	require.NotNil(t, doc.Code)
	var e cni.Error
	require.NoError(t, json.Unmarshal([]byte(a.stdout), &e))
	return e
}

func (a answer) succeeded(t *testing.T, stdout string) {
	t.Helper()
	assert.Zero(t, a.code, "exit code; stdout: %s", a.stdout)
	assert.Equal(t, stdout, strings.TrimSuffix(a.stdout, "\n"))
}
