package testenv_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/internal/testenv"
)

// subject is what the child process of a test runs as if it were a test: it says
// how testenv ended it.
const subject = "CNIKIT_TESTENV_SUBJECT"

// TestSubject is no test but the child process of the others.
func TestSubject(t *testing.T) {
	switch os.Getenv(subject) {
	case "tool":
		testenv.Tool(t, "cnikit-no-such-tool")
	case "feature":
		testenv.Kernel(t, testenv.Feature("teleport"))
	case "netadmin":
		testenv.NetAdmin(t)
	case "root":
		testenv.Root(t)
	case "bpf":
		testenv.BPF(t)
	case "scale":
		testenv.Scale(t, 1)
	case "section":
		testenv.Section(t, "doc.go", "no such mark", "testenv")
	case "section without an end":
		testenv.Section(t, "doc.go", "Package", "no such mark")
	case "build":
		testenv.Build(t, "./no/such/package")
	default:
		return
	}
	t.Log("went on")
}

// run runs the subject with CI set or not and tells how it ended.
func run(t *testing.T, ci, name string, through ...string) string {
	t.Helper()
	args := append(through, os.Args[0], "-test.run=^TestSubject$", "-test.v")
	child := exec.Command(args[0], args[1:]...)
	child.Env = append(os.Environ(), "CI="+ci, subject+"="+name)
	out, err := child.CombinedOutput()
	if strings.Contains(string(out), "--- FAIL") {
		require.Error(t, err)
	}
	return string(out)
}

func TestUnmetNeeds(t *testing.T) {
	if runtime.GOOS == "linux" {
		testenv.NetAdmin(t)
	}
	for name, reason := range map[string]string{
		"tool":    `the executable "cnikit-no-such-tool"`,
		"feature": `kernel's teleport: no probe for feature "teleport"`,
	} {
		t.Run(name+"/skipped locally with the reason", func(t *testing.T) {
			for _, ci := range []string{"", "false"} {
				out := run(t, ci, name)
				assert.Contains(t, out, "--- SKIP: TestSubject")
				assert.Contains(t, out, reason)
				assert.NotContains(t, out, "went on")
			}
		})
		t.Run(name+"/failed in CI with the reason", func(t *testing.T) {
			out := run(t, "true", name)
			assert.Contains(t, out, "--- FAIL: TestSubject")
			assert.Contains(t, out, reason)
			assert.NotContains(t, out, "went on")
		})
	}
	t.Run("broken build/always failed", func(t *testing.T) {
		assert.Contains(t, run(t, "", "build"), "--- FAIL: TestSubject")
	})
}

// Without rights the kernel tier is skipped, or failed in CI; -short skips it always.
func TestRights(t *testing.T) {
	testenv.Root(t)
	nobody := []string{testenv.Tool(t, "setpriv"), "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all", "--no-new-privs"}
	for _, name := range []string{"netadmin", "root", "bpf"} {
		t.Run(name+"/met", func(t *testing.T) {
			assert.Contains(t, run(t, "true", name), "went on")
		})
		t.Run(name+"/skipped locally", func(t *testing.T) {
			out := run(t, "", name, nobody...)
			assert.Contains(t, out, "--- SKIP: TestSubject")
			assert.Contains(t, out, "the test needs root")
		})
		t.Run(name+"/failed in CI", func(t *testing.T) {
			assert.Contains(t, run(t, "true", name, nobody...), "--- FAIL: TestSubject")
		})
		t.Run(name+"/skipped with -short", func(t *testing.T) {
			out := run(t, "true", name, "env", "sh", "-c", `exec "$@" -test.short`, "sh")
			assert.Contains(t, out, "--- SKIP: TestSubject")
			assert.Contains(t, out, "-short")
		})
	}
	t.Run("root is not met in a user namespace without mounts", func(t *testing.T) {
		out := run(t, "", "root", testenv.Tool(t, "unshare"), "-rn")
		assert.Contains(t, out, "--- SKIP: TestSubject")
		assert.Contains(t, run(t, "", "netadmin", testenv.Tool(t, "unshare"), "-rn"), "went on")
	})
}

func TestKernelFeatures(t *testing.T) {
	testenv.Kernel(t, testenv.Bridge, testenv.Veth, testenv.VXLAN)
	for _, f := range []testenv.Feature{testenv.Dummy, testenv.IPVLAN, testenv.MACVLAN, testenv.VLAN, testenv.VRF} {
		t.Run(string(f), func(t *testing.T) {
			t.Setenv("CI", "") // not every kernel has them: that is no failure of testenv
			testenv.Kernel(t, f)
		})
	}
}

func TestTool(t *testing.T) {
	path := testenv.Tool(t, "go")
	assert.True(t, filepath.IsAbs(path), path)
	require.FileExists(t, path)
}

func TestBuild(t *testing.T) {
	path := testenv.Build(t, "./testdata/hello")
	out, err := exec.Command(path).Output()
	require.NoError(t, err)
	assert.Equal(t, "hello", string(out))
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, path, testenv.Build(t, "./testdata/hello"))
	again, err := os.Stat(path)
	require.NoError(t, err)
	assert.True(t, os.SameFile(info, again), "linked again though nothing changed")
}

// TestBuildAtOnce: whoever has the executable may run it while others ask for it.
func TestBuildAtOnce(t *testing.T) {
	path := testenv.Build(t, "./testdata/hello")
	for range 3 {
		require.NoError(t, os.Remove(path))
		built := make([]os.FileInfo, 8)
		t.Run("a program", func(t *testing.T) {
			for i := range built {
				t.Run("", func(t *testing.T) {
					t.Parallel()
					out, err := exec.Command(testenv.Build(t, "./testdata/hello")).Output()
					require.NoError(t, err)
					assert.Equal(t, "hello", string(out))
					built[i], err = os.Stat(path)
					require.NoError(t, err)
				})
			}
		})
		for _, info := range built {
			require.NotNil(t, info)
			assert.True(t, os.SameFile(built[0], info), "it is built once")
		}
	}
}

func TestPeers(t *testing.T) {
	dir := testenv.Peers(t, "github.com/containernetworking/plugins/plugins/main/loopback")
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	plugin := exec.Command(filepath.Join(dir, "loopback"))
	plugin.Env = []string{"CNI_COMMAND=VERSION"}
	plugin.Stdin = strings.NewReader(`{"cniVersion": "1.0.0"}`)
	out, err := plugin.Output()
	require.NoError(t, err)
	assert.Contains(t, string(out), "supportedVersions")
}

func TestScale(t *testing.T) {
	t.Setenv("CNIKIT_SCALE", "")
	require.Equal(t, 8, testenv.Scale(t, 8))
	t.Setenv("CNIKIT_SCALE", "20")
	require.Equal(t, 160, testenv.Scale(t, 8))
	t.Run("a mistake is not taken for 1", func(t *testing.T) {
		t.Setenv("CNIKIT_SCALE", "twenty")
		require.Contains(t, run(t, "", "scale"), `CNIKIT_SCALE="twenty": is no number of at least 1`)
	})
}

func TestSection(t *testing.T) {
	document := filepath.Join(t.TempDir(), "document")
	require.NoError(t, os.WriteFile(document, []byte("before\n<a>\nold\n<b>\nafter <b>\n"), 0o644))
	text, replace := testenv.Section(t, document, "<a>\n", "<b>")
	assert.Equal(t, "old\n", text)
	replace("new\n")
	content, err := os.ReadFile(document)
	require.NoError(t, err)
	assert.Equal(t, "before\n<a>\nnew\n<b>\nafter <b>\n", string(content))
	for _, name := range []string{"section", "section without an end"} {
		assert.Contains(t, run(t, "", name), "doc.go has no section between the marks; add", name)
	}
}
