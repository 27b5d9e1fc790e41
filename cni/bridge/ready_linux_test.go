package bridge_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/cnikit/cnikit/cni"
)

// reportFile is a path under /run at which there is nothing.
func reportFile(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/run", "cnikit-test-")
	if err != nil { // inside a user namespace; this one is open to everybody
		dir, err = os.MkdirTemp("/run/lock", "cnikit-test-")
	}
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, os.RemoveAll(dir)) })
	return filepath.Join(dir, "status.json")
}

func writes(content string) func(*testing.T, string) {
	return func(t *testing.T, file string) { require.NoError(t, os.WriteFile(file, []byte(content), 0o600)) }
}

func (e *executable) status(t *testing.T, config map[string]any) error {
	t.Helper()
	_, err := e.run(t, cni.Invocation{Command: cni.CommandStatus}, config)
	return err
}

func TestStatusOfReport(t *testing.T) {
	const verbatim = "underlay 192.0.2.1 \"eth0\"\nis gone\t<&>\u2026"
	encoded, err := json.Marshal(map[string]any{"ready": false, "reason": verbatim})
	require.NoError(t, err)
	e := newExecutable(t)
	for _, test := range []struct {
		rule  string
		write func(t *testing.T, file string) // nil: nothing is there
		words []string                        // of the message; nil: no error
	}{
		{rule: "missing", words: []string{"the node agent has not reported yet", "does not exist", "see whether the agent runs"}},
		{rule: "ready", write: writes(`{"node":"a","ready":true,"problems":[{"ready":false}],"targets":{}}`)},
		{rule: "ready, whatever the reason", write: writes(`{"ready":true,"reason":"none"}` + "\n")},
		{rule: "not ready", write: writes(string(encoded)), words: []string{"the node agent is not ready: " + verbatim + " (from "}},
		{rule: "not ready, no reason", write: writes(`{"ready":false}`), words: []string{"is not ready and gives no reason", "see its log"}},
		{rule: "directory", write: func(t *testing.T, file string) { require.NoError(t, os.Mkdir(file, 0o700)) },
			words: []string{"cannot be read", "is no regular file", "see whether the agent writes to that path"}},
		{rule: "named pipe", write: func(t *testing.T, file string) { require.NoError(t, unix.Mkfifo(file, 0o600)) },
			words: []string{"is no regular file"}},
		{rule: "unreadable, also for root", write: func(t *testing.T, file string) { require.NoError(t, os.Symlink(file, file)) },
			words: []string{"cannot be read", "too many levels of symbolic links", "see whether the agent writes to that path"}},
		{rule: "empty", write: writes(""), words: []string{`is no JSON object with "ready" and "reason"`, "unexpected end of JSON input", "see whether"}},
		{rule: "torn", write: writes(`{"ready":true,"node":"a`), words: []string{"is no JSON object", "unexpected end of JSON input"}},
		{rule: "more than one object", write: writes(`{"ready":true}{`), words: []string{"is no JSON object", "after top-level value"}},
		{rule: "no object", write: writes(`[true]`), words: []string{"is no JSON object"}},
		{rule: "null", write: writes(`null`), words: []string{"is no JSON object", `it has no "ready"`}},
		{rule: "no ready", write: writes(`{"reason":"x"}`), words: []string{"is no JSON object", `it has no "ready"`}},
		{rule: "ready is no boolean", write: writes(`{"ready":"true"}`), words: []string{"is no JSON object", "ready of type bool"}},
		{rule: "large", write: func(t *testing.T, file string) {
			writes(`{"ready":true}`)(t, file)
			require.NoError(t, os.Truncate(file, 1<<40))
		}, words: []string{"cannot be read", "has more than 16777216 bytes"}},
	} {
		t.Run(test.rule, func(t *testing.T) {
			file := reportFile(t)
			if test.write != nil {
				test.write(t, file)
			}
			err := e.status(t, e.config("readyFile", file))
			if test.words == nil {
				require.NoError(t, err)
				return
			}
			requireCode(t, err, cni.CodeNotAvailable, append(test.words, file)...)
		})
	}
}

func TestStatusOfTunnel(t *testing.T) {
	e := newExecutable(t)
	c := e.config("tunnelDevice", "tunnel0")
	requireCode(t, e.status(t, c), cni.CodeNotAvailable, "tunnel0 does not exist", "see whether the agent runs")
	e.addUplink(t, "tunnel0", e.addBridge(t, "other").Attrs().Name, 1450)
	requireCode(t, e.status(t, c), cni.CodeNotAvailable, "tunnel0 is down", "ip link set tunnel0 up")
	require.NoError(t, e.nl.SetUp(e.link(t, "tunnel0")))
	require.NoError(t, e.status(t, c))
	require.NoError(t, e.nl.DelLink(e.link(t, "tunnel0")))
	requireCode(t, e.status(t, c), cni.CodeNotAvailable, "tunnel0 does not exist")
}

// The agent's reason is closer to the cause than the state of its device, and what it
// said last does not hide that the device is gone.
func TestStatusOfReportAndTunnel(t *testing.T) {
	e := newExecutable(t)
	file := reportFile(t)
	c := e.config("tunnelDevice", "tunnel0", "readyFile", file)
	writes(`{"ready":false,"reason":"no underlay"}`)(t, file)
	requireCode(t, e.status(t, c), cni.CodeNotAvailable, "no underlay")
	writes(`{"ready":true}`)(t, file)
	requireCode(t, e.status(t, c), cni.CodeNotAvailable, "tunnel0 does not exist")
}

// Only STATUS looks at the overlay. A runtime that knows no STATUS never does.
func TestOthersIgnoreReportAndTunnel(t *testing.T) {
	e, pod := newExecutable(t), newSpace(t, "c1")
	file := reportFile(t)
	require.NoError(t, os.Mkdir(file, 0o700))
	c := e.config("tunnelDevice", "tunnel0", "readyFile", file)
	requireCode(t, e.status(t, c), cni.CodeNotAvailable)
	old := e.config("tunnelDevice", "tunnel0", "readyFile", file, "cniVersion", "1.0.0")
	requireCode(t, e.status(t, old), cni.CodeIncompatibleVersion, "STATUS")

	out, err := e.run(t, invocation(cni.CommandAdd, pod, "eth0"), c)
	require.NoError(t, err)
	with := e.config("tunnelDevice", "tunnel0", "readyFile", file, "prevResult", json.RawMessage(out))
	_, err = e.run(t, invocation(cni.CommandCheck, pod, "eth0"), with)
	require.NoError(t, err)
	_, err = e.run(t, invocation(cni.CommandDel, pod, "eth0"), with)
	require.NoError(t, err)
	require.Empty(t, e.held(t))

	_, err = e.run(t, invocation(cni.CommandAdd, pod, "eth0"), c)
	require.NoError(t, err)
	_, err = e.run(t, cni.Invocation{Command: cni.CommandGC}, e.config("tunnelDevice", "tunnel0", "readyFile", file,
		"cni.dev/valid-attachments", []cni.Attachment{}))
	require.NoError(t, err)
	require.Empty(t, e.held(t))
	require.Nil(t, pod.link(t, "eth0"))
}
