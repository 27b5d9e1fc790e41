package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/internal/testenv"
)

// escaping starts a process that nobody finds by the network namespaces of an
// examination, and tries to end one of the machine.
const escaping = `cat > /dev/null
case $CNI_COMMAND in
VERSION)
	setsid unshare -n sleep MARK > /dev/null 2>&1 < /dev/null &
	kill VICTIM && touch OUT/hit
	ls /proc > OUT/processes
	echo '{"cniVersion": "1.0.0", "supportedVersions": ["1.0.0"]}' ;;
esac
`

// escapes is an installation with that plugin, and the process that it tries to end.
func escapes(t *testing.T) (here installed, mark string, victim *exec.Cmd) {
	t.Helper()
	here = install(t, nil)
	for _, tool := range []string{"setsid", "unshare"} {
		testenv.Tool(t, tool)
	}
	out := here.path("out")
	require.NoError(t, os.Mkdir(out, 0o755))
	require.NoError(t, os.Chmod(out, 0o777))
	victim = exec.CommandContext(t.Context(), "sleep", "600")
	require.NoError(t, victim.Start())
	t.Cleanup(func() { _ = victim.Wait() })
	mark = fmt.Sprintf("%d.5", 1_000_000+os.Getpid())
	script := strings.NewReplacer("MARK", mark, "VICTIM", fmt.Sprint(victim.Process.Pid), "OUT", out).Replace(escaping)
	require.NoError(t, os.WriteFile(here.path("escaping"), []byte("#!/bin/sh\n"+script), 0o755))
	require.NoError(t, os.WriteFile(here.path("escaping.conf"), []byte(`{"cniVersion": "1.0.0", "name": "net", "type": "escaping"}`), 0o644))
	return here, mark, victim
}

// sleeping lists the processes of the machine that have the mark among their arguments.
func sleeping(t *testing.T, mark string) (found []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	require.NoError(t, err)
	for _, file := range files {
		if args, _ := os.ReadFile(file); strings.HasSuffix(string(args), "sleep\x00"+mark+"\x00") {
			found = append(found, filepath.Base(filepath.Dir(file)))
		}
	}
	return found
}

// TestProcessesStayInside: what the plugin leaves ends with the examination, and it sees
// no process of the machine.
func TestProcessesStayInside(t *testing.T) {
	for name, change := range map[string]func(*testing.T) func(*exec.Cmd){
		"root": func(*testing.T) func(*exec.Cmd) { return nil }, "without root": nobody,
	} {
		t.Run(name, func(t *testing.T) {
			here, mark, victim := escapes(t)
			got := here.run(t, change(t), "-plugin", "./escaping", "-conf", "escaping.conf", "-run", "^version/answer$")
			require.Equal(t, kept, got.status)
			require.Empty(t, sleeping(t, mark), "it goes on")
			require.NoFileExists(t, here.path("out/hit"))
			processes, err := os.ReadFile(here.path("out/processes"))
			require.NoError(t, err)
			require.NotContains(t, strings.Fields(string(processes)), fmt.Sprint(victim.Process.Pid))
			require.NoError(t, victim.Process.Kill())
		})
	}
}

// TestWithoutProc: a sandbox that covers a part of /proc lets no user namespace have
// another one. The plugin is examined all the same.
func TestWithoutProc(t *testing.T) {
	here := install(t, nil)
	users, err := os.ReadFile("/proc/self/uid_map")
	require.NoError(t, err)
	leave := "--bounding-set=-all --inh-caps=-all"
	if strings.Contains(string(users), "4294967295") {
		leave = "--reuid=65534 --regid=65534 --clear-groups"
	}
	covered := "mount -t tmpfs none /proc/fs && exec " + testenv.Tool(t, "setpriv") + " " + leave + ` "$0" "$@"`
	got := here.run(t, func(cmd *exec.Cmd) {
		cmd.Args = append([]string{"unshare", "-m", "sh", "-c", covered}, append([]string{cmd.Path}, cmd.Args[1:]...)...)
		cmd.Path = testenv.Tool(t, "unshare")
	}, "-plugin", here.path("cnikit-ipam"), "-run", quick)
	require.Equal(t, kept, got.status)
	require.Contains(t, got.stderr, "not root")
	require.Contains(t, got.stdout, "cnikit-ipam keeps the specification: ")
}
