package cnitest_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/cni/cnitest"
	"github.com/cnikit/cnikit/internal/testenv"
)

// runVariable has the test binary run what shall fail: "strict", "lenient" or "racing".
const runVariable = "CNITEST_RUN"

// flawed breaks version/echo, which must be kept, and version/known, which should.
func flawed() cni.Handler {
	return handler{passing(), func(inv cni.Invocation, out []byte, err error) ([]byte, error) {
		if inv.Command == cni.CommandVersion {
			out = []byte(`{"cniVersion": "1.1.0", "supportedVersions": ["0.4.0", "1.0.0", "1.1.0", "7.0.0"]}`)
		}
		return out, err
	}}
}

// losing fails at its first ADD, as if it had lost a race.
func losing() cni.Handler {
	var calls atomic.Int32
	return handler{passing(), func(inv cni.Invocation, out []byte, err error) ([]byte, error) {
		if inv.Command == cni.CommandAdd && calls.Add(1) == 1 {
			return nil, errors.New("the other was faster")
		}
		return out, err
	}}
}

// TestRun runs itself with a flawed plugin, and looks at what the test says.
func TestRun(t *testing.T) {
	if mode := os.Getenv(runVariable); mode != "" {
		run, plugin := "^version/", flawed()
		if mode == "racing" {
			run, plugin = "^concurrency/add$", losing()
		}
		cnitest.Run(t, cnitest.Target{
			Config: []byte(`{"name": "net", "type": "passing"}`), Profile: cnitest.ProfileChained, Handler: plugin,
		}, cnitest.Options{Run: run, Strict: mode == "strict"})
		return
	}
	testenv.NetAdmin(t)
	for _, mode := range []string{"lenient", "strict"} {
		t.Run(mode, func(t *testing.T) {
			out, err := runAgain(t, mode, "5", "^TestRun$")
			require.Error(t, err)
			require.Contains(t, out, "seed 5\n")
			require.Contains(t, out, "--- FAIL: TestRun/version/echo")
			require.Contains(t, out, "this case again: CNITEST_SEED=5 go test -run '^TestRun$/^version$/^echo$'\n")
			if mode == "strict" {
				require.Contains(t, out, "--- FAIL: TestRun/version/known")
				return
			}
			require.NotContains(t, out, "--- FAIL: TestRun/version/known")
			require.Contains(t, out, "warned, which Options.Strict makes a failure: version/known\n")
		})
	}
	t.Run("one case", func(t *testing.T) {
		out, err := runAgain(t, "lenient", "5", "^TestRun$/^version$/^known$")
		require.NoError(t, err)
		require.NotContains(t, out, "version/echo")
	})
	t.Run("a race", func(t *testing.T) {
		out, err := runAgain(t, "racing", "5", "^TestRun$")
		require.Error(t, err)
		require.Contains(t, out, "/^add$'\n")
		require.Contains(t, out, "no seed repeats a race: run it several times\n")
	})
	t.Run("bad seed", func(t *testing.T) {
		out, err := runAgain(t, "lenient", "five", "^TestRun$")
		require.Error(t, err)
		require.Contains(t, out, "variable CNITEST_SEED=five: is no number")
	})
}

func runAgain(t *testing.T, mode, seed, pattern string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run="+pattern)
	cmd.Env = append(os.Environ(), runVariable+"="+mode, "CNITEST_SEED="+seed)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestStrictReport: what is a warning else is broken, and the summary says no more.
func TestStrictReport(t *testing.T) {
	o := cnitest.Options{Run: "^version/known$", Seed: 1}
	require.Equal(t, cnitest.Warned, examine(t, flawed(), o).Verdict())
	o.Strict = true
	r := examine(t, flawed(), o)
	require.Equal(t, cnitest.Broken, r.Verdict())
	var text bytes.Buffer
	require.NoError(t, r.WriteText(&text, cnitest.TextOptions{}))
	require.Contains(t, text.String(), "breaks rules that should be kept")
}
