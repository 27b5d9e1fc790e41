package guest_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/internal/guest"
	"github.com/cnikit/cnikit/internal/testenv"
)

// subject runs testdata/subject in a guest.
func subject(t *testing.T, o guest.Options, args ...string) (*guest.Result, error) {
	t.Helper()
	testenv.Guest(t)
	o.Program, o.Args = testenv.Build(t, "./testdata/subject"), args
	if o.Kernel == "" {
		o.Kernel = "6.12"
	}
	return guest.Run(t, o)
}

func TestKernelsRunPrograms(t *testing.T) {
	for _, kernel := range guest.Kernels(t) {
		t.Run(kernel, func(t *testing.T) {
			t.Parallel()
			given := bytes.Repeat([]byte("abc\x00"), 10_000)
			result, err := subject(t, guest.Options{
				Kernel: kernel, Modules: []string{"wireguard", "8021q", "veth"}, CPUs: 2,
				Files: map[string][]byte{"/etc/given/deep": given}, Env: []string{"GIVEN=an environment"},
			}, "files", "an argument", "")
			require.NoError(t, err)
			assert.Zero(t, result.Status)
			if kernel != "newest" {
				assert.True(t, strings.HasPrefix(result.Release, kernel+"."), result.Release)
			}
			assert.Regexp(t, `^\[an argument \] an environment true `+regexp.QuoteMeta(result.Release)+` ([2-9]|\d{2,})\n$`, string(result.Output))
			assert.Equal(t, given, result.Files["sub/copy"])
			assert.Contains(t, result.Files, "empty")
			for _, module := range []string{"wireguard", "udp_tunnel", "8021q", "veth"} {
				assert.Contains(t, string(result.Files["modules"]), module+" ")
			}
			assert.NotContains(t, string(result.Console), "init:")
		})
	}
}

// The status that the program ends with is the one reported, whatever it writes.
func TestStatus(t *testing.T) {
	result, err := subject(t, guest.Options{}, "exit", "255")
	require.NoError(t, err)
	assert.Equal(t, 255, result.Status)
	assert.Equal(t, "leaving\n", string(result.Output))
}

// Nothing of what the program writes is lost or changed, whatever ends it.
func TestOutput(t *testing.T) {
	result, err := subject(t, guest.Options{}, "loud")
	require.NoError(t, err)
	assert.Equal(t, 128+9, result.Status)
	require.Len(t, result.Output, 128*256)
	for i, b := range result.Output {
		require.Equal(t, byte(i), b, "byte %d", i)
	}
}

func TestGuestsThatDoNotReport(t *testing.T) {
	for _, tt := range []struct {
		name    string
		timeout time.Duration
		want    []string
	}{
		{name: "panic", want: []string{"the machine ended before", "sysrq triggered crash", "Kernel panic", "about to crash"}},
		{name: "hang", timeout: 10 * time.Second, want: []string{"did not end within 10s"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := subject(t, guest.Options{Timeout: tt.timeout}, tt.name)
			var failed *guest.Error
			require.ErrorAs(t, err, &failed)
			for _, want := range tt.want {
				assert.Contains(t, err.Error(), want)
			}
		})
	}
}

func TestMissingModule(t *testing.T) {
	_, err := subject(t, guest.Options{Modules: []string{"no-such"}}, "exit", "0")
	require.ErrorContains(t, err, "module no_such: kernel 6.12")
}

// role is what this test binary does when another test runs it as a child process.
const role = "CNIKIT_GUEST_TEST_ROLE"

// TestChild is no test but a child process of the others.
func TestChild(t *testing.T) {
	switch os.Getenv(role) {
	case "hang":
		_, err := subject(t, guest.Options{}, "hang")
		t.Log(err)
	case "missing":
		_, err := subject(t, guest.Options{Kernel: "6.1"}, "exit", "0")
		require.NoError(t, err)
	case "unnamed":
		_, err := guest.Run(t, guest.Options{})
		require.NoError(t, err)
	case "failing":
		guest.Test(t, "^TestFailing$", guest.Options{Kernel: "6.12"})
	case "none":
		guest.Test(t, "^TestNone$", guest.Options{Kernel: "6.12"})
	case "subtest":
		guest.Test(t, "^TestPassing$/^in_part$", guest.Options{Kernel: "6.12"})
	}
}

func child(t *testing.T, as string, env ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestChild$", "-test.v")
	cmd.Env = append(append(os.Environ(), role+"="+as), env...)
	return cmd
}

func TestMissingKernel(t *testing.T) {
	testenv.Guest(t)
	empty := "CNIKIT_GUEST_CACHE=" + t.TempDir()
	out, err := child(t, "missing", "CI=", empty).CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Contains(t, string(out), "--- SKIP: TestChild")
	assert.Contains(t, string(out), "go run ./internal/guest/cmd/fetch 6.1")
	out, err = child(t, "missing", "CI=true", empty).CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(out), "--- FAIL: TestChild")
	out, err = child(t, "unnamed", "CI=").CombinedOutput()
	require.Error(t, err, "no kernel asked for is no kernel missing")
	assert.Contains(t, string(out), "set Options.Kernel")
}

func TestTest(t *testing.T) {
	testenv.Guest(t)
	for _, tt := range []struct{ as, verdict, why string }{
		{"failing", "--- FAIL: TestChild", "a failure in the guest"}, // and an end with status 0 on top
		{"none", "--- FAIL: TestChild", "no test of tests matches"},
		{"subtest", "--- PASS: TestChild", "--- PASS: TestPassing/in_part"},
	} {
		t.Run(tt.as, func(t *testing.T) {
			t.Parallel()
			out, _ := child(t, tt.as).CombinedOutput()
			assert.Contains(t, string(out), tt.verdict)
			assert.Contains(t, string(out), tt.why)
		})
	}
}

// TestFailing is run in a guest. It ends as if all were well.
func TestFailing(t *testing.T) {
	testenv.InGuest(t)
	t.Error("a failure in the guest")
	os.Exit(0)
}

// TestPassing is run in a guest, and of it the first part.
func TestPassing(t *testing.T) {
	testenv.InGuest(t)
	t.Run("in part", func(*testing.T) {})
	t.Run("the rest", func(t *testing.T) { t.Error("not asked for") })
}

// A machine does not outlive the process that has booted it.
func TestGuestEndsWithTheTest(t *testing.T) {
	testenv.Guest(t)
	testenv.Build(t, "./testdata/subject") // what the child would build while we wait
	testenv.Build(t, "github.com/cnikit/cnikit/internal/guest/init")
	temporary := t.TempDir()
	cmd := child(t, "hang", "TMPDIR="+temporary)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	var qemu string
	require.Eventually(t, func() bool {
		qemu = processWith(temporary)
		return qemu != ""
	}, 2*time.Minute, 50*time.Millisecond)
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	if !assert.Eventually(t, func() bool { return processWith(temporary) != qemu }, time.Minute, 50*time.Millisecond) {
		pid, err := strconv.Atoi(filepath.Base(qemu))
		require.NoError(t, err)
		require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	}
}

// processWith returns the directory in /proc of an emulator that has a text in an argument.
func processWith(text string) string {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range all {
		line, err := os.ReadFile(file)
		if err == nil && bytes.Contains(line, []byte(text)) && bytes.Contains(line, []byte("qemu-system")) {
			return filepath.Dir(file)
		}
	}
	return ""
}

func TestErrorIsOneOfItsReason(t *testing.T) {
	reason := errors.New("no power")
	err := error(&guest.Error{Release: "6.1.0", Err: reason, Console: []byte(strings.Repeat("early\r\n", 100) + "late\r\n")})
	require.ErrorIs(t, err, reason)
	assert.Contains(t, err.Error(), "\tlate\nthe program's last lines:\n\t(none)")
	assert.Equal(t, 79, strings.Count(err.Error(), "\tearly\n"))
}

// A program without an end or a line break leaves an error that can be read.
func TestErrorIsShort(t *testing.T) {
	err := &guest.Error{Err: errors.New("no power"), Output: []byte(strings.Repeat("é", 1<<22) + "end"), Console: []byte(strings.Repeat("long ", 1<<20) + "\r\nlate")}
	text := err.Error()
	assert.Less(t, len(text), 64<<10)
	assert.True(t, strings.HasSuffix(text, "ééend"))
	assert.Contains(t, text, "long \n\tlate\n")
	assert.True(t, utf8.ValidString(text))
}
