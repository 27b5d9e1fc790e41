package cnitest_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni/cnitest"
	"github.com/cnikit/cnikit/internal/testenv"
)

// careless leaves a mount of a foreign directory in its own, and a process that holds
// nothing of its caller.
const careless = `#!/bin/sh
config=$(cat)
case $CNI_COMMAND in
VERSION) echo '{"cniVersion": "1.0.0", "supportedVersions": ["1.0.0"]}' ;;
ADD)
	dir=$(echo "$config" | sed 's/.*"dataDir":"\([^"]*\)".*/\1/')
	mkdir -p "$dir/a mount"
	mount --bind "$FOREIGN" "$dir/a mount"
	setsid sleep 600 > /dev/null 2>&1 < /dev/null &
	echo $! > "$FOREIGN/pid"
	echo '{"cniVersion": "1.0.0", "ips": [{"address": "10.1.2.3/24"}]}'
	;;
esac
`

// TestCleansUpAfterCarelessPlugins: what a plugin mounted is not emptied with the
// directory of a case, and what it started does not go on.
func TestCleansUpAfterCarelessPlugins(t *testing.T) {
	testenv.Root(t)
	testenv.Tool(t, "setsid")
	dir, foreign := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "careless"), []byte(careless), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(foreign, "precious"), nil, 0o600))
	report, err := cnitest.Examine(t.Context(), cnitest.Target{
		Config: []byte(`{"name": "net", "type": "careless", "dataDir": "{{dir}}"}`),
		Path:   []string{dir}, Env: []string{"FOREIGN=" + foreign},
	}, cnitest.Options{Run: "^del/succeeds$"})
	require.NoError(t, err)
	require.Len(t, report.Outcomes, 1)

	require.FileExists(t, filepath.Join(foreign, "precious"))
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	require.NoError(t, err)
	require.NotContains(t, string(mounts), `a\040mount`)
	pid, err := os.ReadFile(filepath.Join(foreign, "pid"))
	require.NoError(t, err)
	comm, _ := os.ReadFile(fmt.Sprintf("/proc/%s/cmdline", strings.TrimSpace(string(pid)))) // of a zombie it is empty
	if len(comm) > 0 {
		_ = exec.Command("kill", strings.TrimSpace(string(pid))).Run()
	}
	require.Empty(t, string(comm), "what the plugin started goes on")
}

// TestClosedNamespaceHasNoProcesses: its number may be that of somebody else's.
func TestClosedNamespaceHasNoProcesses(t *testing.T) {
	testenv.NetAdmin(t)
	n, err := cnitest.NewNamespace()
	require.NoError(t, err)
	require.NoError(t, n.Close())
	_, err = n.EndProcesses(0)
	require.ErrorIs(t, err, os.ErrClosed)
}

// TestKillsOfAPluginThatHangs: a plugin that does not answer is no failure of the kit.
func TestKillsOfAPluginThatHangs(t *testing.T) {
	t.Parallel()
	testenv.NetAdmin(t)
	dir := t.TempDir()
	const hanging = "#!/bin/sh\n[ $CNI_COMMAND = VERSION ] || sleep 60\n" +
		`echo '{"cniVersion": "1.0.0", "supportedVersions": ["1.0.0"]}'` + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "hanging"), []byte(hanging), 0o755))
	report, err := cnitest.Examine(t.Context(), cnitest.Target{
		Config: []byte(`{"name": "net", "type": "hanging"}`), Path: []string{dir},
	}, cnitest.Options{Run: "^faults/killed-add$", Timeout: busy})
	require.NoError(t, err)
	require.Len(t, report.Outcomes, 1)
	require.Equal(t, cnitest.Skipped, report.Outcomes[0].Verdict, report.Outcomes[0].Reason)
	require.Contains(t, report.Outcomes[0].Reason, "no answer within 6s")
}

// TestSpecialFilesOfAPlugin: whoever reads a FIFO may wait for ever.
func TestSpecialFilesOfAPlugin(t *testing.T) {
	testenv.NetAdmin(t)
	dir, state := t.TempDir(), t.TempDir()
	require.NoError(t, syscall.Mkfifo(filepath.Join(state, "fifo"), 0o600))
	listener, err := net.Listen("unix", filepath.Join(state, "socket"))
	require.NoError(t, err)
	defer listener.Close()
	const plain = "#!/bin/sh\n" + `[ $CNI_COMMAND = DEL ] || echo '{"cniVersion": "1.0.0", "supportedVersions": ["1.0.0"], "ips": []}'` + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "plain"), []byte(plain), 0o755))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	done := make(chan *cnitest.Report, 1)
	go func() {
		report, _ := cnitest.Examine(ctx, cnitest.Target{
			Config: []byte(`{"name": "net", "type": "plain"}`), Path: []string{dir}, Profile: cnitest.ProfileIPAM, Dirs: []string{state},
		}, cnitest.Options{Run: "^del/succeeds$|^faults/state-torn$|^del/leaves"})
		done <- report
	}()
	select {
	case report := <-done:
		for _, o := range report.Outcomes {
			require.NotEqual(t, cnitest.FailedToRun, o.Verdict, "%s: %s", o.ID(), o.Reason)
		}
		require.NotEmpty(t, report.Outcomes)
	case <-ctx.Done():
		t.Fatal("it hangs")
	}
}
