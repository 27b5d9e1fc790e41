package kernels

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/internal/testenv"
)

// archiveOf is an archive in a directory, which apt reads as it reads one over the network.
type archiveOf struct {
	t   *testing.T
	dir string
}

func newArchive(t *testing.T) *archiveOf {
	t.Helper()
	testenv.Guest(t) // the tools are there where guests run
	for _, tool := range []string{"apt-get", "dpkg-deb", "xz", "gcc"} {
		testenv.Tool(t, tool)
	}
	return &archiveOf{t: t, dir: t.TempDir()}
}

func (a *archiveOf) source() Source {
	return Source{List: []string{"deb [trusted=yes arch=amd64] file:" + a.dir + " ./"}}
}

// add builds a package of files and puts it into the archive's list.
func (a *archiveOf) add(name string, files map[string][]byte) {
	a.t.Helper()
	root := a.t.TempDir()
	control := "Package: " + name + "\nVersion: 1\nArchitecture: amd64\nMaintainer: nobody <nobody@example.com>\nDescription: test\n"
	files["DEBIAN/control"] = []byte(control)
	for path, content := range files {
		path = filepath.Join(root, path)
		require.NoError(a.t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(a.t, os.WriteFile(path, content, 0o644))
	}
	deb := filepath.Join(a.dir, name+"_1_amd64.deb")
	a.run(a.dir, "dpkg-deb", "--build", "-Znone", root, deb)
	size, err := os.Stat(deb)
	require.NoError(a.t, err)
	digest := strings.Fields(a.run(a.dir, "sha256sum", deb))[0]
	a.list(control + "Filename: ./" + filepath.Base(deb) + "\nSize: " + strconv.FormatInt(size.Size(), 10) + "\nSHA256: " + digest + "\n\n")
}

func (a *archiveOf) list(entry string) {
	a.t.Helper()
	f, err := os.OpenFile(filepath.Join(a.dir, "Packages"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	require.NoError(a.t, err)
	_, err = f.WriteString(entry)
	require.NoError(a.t, err)
	require.NoError(a.t, f.Close())
}

func (a *archiveOf) run(dir, name string, args ...string) string {
	a.t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(a.t, err, "%s: %s", name, out)
	return string(out)
}

// module is an object file with what modprobe reads.
func (a *archiveOf) module(depends string) []byte {
	a.t.Helper()
	dir := a.t.TempDir()
	const head = `__attribute__((section(".modinfo"))) static const char `
	source := head + `license[] = "license=GPL"; ` + head + `depends[] = "depends=` + depends + `";`
	require.NoError(a.t, os.WriteFile(filepath.Join(dir, "m.c"), []byte(source), 0o644))
	a.run(dir, "gcc", "-O0", "-c", "m.c")
	object, err := os.ReadFile(filepath.Join(dir, "m.o"))
	require.NoError(a.t, err)
	return object
}

func xz(t *testing.T, content []byte) []byte {
	t.Helper()
	cmd := exec.Command("xz", "--stdout", "--check=crc32")
	cmd.Stdin = bytes.NewReader(content)
	out, err := cmd.Output()
	require.NoError(t, err)
	return out
}

func TestFetch(t *testing.T) {
	a := newArchive(t)
	const tree = "lib/modules/6.1.0-50-amd64/"
	a.add("linux-image-6.1.0-50-amd64", map[string][]byte{
		"boot/vmlinuz-6.1.0-50-amd64":           imageWith(xz(t, []byte("the bare kernel"))),
		tree + "modules.builtin":                []byte("kernel/fs/built-in.ko\n"),
		tree + "kernel/drivers/net/a-module.ko": a.module("lower,built_in"),
		tree + "kernel/net/lower.ko":            a.module(""),
		tree + "kernel/sound/loud.ko":           a.module(""),
	})
	a.list("Package: linux-image-6.1.0-51-amd64\nVersion: 1\nArchitecture: arm64\nFilename: ./none.deb\nSize: 1\nSHA256: 00\n\n")
	const split = "usr/lib/modules/7.3.4+deb13-amd64/"
	a.add("linux-image-7.3.4+deb13-amd64", map[string][]byte{})
	a.add("linux-base-7.3.4+deb13-amd64", map[string][]byte{split + "modules.builtin": nil})
	a.add("linux-binary-7.3.4+deb13-amd64", map[string][]byte{split + "vmlinuz": imageWith([]byte("another packer's"))})
	a.add("linux-modules-7.3.4+deb13-amd64", map[string][]byte{split + "kernel/drivers/net/veth.ko.xz": xz(t, a.module(""))})
	dir := filepath.Join(t.TempDir(), "new", "cache")

	// Several at once fetch once.
	var together sync.WaitGroup
	logs := make([]bytes.Buffer, 3)
	for i := range logs {
		together.Go(func() {
			assert.NoError(t, Fetch(t.Context(), dir, []string{"6.1", Newest}, a.source(), &logs[i]))
		})
	}
	together.Wait()
	var said string
	for i := range logs {
		said += logs[i].String()
	}
	assert.Equal(t, 1, strings.Count(said, "6.1 is 6.1.0-50-amd64"), said)
	assert.Equal(t, 1, strings.Count(said, "newest is 7.3.4+deb13-amd64"), said)

	old, err := Find(dir, "6.1")
	require.NoError(t, err)
	image, err := os.ReadFile(old.Image())
	require.NoError(t, err)
	assert.Equal(t, "the bare kernel", string(image))
	files, err := old.Load("a-module")
	require.NoError(t, err)
	require.Len(t, files, 2)
	assert.Equal(t, "lower.ko", filepath.Base(files[0]))
	assert.FileExists(t, files[1])
	_, err = old.Load("loud")
	require.ErrorContains(t, err, "module loud")

	newest, err := Find(dir, Newest)
	require.NoError(t, err)
	assert.Len(t, newest.Digests, 3)
	files, err = newest.Load("veth")
	require.NoError(t, err)
	assert.Equal(t, "veth.ko", filepath.Base(files[0]))

	// What is there is not asked for again.
	require.NoError(t, os.RemoveAll(a.dir))
	require.NoError(t, Fetch(t.Context(), dir, []string{"6.1", Newest}, a.source(), &logs[0]))
}

func TestFetchLeavesNothingHalf(t *testing.T) {
	a := newArchive(t)
	a.add("linux-image-6.1.0-50-amd64", map[string][]byte{"boot/vmlinuz-6.1.0-50-amd64": []byte("no image")})
	dir := t.TempDir()
	killed := filepath.Join(dir, temporary+"of-a-killed-process")
	require.NoError(t, os.MkdirAll(filepath.Join(killed, "lists"), 0o755))
	for _, tt := range []struct{ line, want string }{
		{"6.1", "no header of the Linux/x86 boot protocol"},
		{"6.12", "the archive has no kernel 6.12"},
		{"4.19", "unknown line: those that can be fetched are 6.1, 6.12, 6.18, newest"},
	} {
		require.ErrorContains(t, Fetch(t.Context(), dir, []string{tt.line}, a.source(), &bytes.Buffer{}), tt.want)
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		if tt.line != "4.19" {
			require.Len(t, entries, 1, "%s: %v", tt.line, entries)
			assert.Equal(t, "lock", entries[0].Name())
		}
	}
	// A package that is not what the list says.
	require.NoError(t, os.WriteFile(filepath.Join(a.dir, "linux-image-6.1.0-50-amd64_1_amd64.deb"), []byte("another"), 0o644))
	require.Error(t, Fetch(t.Context(), dir, []string{"6.1"}, a.source(), &bytes.Buffer{}))
	require.ErrorContains(t, Fetch(t.Context(), dir, []string{"6.1"}, Source{List: []string{"deb file:/no/such ./"}}, &bytes.Buffer{}), "read Debian's archive")
}

// Whoever cancels is told so, and not of a signal that killed a command.
func TestCancelledFetch(t *testing.T) {
	newArchive(t) // asks for what the test needs
	t.Setenv("no_proxy", "127.0.0.1")
	ctx, cancel := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done() // apt is gone
	}))
	defer server.Close()
	err := Fetch(ctx, t.TempDir(), []string{"6.1"}, Source{List: []string{"deb [trusted=yes arch=amd64] " + server.URL + " ./"}}, &bytes.Buffer{})
	require.ErrorIs(t, err, context.Canceled)
}

// A command that is stopped is done with, though a process that it started still holds its output.
func TestStoppedCommand(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "started"), 0o600))
	require.NoError(t, syscall.Mkfifo(filepath.Join(dir, "hold"), 0o600))
	ended := make(chan error, 1)
	go func() {
		_, err := command(ctx, dir, "sh", "-c", "cat hold & echo > started; wait")
		ended <- err
	}()
	_, err := os.ReadFile(filepath.Join(dir, "started"))
	require.NoError(t, err)
	hold, err := os.OpenFile(filepath.Join(dir, "hold"), os.O_WRONLY, 0)
	require.NoError(t, err)
	defer hold.Close() // lets cat go
	cancel()
	select {
	case err := <-ended:
		require.Error(t, err)
	case <-time.After(time.Minute):
		t.Fatal("it waits for the process that holds the output")
	}
}

// This machine's own sources lead to the archive.
func TestMachineSources(t *testing.T) {
	newArchive(t)
	lines, err := machineSources(t.Context(), []string{"bookworm", "trixie"})
	testenv.Need(t, "Debian's archive in the apt sources", err)
	require.Len(t, lines, 2)
	assert.Regexp(t, `^deb \[arch=amd64 target=Packages.*\] \S+ trixie main$`, lines[1])
}
