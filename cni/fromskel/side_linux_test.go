package fromskel_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/version"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/cni/fromskel"
)

// A side is a way to make a plugin of the subject.
type side string

const (
	sideSkel    side = "skel"
	sideAdapted side = "fromskel"
	sideTyped   side = "cni.Plugin"
)

func sides() []side { return []side{sideSkel, sideAdapted, sideTyped} }

// TestMain makes the test binary an executable of each side, and of each stage of the
// migration, by the name that it is executed under.
func TestMain(m *testing.M) {
	switch side(filepath.Base(os.Args[0])) {
	case sideSkel:
		skel.PluginMainFuncs(subjectFuncs(), version.All, "about")
	case sideAdapted:
		fromskel.Main(subjectFuncs(), version.All, "about")
	case sideTyped:
		cni.Main(typedSubject().Handler())
	default:
		if stage, ok := stages()[filepath.Base(os.Args[0])]; ok {
			stage()
			return
		}
		os.Exit(m.Run())
	}
}

// call is what a runtime gives to a plugin.
type call struct {
	env   []string
	stdin string
	dir   string // instead of stdin: a directory, which cannot be read
}

// open is the standard input of the call.
func (c call) open(t *testing.T) io.Reader {
	t.Helper()
	if c.dir == "" {
		return strings.NewReader(c.stdin)
	}
	dir, err := os.Open(c.dir)
	require.NoError(t, err)
	t.Cleanup(func() { dir.Close() })
	return dir
}

// outcome is what a runtime sees of a call, without the wording of most errors.
type outcome struct {
	exit      int
	documents int    // on standard output
	junk      bool   // so is something that is no JSON
	code      string // of the last error document
	version   string // cniVersion of the last document
	result    string // the last result document, in one form
	ran       bool   // whether the callback or function ran
	words     string // of a command that the version does not have, which callers compare
}

func outcomeOf(exit int, stdout, stderr []byte) outcome {
	o := outcome{exit: exit, ran: bytes.Contains(stderr, []byte("ran "))}
	decoder := json.NewDecoder(bytes.NewReader(stdout))
	decoder.UseNumber()
	for {
		var document map[string]any
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return o
		}
		if err != nil {
			o.junk = true
			return o
		}
		o.documents++
		o.version, _ = document["cniVersion"].(string)
		if code, ok := document["code"]; ok {
			o.code = fmt.Sprint(code)
			if text := fmt.Sprint(document["msg"]); strings.HasPrefix(text, "config version does not allow") {
				o.words = text + fmt.Sprint(document["details"])
			}
			continue
		}
		if dns, ok := document["dns"].(map[string]any); ok && len(dns) == 0 {
			delete(document, "dns") // skel's results have an empty one before 1.0.0
		}
		canonical, _ := json.Marshal(document)
		o.result = string(canonical)
	}
}

// bench runs calls in this process, where the three sides share what belongs to a
// process: the environment and the standard files, which it replaces.
type bench struct {
	stdin, stdout, stderr *os.File
}

// newBench replaces the standard files until the test ends.
func newBench(t *testing.T) *bench {
	t.Helper()
	file := func(name string) *os.File {
		f, err := os.Create(filepath.Join(t.TempDir(), name))
		require.NoError(t, err)
		return f
	}
	b := &bench{stdin: file("stdin"), stdout: file("stdout"), stderr: file("stderr")}
	stdin, stdout, stderr := os.Stdin, os.Stdout, os.Stderr
	os.Stdin, os.Stdout, os.Stderr = b.stdin, b.stdout, b.stderr
	t.Cleanup(func() { os.Stdin, os.Stdout, os.Stderr = stdin, stdout, stderr })
	for _, variable := range variables() {
		t.Setenv(variable, "") // puts it back at the end
	}
	return b
}

// call runs one call on one side.
func (b *bench) call(t *testing.T, s side, c call) outcome {
	t.Helper()
	for _, f := range []*os.File{b.stdin, b.stdout, b.stderr} {
		b.empty(t, f)
	}
	for _, variable := range variables() { // skel makes no difference between empty and absent
		require.NoError(t, os.Setenv(variable, valueOf(c.env, variable)))
	}
	var stdout bytes.Buffer
	process := cni.Process{Env: c.env, Stdin: c.open(t), Stdout: &stdout}
	exit := 0
	switch s {
	case sideAdapted:
		exit = process.Run(context.Background(), fromskel.Plugin[struct{}](subjectFuncs(), version.All, "about").Handler())
	case sideTyped:
		exit = process.Run(context.Background(), typedSubject().Handler())
	case sideSkel:
		_, err := b.stdin.WriteAt([]byte(c.stdin), 0)
		require.NoError(t, err)
		if dir, ok := process.Stdin.(*os.File); ok {
			os.Stdin = dir
		}
		exit = runSkel()
		os.Stdin = b.stdin
		stdout.Write(b.content(t, b.stdout))
	}
	return outcomeOf(exit, stdout.Bytes(), b.content(t, b.stderr))
}

// runSkel is skel.PluginMainFuncs without the end of the process.
func runSkel() (exit int) {
	defer func() {
		if recover() != nil {
			exit = 2 // as the runtime of Go ends a process
		}
	}()
	if e := skel.PluginMainFuncsWithError(subjectFuncs(), version.All, "about"); e != nil {
		_ = e.Print()
		return 1
	}
	return 0
}

func (b *bench) empty(t *testing.T, f *os.File) {
	t.Helper()
	require.NoError(t, f.Truncate(0))
	_, err := f.Seek(0, io.SeekStart)
	require.NoError(t, err)
}

func (b *bench) content(t *testing.T, f *os.File) []byte {
	t.Helper()
	_, err := f.Seek(0, io.SeekStart)
	require.NoError(t, err)
	content, err := io.ReadAll(f)
	require.NoError(t, err)
	return content
}

// execute runs one call in a process of its own.
func execute(t *testing.T, dir string, s side, c call) outcome {
	t.Helper()
	cmd := exec.Command(filepath.Join(dir, string(s)))
	cmd.Env = append([]string{"GORACE=atexit_sleep_ms=0"}, c.env...) // a race-enabled binary sleeps at its end
	cmd.Stdin = c.open(t)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil {
		require.ErrorAs(t, err, &exit)
	}
	return outcomeOf(cmd.ProcessState.ExitCode(), stdout.Bytes(), stderr.Bytes())
}

// executables makes the test binary available under the name of each side.
func executables(t *testing.T) (dir string) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	dir = t.TempDir()
	for _, s := range sides() {
		require.NoError(t, os.Symlink(self, filepath.Join(dir, string(s))))
	}
	return dir
}
