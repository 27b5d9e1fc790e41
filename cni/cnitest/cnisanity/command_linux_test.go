package main

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
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

// installed is the command with plugins beside it, in a directory that everybody can
// read: cnikit-bridge, cnikit-ipam, and scripts.
type installed struct{ dir string }

func install(t *testing.T, scripts map[string]string) installed {
	t.Helper()
	testenv.Root(t)
	testenv.Kernel(t, testenv.Bridge, testenv.Veth)
	mask := syscall.Umask(0o022)
	t.Cleanup(func() { syscall.Umask(mask) })
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} { // the second is the test's own, too
		require.NoError(t, os.Chmod(d, 0o755))
	}
	for _, program := range []string{"cni/cnitest/cnisanity", "examples/bridge-vxlan/bridge", "examples/bridge-vxlan/ipam"} {
		name := map[string]string{"bridge": "cnikit-bridge", "ipam": "cnikit-ipam"}[filepath.Base(program)]
		if name == "" {
			name = filepath.Base(program)
		}
		content, err := os.ReadFile(testenv.Build(t, "github.com/cnikit/cnikit/"+program))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), content, 0o755))
	}
	for name, script := range scripts {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script), 0o755))
		conf := `{"cniVersion": "1.0.0", "name": "net", "type": "` + name + `"}`
		require.NoError(t, os.WriteFile(filepath.Join(dir, name+".conf"), []byte(conf), 0o644))
	}
	return installed{dir}
}

func (i installed) path(name string) string { return filepath.Join(i.dir, name) }

// ran is what came of a command.
type ran struct {
	status         int
	stdout, stderr string
}

func (i installed) run(t *testing.T, change func(*exec.Cmd), args ...string) ran {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), i.path("cnisanity"), args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.Dir = &stdout, &stderr, i.dir
	if change != nil {
		change(cmd)
	}
	err := cmd.Run()
	if cmd.ProcessState == nil {
		require.NoError(t, err)
	}
	got := ran{cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()}
	t.Logf("%s: %d\n%s%s", cmd, got.status, got.stderr, got.stdout)
	return got
}

// nobody runs it without any rights: as another user, or where there is none, as in a
// user namespace, without capabilities.
func nobody(t *testing.T) func(*exec.Cmd) {
	t.Helper()
	users, err := os.ReadFile("/proc/self/uid_map")
	require.NoError(t, err)
	return func(cmd *exec.Cmd) {
		switch {
		case os.Geteuid() != 0:
		case strings.Contains(string(users), "4294967295"):
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		default:
			withoutCapabilities(t, cmd)
		}
	}
}

func withoutCapabilities(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	setpriv := testenv.Tool(t, "setpriv")
	cmd.Args = append([]string{setpriv, "--bounding-set=-all", "--inh-caps=-all", cmd.Path}, cmd.Args[1:]...)
	cmd.Path = setpriv
}

const quick = "^(version/|del/succeeds$|del/repeated$)"

func TestExaminesGoodPlugins(t *testing.T) {
	here := install(t, nil)
	for _, plugin := range []string{"cnikit-bridge", "cnikit-ipam"} {
		t.Run(plugin, func(t *testing.T) {
			got := here.run(t, nil, "-plugin", here.path(plugin), "-run", quick)
			require.Equal(t, kept, got.status)
			require.Contains(t, got.stdout, plugin+" keeps the specification: ")
			require.Empty(t, got.stderr, "a root that has all rights needs no explanation")
			require.Less(t, strings.Count(got.stdout, "\n"), 25, "there is little to say")
		})
		t.Run(plugin+" without root", func(t *testing.T) {
			got := here.run(t, nobody(t), "-plugin", here.path(plugin), "-run", quick, "-json", "-")
			require.Equal(t, kept, got.status)
			require.Contains(t, got.stderr, "not root: the plugin is examined in a user namespace")
			var report struct{ Verdict cnitest.Verdict }
			require.NoError(t, json.Unmarshal([]byte(got.stdout), &report), "only the JSON is on standard output")
			require.Equal(t, cnitest.Kept, report.Verdict)
		})
	}
}

// TestPluginThatCannotBeExecuted: the status is that of what could not be examined, and
// the file is named that the user named, whatever its type.
func TestPluginThatCannotBeExecuted(t *testing.T) {
	here := install(t, nil)
	require.NoError(t, os.WriteFile(here.path("mine.sh"), []byte("#!/bin/sh\r\nexit 0\r\n"), 0o755))
	got := here.run(t, nil, "-type", "bridge", "-plugin", "./mine.sh")
	require.Equal(t, unable, got.status)
	require.Contains(t, got.stderr, here.path("mine.sh")+" cannot be executed: its lines end with CR LF")
	require.Empty(t, got.stdout)
}

// TestBelievesNoForeignMarker: the variable of an outer run makes it hide nothing of the
// machine.
func TestBelievesNoForeignMarker(t *testing.T) {
	here, err := mountNamespace()
	require.NoError(t, err)
	for value, want := range map[string]bool{"": false, "root": false, "root " + here: false, "root mnt:[1]": true} {
		t.Setenv(marker, value)
		require.Equal(t, want, inside(), value)
	}
}

// TestExaminesWithTheBuiltInIPAM: nothing is beside the plugin.
func TestExaminesWithTheBuiltInIPAM(t *testing.T) {
	here := install(t, nil)
	require.NoError(t, os.Remove(here.path("cnikit-ipam")))
	require.NoError(t, os.Mkdir(here.path("alone"), 0o755))
	require.NoError(t, os.Rename(here.path("cnikit-bridge"), here.path("alone/cnikit-bridge")))
	got := here.run(t, nil, "-plugin", "alone/cnikit-bridge", "-run", "^del/succeeds$")
	require.Equal(t, kept, got.status)
	require.Contains(t, got.stdout, "1 kept")
}

// noisy says what it does where only the result may stand, and keeps state in
// directories of the machine.
const noisy = `cat > /dev/null
touch /run/cnisanity-test /var/lib/cnisanity-test
case $CNI_COMMAND in
VERSION) echo '{"cniVersion": "1.0.0", "supportedVersions": ["1.0.0"]}' ;;
ADD) echo "attaching it"; echo '{"cniVersion": "1.0.0", "ips": [{"address": "10.1.2.3/24"}]}' ;;
esac
`

func TestExaminesABrokenPlugin(t *testing.T) {
	here := install(t, map[string]string{"noisy": noisy})
	require.NoError(t, os.Mkdir(here.path("out"), 0o755))
	require.NoError(t, os.Chmod(here.path("out"), 0o777))
	for name, change := range map[string]func(*exec.Cmd){"root": nil, "without root": nobody(t)} {
		t.Run(name, func(t *testing.T) {
			t.Cleanup(func() { require.NoError(t, os.RemoveAll(here.path("out/report.json"))) })
			t.Cleanup(func() { require.NoError(t, os.RemoveAll(here.path("out/report.xml"))) })
			got := here.run(t, change, "-plugin", "./noisy", "-conf", "noisy.conf", "-profile", "ipam", "-run", "^(protocol|version)/",
				"-seed", "5", "-json", "out/report.json", "-junit", "out/report.xml")
			require.Equal(t, broken, got.status)
			require.Contains(t, got.stdout, "BROKEN protocol/result\n")
			require.Contains(t, got.stdout, "stdout attaching it {", "what was seen")
			require.Contains(t, got.stdout, "  fix   ")
			require.Contains(t, got.stdout, "one case again: cnisanity -plugin ./noisy -conf noisy.conf -profile ipam -run '^protocol/result$' -seed 5\n")
			require.NotContains(t, got.stdout, "\x1b", "no terminal is there")

			var report cnitest.Report
			data, err := os.ReadFile(here.path("out/report.json"))
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(data, &report))
			require.EqualValues(t, 5, report.Seed)
			require.Positive(t, report.Count(cnitest.Broken))

			var suites struct {
				Failures int `xml:"failures,attr"`
			}
			data, err = os.ReadFile(here.path("out/report.xml"))
			require.NoError(t, err)
			require.NoError(t, xml.Unmarshal(data, &suites))
			require.Equal(t, report.Count(cnitest.Broken), suites.Failures)

			require.NoFileExists(t, "/run/cnisanity-test", "it worked on the machine")
			require.NoFileExists(t, "/var/lib/cnisanity-test", "it worked on the machine")
		})
	}
}

// TestDevices: /sys shows those of the network that the plugin runs in. The machine's could
// be set through it from any network.
func TestDevices(t *testing.T) {
	here := install(t, map[string]string{"looking": "cat > /dev/null\nls /sys/class/net > \"$(dirname \"$0\")/out/devices\"\n"})
	require.NoError(t, os.Mkdir(here.path("out"), 0o755))
	require.NoError(t, os.Chmod(here.path("out"), 0o777))
	for name, change := range map[string]func(*exec.Cmd){"root": nil, "without root": nobody(t)} {
		t.Run(name, func(t *testing.T) {
			here.run(t, change, "-plugin", "./looking", "-conf", "looking.conf", "-run", "^version/answer$")
			devices, err := os.ReadFile(here.path("out/devices"))
			require.NoError(t, err)
			require.Equal(t, []string{"cable", "eth0", "lo"}, strings.Fields(string(devices)))
			require.NoError(t, os.Remove(here.path("out/devices")))
		})
	}
}

// needy works only with a file of the machine, and with an empty state directory.
const needy = `cat > /dev/null
case $CNI_COMMAND in
VERSION) [ -e DIR/shared/socket ] && [ ! -e DIR/state/old ] && touch DIR/state/new &&
	echo '{"cniVersion": "1.0.0", "supportedVersions": ["1.0.0"]}' ;;
esac
`

// TestDirectoriesOfThePlugin: what is shared is there, and a state directory is another,
// empty one.
func TestDirectoriesOfThePlugin(t *testing.T) {
	here := install(t, nil)
	require.NoError(t, os.WriteFile(here.path("needy"), []byte("#!/bin/sh\n"+strings.ReplaceAll(needy, "DIR", here.dir)), 0o755))
	require.NoError(t, os.WriteFile(here.path("needy.conf"), []byte(`{"name": "net", "type": "needy"}`), 0o644))
	for _, file := range []string{"shared/socket", "state/old"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(here.path(file)), 0o755))
		require.NoError(t, os.WriteFile(here.path(file), nil, 0o644))
	}
	args := []string{"-plugin", "./needy", "-conf", "needy.conf", "-profile", "ipam", "-run", "^version/answer$"}
	got := here.run(t, nil, append(args, "-dir", "state")...)
	require.Equal(t, kept, got.status)
	require.FileExists(t, here.path("state/old"))
	require.NoFileExists(t, here.path("state/new"))

	got = here.run(t, nil, append(args, "-dir", "absent")...)
	require.Equal(t, unable, got.status)
	require.Contains(t, got.stderr, "flag -dir: absent: ")

	got = here.run(t, nil, append(args, "-dir", "state", "-dir", "shared")...)
	require.NotEqual(t, kept, got.status, "the directory is hidden")
	got = here.run(t, nil, append(args, "-dir", "state", "-dir", "shared", "-share", "shared")...)
	require.Equal(t, kept, got.status)
}

// TestConfigurationReadOnce: from a pipe, it can be read no second time.
func TestConfigurationReadOnce(t *testing.T) {
	here := install(t, nil)
	const conf = `{"name": "net", "type": "cnikit-ipam", "ipam": {"type": "cnikit-ipam", "subnet": "10.88.0.0/24", "dataDir": "{{dir}}"}}`
	args := []string{"-plugin", "./cnikit-ipam", "-run", "^version/answer$", "-conf"}
	for name, c := range map[string]struct {
		file   string
		change func(*exec.Cmd)
	}{
		"standard input": {"-", func(cmd *exec.Cmd) { cmd.Stdin = strings.NewReader(conf) }},
		"a pipe": {"/dev/fd/3", func(cmd *exec.Cmd) {
			r, w, err := os.Pipe()
			require.NoError(t, err)
			t.Cleanup(func() { _ = r.Close() })
			_, err = w.WriteString(conf)
			require.NoError(t, err)
			require.NoError(t, w.Close())
			cmd.ExtraFiles = []*os.File{r}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got := here.run(t, c.change, append(args, c.file)...)
			require.Equal(t, kept, got.status)
		})
	}
	got := here.run(t, nil, append(args, "-")...)
	require.Equal(t, unable, got.status)
	require.Contains(t, got.stderr, "flag -conf: -: is no plugin object and no list")
}

// futuristic speaks a version that there is not, which it should not say.
const futuristic = `cat > /dev/null
case $CNI_COMMAND in
VERSION) echo '{"cniVersion": "1.0.0", "supportedVersions": ["1.0.0", "7.0.0"]}' ;;
esac
`

func TestStrict(t *testing.T) {
	here := install(t, map[string]string{"futuristic": futuristic})
	args := []string{"-plugin", "./futuristic", "-conf", "futuristic.conf", "-run", "^version/known$"}
	got := here.run(t, nil, args...)
	require.Equal(t, kept, got.status)
	require.Contains(t, got.stdout, "WARNED version/known")

	got = here.run(t, nil, append(args, "-strict")...)
	require.Equal(t, broken, got.status)
	require.Contains(t, got.stdout, "BROKEN version/known")
}

// unwilling refuses every ADD, as a plugin does whose configuration is wrong.
const unwilling = `cat > /dev/null
case $CNI_COMMAND in
VERSION) echo '{"cniVersion": "1.0.0", "supportedVersions": ["1.0.0"]}' ;;
ADD) echo '{"cniVersion": "1.0.0", "code": 7, "msg": "no master"}'; exit 1 ;;
esac
`

func TestTellsThatTheConfigurationMayBeWrong(t *testing.T) {
	here := install(t, map[string]string{"unwilling": unwilling})
	got := here.run(t, nil, "-plugin", here.path("unwilling"), "-conf", here.path("unwilling.conf"), "-run", "^(protocol/result|del/)")
	require.Equal(t, broken, got.status)
	require.Regexp(t, `(?s)because ADD does not work\s+with this configuration.*BROKEN protocol/result`, got.stdout, "before what follows from it")
}

func TestTellsThatNothingWasExamined(t *testing.T) {
	here := install(t, map[string]string{"noisy": noisy})
	noisy := []string{"-plugin", here.path("noisy"), "-conf", here.path("noisy.conf")}

	got := here.run(t, nil, append(noisy, "-run", "^nothing$")...)
	require.Equal(t, unable, got.status)
	require.Contains(t, got.stderr, "no case of this profile is left by -run and -skip")

	got = here.run(t, nil, append(noisy, "-run", "^gc/")...)
	require.Equal(t, unable, got.status, "all are skipped: it does not speak version 1.1.0")
	require.Contains(t, got.stdout, "was not examined")

	got = here.run(t, nil, append(noisy, "-json", here.path("absent/report.json"))...)
	require.Equal(t, unable, got.status)
	require.Contains(t, got.stderr, "open report: ")
	require.Empty(t, got.stdout, "it is told before the examination")
}

// TestUserNamespaceRefused: the message says which setting it is.
func TestUserNamespaceRefused(t *testing.T) {
	here := install(t, nil)
	got := here.run(t, func(cmd *exec.Cmd) {
		withoutCapabilities(t, cmd)
		script := `echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"`
		cmd.Args = append([]string{"unshare", "--user", "--map-root-user", "sh", "-c", script, "sh"}, cmd.Args...)
		cmd.Path = testenv.Tool(t, "unshare")
	}, "-plugin", here.path("cnikit-ipam"))
	require.Equal(t, unable, got.status)
	require.Contains(t, got.stderr, "sudo sysctl -w user.max_user_namespaces=")
	require.Contains(t, got.stderr, "sudo cnisanity")
	require.Empty(t, got.stdout)
}

// hanging says that it is there, and never answers an ADD.
const hanging = `cat > /dev/null
case $CNI_COMMAND in
VERSION) echo '{"cniVersion": "1.0.0", "supportedVersions": ["1.0.0"]}' ;;
ADD) echo there > DIR/pipe; exec sleep 600 ;;
esac
`

// TestInterrupted: the report has what was examined, and nothing goes on.
func TestInterrupted(t *testing.T) {
	here := install(t, map[string]string{"hanging": ""})
	require.NoError(t, os.WriteFile(here.path("hanging"), []byte("#!/bin/sh\n"+strings.ReplaceAll(hanging, "DIR", here.dir)), 0o755))
	require.NoError(t, syscall.Mkfifo(here.path("pipe"), 0o666))
	cmd := exec.Command(here.path("cnisanity"), "-plugin", "./hanging", "-conf", "hanging.conf", "-timeout", "5m")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.Dir = &stdout, &stderr, here.dir
	require.NoError(t, cmd.Start())
	_, err := os.ReadFile(here.path("pipe"))
	require.NoError(t, err)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	began := time.Now()
	require.Error(t, cmd.Wait())
	require.Less(t, time.Since(began), time.Minute, "it went on")
	require.Equal(t, unable, cmd.ProcessState.ExitCode(), stderr.String())
	require.Contains(t, stderr.String(), "interrupted after")
}
