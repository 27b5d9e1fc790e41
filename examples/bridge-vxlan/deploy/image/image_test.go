package image_test

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/examples/bridge-vxlan/deploy/image"
)

// file is an entry of a tar file.
type file struct {
	tar.Header
	content string
}

// untar reads a whole tar file, in its order.
func untar(t *testing.T, data []byte) (files []file) {
	t.Helper()
	for r := tar.NewReader(bytes.NewReader(data)); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		require.NoError(t, err)
		content, err := io.ReadAll(r)
		require.NoError(t, err)
		files = append(files, file{*header, string(content)})
	}
}

// layout is the part of an image's files that a runtime reads.
type layout struct {
	t     *testing.T
	files map[string]string
}

func write(t *testing.T, i image.Image) layout {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, image.Write(&out, i))
	l := layout{t, map[string]string{}}
	for _, f := range untar(t, out.Bytes()) {
		require.NotContains(t, l.files, f.Name)
		require.Equal(t, byte(tar.TypeReg), f.Typeflag)
		l.files[f.Name] = f.content
	}
	return l
}

func (l layout) json(name string) (value map[string]any) {
	l.t.Helper()
	require.Contains(l.t, l.files, name)
	require.NoError(l.t, json.Unmarshal([]byte(l.files[name]), &value))
	return value
}

// blob returns the name of the file that a descriptor stands for, after a look at its
// digest, size and type.
func (l layout) blob(descriptor any, mediaType string) string {
	l.t.Helper()
	d := descriptor.(map[string]any)
	require.Equal(l.t, mediaType, d["mediaType"])
	algorithm, sum, _ := strings.Cut(d["digest"].(string), ":")
	name := "blobs/" + algorithm + "/" + sum
	require.Contains(l.t, l.files, name)
	got := sha256.Sum256([]byte(l.files[name]))
	require.Equal(l.t, hex.EncodeToString(got[:]), sum)
	require.InDelta(l.t, len(l.files[name]), d["size"], 0)
	return name
}

func only(t *testing.T, list any) map[string]any {
	t.Helper()
	require.Len(t, list, 1)
	return list.([]any)[0].(map[string]any)
}

func sample(t *testing.T) image.Image {
	t.Helper()
	program := filepath.Join(t.TempDir(), "program")
	require.NoError(t, os.WriteFile(program, []byte("program"), 0o600))
	return image.Image{
		Ref: "localhost/cnikit:dev", Architecture: "arm64",
		Files: []image.File{
			{Path: "/etc/a/config", Mode: 0o640, Content: []byte("text")},
			{Path: "/bin/program", From: program},
		},
		Links:      map[string]string{"/bin/other": "program", "/sbin/program": "/bin/program"},
		Entrypoint: []string{"/bin/other", "run"}, Env: []string{"PATH=/bin"},
	}
}

// TestLayout follows the image specification from index to layer.
func TestLayout(t *testing.T) {
	l := write(t, sample(t))
	require.JSONEq(t, `{"imageLayoutVersion":"1.0.0"}`, l.files["oci-layout"])
	index := l.json("index.json")
	require.InDelta(t, 2, index["schemaVersion"], 0)
	entry := only(t, index["manifests"])
	require.Equal(t, map[string]any{"architecture": "arm64", "os": "linux"}, entry["platform"])
	require.Equal(t, map[string]any{
		"io.containerd.image.name": "localhost/cnikit:dev", "org.opencontainers.image.ref.name": "dev",
	}, entry["annotations"])

	manifest := l.json(l.blob(entry, "application/vnd.oci.image.manifest.v1+json"))
	configName := l.blob(manifest["config"], "application/vnd.oci.image.config.v1+json")
	layerName := l.blob(only(t, manifest["layers"]), "application/vnd.oci.image.layer.v1.tar")
	require.Equal(t, map[string]any{
		"created": "1970-01-01T00:00:00Z", "architecture": "arm64", "os": "linux",
		"config": map[string]any{"Entrypoint": []any{"/bin/other", "run"}, "Env": []any{"PATH=/bin"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []any{only(t, manifest["layers"])["digest"]}},
	}, l.json(configName))
	require.Len(t, l.files, 6, "nothing else is in it")

	var saved []map[string]any
	require.NoError(t, json.Unmarshal([]byte(l.files["manifest.json"]), &saved))
	require.Equal(t, []map[string]any{{"Config": configName, "RepoTags": []any{"localhost/cnikit:dev"}, "Layers": []any{layerName}}}, saved)
	requireLayer(t, l.files[layerName])
}

// requireLayer wants what sample has. Directories come before what is in them.
func requireLayer(t *testing.T, layer string) {
	t.Helper()
	var got []file
	for _, f := range untar(t, []byte(layer)) {
		require.Zero(t, f.Uid)
		require.Zero(t, f.Gid)
		require.Empty(t, f.Uname)
		require.True(t, f.ModTime.Equal(time.Unix(0, 0)))
		got = append(got, file{tar.Header{Typeflag: f.Typeflag, Name: f.Name, Mode: f.Mode, Linkname: f.Linkname}, f.content})
	}
	require.Equal(t, []file{
		{tar.Header{Typeflag: tar.TypeDir, Name: "bin/", Mode: 0o755}, ""},
		{tar.Header{Typeflag: tar.TypeSymlink, Name: "bin/other", Mode: 0o777, Linkname: "program"}, ""},
		{tar.Header{Typeflag: tar.TypeReg, Name: "bin/program", Mode: 0o755}, "program"},
		{tar.Header{Typeflag: tar.TypeDir, Name: "etc/", Mode: 0o755}, ""},
		{tar.Header{Typeflag: tar.TypeDir, Name: "etc/a/", Mode: 0o755}, ""},
		{tar.Header{Typeflag: tar.TypeReg, Name: "etc/a/config", Mode: 0o640}, "text"},
		{tar.Header{Typeflag: tar.TypeDir, Name: "sbin/", Mode: 0o755}, ""},
		{tar.Header{Typeflag: tar.TypeSymlink, Name: "sbin/program", Mode: 0o777, Linkname: "/bin/program"}, ""},
	}, got)
}

func TestArchitectureIsThisOne(t *testing.T) {
	i := sample(t)
	i.Architecture = ""
	entry := only(t, write(t, i).json("index.json")["manifests"])
	require.Equal(t, runtime.GOARCH, entry["platform"].(map[string]any)["architecture"])
}

func TestSameFilesGiveTheSameBytes(t *testing.T) {
	i := sample(t)
	var first, second, other bytes.Buffer
	require.NoError(t, image.Write(&first, i))
	when := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(i.Files[1].From, when, when))
	i.Files[0], i.Files[1] = i.Files[1], i.Files[0]
	require.NoError(t, image.Write(&second, i))
	require.Equal(t, first.Bytes(), second.Bytes())
	i.Env = nil
	require.NoError(t, image.Write(&other, i))
	require.NotEqual(t, first.Bytes(), other.Bytes())
}

func TestRefusals(t *testing.T) {
	type change = func(*image.Image)
	ref := func(ref string) change { return func(i *image.Image) { i.Ref = ref } }
	add := func(f image.File) change { return func(i *image.Image) { i.Files = append(i.Files, f) } }
	at := func(path string) change { return add(image.File{Path: path}) }
	link := func(path, target string) change { return func(i *image.Image) { i.Links[path] = target } }
	entrypoint := func(e ...string) change { return func(i *image.Image) { i.Entrypoint = e } }
	env := func(e string) change { return func(i *image.Image) { i.Env = []string{e} } }
	for name, test := range map[string]struct {
		change change
		words  []string // nil: accepted
	}{
		"as it is":                       {func(*image.Image) {}, nil},
		"registry with a port":           {ref("127.0.0.1:5000/a/b_c--d.e:V1.0_x-y"), nil},
		"registry with a dot":            {ref("registry.example/a:1"), nil},
		"registry is a name with a port": {ref("registry:5000/a:1"), nil},
		"no entrypoint":                  {entrypoint(), nil},
		"entrypoint of the search path":  {entrypoint("program"), nil},
		"file beside a directory":        {at("/etc/b"), nil},
		"empty reference":                {ref(""), []string{`image reference ""`, "such as localhost/cnikit:dev"}},
		"reference without a registry":   {ref("cnikit:dev"), []string{`"cnikit:dev"`, "registry, path and tag"}},
		"reference of a short registry":  {ref("library/cnikit:dev"), []string{"library/cnikit:dev"}},
		"reference without a tag":        {ref("localhost/cnikit"), []string{"localhost/cnikit"}},
		"reference with capitals":        {ref("localhost/Cnikit:dev"), []string{"Cnikit"}},
		"reference with a digest":        {ref("localhost/cnikit@sha256:00"), []string{"sha256"}},
		"reference with a second line":   {ref("localhost/cnikit:dev\n"), []string{`dev\n`}},
		"reference is long":              {ref("localhost/" + strings.Repeat("a", 250) + ":dev"), []string{"image reference"}},
		"relative path":                  {at("bin/x"), []string{`file "bin/x"`, "such as /bin/program"}},
		"path with dots":                 {at("/bin/../x"), []string{`file "/bin/../x"`, "without detours"}},
		"path ends in a slash":           {at("/bin/"), []string{`file "/bin/"`}},
		"path is the root":               {at("/"), []string{`file "/"`}},
		"path is empty":                  {at(""), []string{`file ""`}},
		"path twice":                     {at("/bin/program"), []string{`file "/bin/program"`, "twice"}},
		"path of a directory":            {at("/etc/a"), []string{`file "/etc/a"`, "directory"}},
		"below a file":                   {at("/bin/program/x"), []string{`"/bin/program/x"`, "/bin/program is no directory"}},
		"below a link":                   {link("/bin/other/x", "y"), []string{`link "/bin/other/x"`, "/bin/other is no directory"}},
		"link and file":                  {link("/bin/program", "x"), []string{`link "/bin/program"`, "twice"}},
		"link to nothing":                {link("/bin/x", ""), []string{`link "/bin/x"`, `target ""`}},
		"setuid":                         {add(image.File{Path: "/x", Mode: os.ModeSetuid | 0o755}), []string{`file "/x"`, "mode u"}},
		"unix setuid":                    {add(image.File{Path: "/x", Mode: 0o4755}), []string{`file "/x"`, "permissions"}},
		"content twice":                  {add(image.File{Path: "/x", From: "/dev/null", Content: []byte{}}), []string{"both", "/dev/null"}},
		"no such file":                   {add(image.File{Path: "/x", From: "/nonexistent"}), []string{`file "/x"`, "/nonexistent"}},
		"not a regular file":             {add(image.File{Path: "/x", From: os.TempDir()}), []string{os.TempDir(), "no regular file"}},
		"entrypoint missing":             {entrypoint("/bin/x"), []string{`entrypoint "/bin/x"`, "is not in the image"}},
		"entrypoint is a directory":      {entrypoint("/bin"), []string{`entrypoint "/bin"`}},
		"environment without a value":    {env("PATH"), []string{`environment "PATH"`, "KEY=value"}},
		"environment without a key":      {env("=x"), []string{`environment "=x"`}},
	} {
		t.Run(name, func(t *testing.T) {
			i := sample(t)
			test.change(&i)
			var out bytes.Buffer
			err := image.Write(&out, i)
			if test.words == nil {
				require.NoError(t, err)
				return
			}
			for _, words := range test.words {
				require.ErrorContains(t, err, words)
			}
			require.Zero(t, out.Len())
		})
	}
}

// changing lets files change after the look at them.
type changing struct {
	bytes.Buffer
	change func()
}

func (c *changing) Write(p []byte) (int, error) {
	if c.change != nil {
		c.change()
		c.change = nil
	}
	return c.Buffer.Write(p)
}

func TestFileThatChanges(t *testing.T) {
	for name, content := range map[string]string{"other content": "PROGRAM", "shorter": "pro", "gone": ""} {
		t.Run(name, func(t *testing.T) {
			i := sample(t)
			program := i.Files[1].From
			err := image.Write(&changing{change: func() {
				require.NoError(t, os.Remove(program))
				if content != "" {
					require.NoError(t, os.WriteFile(program, []byte(content), 0o600))
				}
			}}, i)
			require.ErrorContains(t, err, "write image localhost/cnikit:dev")
			if content != "" {
				require.ErrorContains(t, err, "a file changed while it was read")
			}
		})
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestWriterThatFails(t *testing.T) {
	require.ErrorIs(t, image.Write(full{}, sample(t)), os.ErrClosed)
}
