package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/internal/testenv"
)

// root is the file system of the image, unpacked.
type root string

// unpack puts the files of a tar file below dir.
func unpack(t *testing.T, r io.Reader, dir string) {
	t.Helper()
	for files := tar.NewReader(r); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err)
		path := filepath.Join(dir, header.Name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		if header.Typeflag == tar.TypeDir {
			continue
		}
		content, err := io.ReadAll(files)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, content, header.FileInfo().Mode()))
	}
}

// newRoot unpacks the only layer of the image in a file.
func newRoot(t *testing.T, file []byte) root {
	t.Helper()
	layout, dir := t.TempDir(), t.TempDir()
	unpack(t, bytes.NewReader(file), layout)
	manifest, err := os.ReadFile(filepath.Join(layout, "manifest.json"))
	require.NoError(t, err)
	layer := regexp.MustCompile(`"Layers":\["([^"]*)"\]`).FindSubmatch(manifest)
	require.NotNil(t, layer, string(manifest))
	f, err := os.Open(filepath.Join(layout, string(layer[1])))
	require.NoError(t, err)
	defer f.Close()
	unpack(t, f, dir)
	return root(dir)
}

// run executes a program of the image in it, where there is nothing else.
func (r root) run(t *testing.T, input string, env []string, args ...string) (output string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Chroot: string(r)}
	cmd.Dir, cmd.Env, cmd.Stdin = "/", env, strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestImage builds the image as people do, and runs what is in it.
func TestImage(t *testing.T) {
	testenv.Root(t)
	testenv.Tool(t, "go")
	dir := t.TempDir()
	file, again := filepath.Join(dir, "cnikit.tar"), new(bytes.Buffer)
	require.Zero(t, command(t.Context(), []string{"-o", file}, t.Output(), t.Output()))
	require.Zero(t, command(t.Context(), []string{"-o", "-"}, again, t.Output()))
	content, err := os.ReadFile(file)
	require.NoError(t, err)
	require.True(t, bytes.Equal(content, again.Bytes()), "the same sources give the same bytes")
	t.Logf("%d bytes", len(content))
	r := newRoot(t, content)

	t.Run("plugins", func(t *testing.T) {
		for _, name := range []string{"cnikit-bridge", "cnikit-ipam"} {
			out, err := r.run(t, `{"cniVersion":"1.1.0"}`, []string{"CNI_COMMAND=VERSION"}, "/bin/"+name)
			require.NoError(t, err, out)
			require.Contains(t, out, `"1.1.0"`)
		}
	})
	t.Run("agent installs the plugins", func(t *testing.T) {
		require.NoError(t, os.MkdirAll(filepath.Join(string(r), "opt/cni/bin"), 0o755))       // a mount, in the cluster
		out, err := r.run(t, "", nil, "/bin/cnikit-agent", "install", "-executables", "/bin") // it is to find that itself, through /proc
		require.NoError(t, err, out)
		for _, name := range []string{"cnikit-bridge", "cnikit-ipam"} {
			want, err := os.ReadFile(filepath.Join(string(r), "bin", name))
			require.NoError(t, err)
			got, err := os.ReadFile(filepath.Join(string(r), "opt/cni/bin", name))
			require.NoError(t, err)
			require.True(t, bytes.Equal(want, got), name)
		}
	})
	t.Run("agent knows the commands and flags of the manifests", func(t *testing.T) {
		for _, name := range []string{"cnikit.yaml", "uninstall.yaml"} {
			for _, args := range commands(t, manifest(t, name)) {
				out, err := r.run(t, "", nil, append(args, "-help")...)
				require.NoError(t, err, out)
				require.Contains(t, out, "Usage: cnikit-agent "+args[1])
			}
		}
		flags := matches(t, manifest(t, "cnikit.yaml"), `^ +- (-[a-z-]+=.*)$`)
		out, err := r.run(t, "", nil, append(append([]string{"/bin/cnikit-agent", "run"}, flags...), "-help")...)
		require.NoError(t, err, out)
	})
}

// A program of the machine's C library could not start in the image.
func TestDynamicProgramIsRefused(t *testing.T) {
	dynamic := testenv.Tool(t, "ip")
	dir := t.TempDir()
	for _, name := range programs() {
		require.NoError(t, os.Symlink(dynamic, filepath.Join(dir, name)))
	}
	var stderr bytes.Buffer
	require.Equal(t, 1, command(t.Context(), []string{"-bin", dir, "-o", filepath.Join(dir, "x.tar")}, io.Discard, &stderr))
	require.Contains(t, stderr.String(), "cnikit-agent: is linked dynamically")
	require.Contains(t, stderr.String(), "CGO_ENABLED=0")
}
