package install

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/reconcile"
	"github.com/cnikit/cnikit/reconcile/reconciletest"
)

const name = "10-net.conflist"

// round makes one round of an engine over a target.
func round(t *testing.T, target reconcile.Target) reconcile.Round {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var got reconcile.Round
	e, err := reconcile.New(reconcile.Options{
		Targets: []reconcile.Target{target}, OnRound: func(r reconcile.Round) { got = r; cancel() },
	})
	require.NoError(t, err)
	require.NoError(t, e.Run(ctx))
	return got
}

// fresh returns files of a directory that want what is given.
func fresh(t *testing.T, dir string, wanted map[string]File) *Files {
	t.Helper()
	f, err := NewFiles("files", dir, Options{Names: []string{name, "old.conflist"}})
	require.NoError(t, err)
	f.Replace(wanted)
	return f
}

func list(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestStoreKeepsTheContract(t *testing.T) {
	s := &store{folder: folder{dir: t.TempDir(), names: []string{name}}}
	require.NoError(t, reconciletest.CheckStore(t.Context(), s, reconciletest.Sample[string, File]{
		Key: name, First: File{Content: []byte("one")}, Second: File{Content: []byte("two"), Mode: 0o600}, Equal: File.Equal,
	}))
}

func TestFiles(t *testing.T) {
	hello := map[string]File{name: {Content: []byte("hello")}}
	t.Run("written, once", func(t *testing.T) {
		dir := t.TempDir()
		require.Equal(t, 1, round(t, fresh(t, dir, hello)).Applied)
		before, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		require.Zero(t, round(t, fresh(t, dir, hello)).Applied)
		after, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		require.True(t, os.SameFile(before, after))
		require.Equal(t, []string{name}, list(t, dir), "nothing left beside it")
	})
	t.Run("mode/exactly as wanted, whatever the umask", func(t *testing.T) {
		dir := t.TempDir()
		for _, mode := range []fs.FileMode{0, 0o600, 0o777} {
			round(t, fresh(t, dir, map[string]File{name: {Content: []byte("x"), Mode: mode}}))
			info, err := os.Stat(filepath.Join(dir, name))
			require.NoError(t, err)
			require.Equal(t, File{Mode: mode}.mode(), info.Mode())
		}
	})
	t.Run("drift/content, mode, type", func(t *testing.T) {
		dir := t.TempDir()
		path := filepath.Join(dir, name)
		for drift, do := range map[string]func() error{
			"truncated": func() error { return os.Truncate(path, 2) },
			"changed":   func() error { return os.WriteFile(path, []byte("other"), 0o644) },
			"mode":      func() error { return os.Chmod(path, 0o600) },
			"no mode":   func() error { return os.Chmod(path, 0) },
			"link": func() error {
				return errors.Join(os.Rename(path, filepath.Join(dir, "target")), os.Symlink("target", path))
			},
		} {
			round(t, fresh(t, dir, hello))
			require.NoError(t, do(), drift)
			require.Equal(t, 1, round(t, fresh(t, dir, hello)).Applied, drift)
			info, err := os.Lstat(path)
			require.NoError(t, err)
			require.Equal(t, fs.FileMode(0o644), info.Mode(), drift)
			content, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, "hello", string(content), drift)
		}
	})
	t.Run("a directory in the place of a file/is an error, and stays", func(t *testing.T) {
		dir := t.TempDir()
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o755))
		require.Len(t, round(t, fresh(t, dir, hello)).Failed, 1)
		got := round(t, fresh(t, dir, nil))
		require.ErrorContains(t, got.Failed[0], "is a directory; remove it by hand")
		require.Equal(t, []string{name}, list(t, dir))
	})
	t.Run("unwanted/deleted, and so is what a crash left, and nothing else", func(t *testing.T) {
		dir := t.TempDir()
		foreign := []string{".10-net.conflist.swp", ".hidden", ".other.conflist" + tempMark + "7", "10-net.conf", "99-other.conflist"}
		ours := []string{name, "old.conflist", "." + name + tempMark + "123"}
		for _, n := range append(append([]string{}, foreign...), ours...) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, n), nil, 0o644))
		}
		require.Equal(t, 3, round(t, fresh(t, dir, nil)).Deleted)
		require.Equal(t, foreign, list(t, dir))
	})
	t.Run("before the first replace/nothing is deleted", func(t *testing.T) {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o644))
		f, err := NewFiles("files", dir, Options{Names: []string{name}})
		require.NoError(t, err)
		round(t, f)
		require.Equal(t, []string{name}, list(t, dir))
	})
	t.Run("a name that is not managed/is an error of that key", func(t *testing.T) {
		dir := t.TempDir()
		got := round(t, fresh(t, dir, map[string]File{"other": {}, name: {}}))
		require.ErrorContains(t, got.Failed[0], "not among the managed names")
		require.Equal(t, []string{name}, list(t, dir))
	})
	t.Run("directory/made only if asked for", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "a", "b")
		require.ErrorIs(t, round(t, fresh(t, dir, hello)).Failed[0], fs.ErrNotExist)
		require.Empty(t, round(t, fresh(t, dir, nil)).Failed, "nothing to write, nothing to complain about")
		f, err := NewFiles("files", dir, Options{Names: []string{name}, MakeDir: true})
		require.NoError(t, err)
		f.Replace(hello)
		require.Equal(t, 1, round(t, f).Applied)
	})
	t.Run("cleanup/removes what is managed, twice", func(t *testing.T) {
		dir := t.TempDir()
		f := fresh(t, dir, hello)
		round(t, f)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "foreign"), nil, 0o644))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "."+name+tempMark+"1"), nil, 0o644))
		require.NoError(t, f.Cleanup(t.Context()))
		require.NoError(t, f.Cleanup(t.Context()))
		require.Equal(t, []string{"foreign"}, list(t, dir))
		gone, err := NewFiles("files", filepath.Join(dir, "gone"), Options{Names: []string{name}})
		require.NoError(t, err)
		require.NoError(t, gone.Cleanup(t.Context()))
	})
}

func TestNewFilesRefuses(t *testing.T) {
	for rule, tc := range map[string]struct {
		dir   string
		names []string
		want  string
	}{
		"relative directory": {"etc/cni", []string{name}, `dir="etc/cni": is not an absolute path; start it`},
		"no names":           {"/etc/cni", nil, `names=null: is empty`},
		"path as a name":     {"/etc/cni", []string{"a/b"}, `names="a/b": is no plain file name`},
		"hidden name":        {"/etc/cni", []string{".a"}, `names=".a"`},
		"empty name":         {"/etc/cni", []string{""}, `names=""`},
	} {
		t.Run(rule, func(t *testing.T) {
			if runtime.GOOS == "windows" {
				tc.dir = `C:` + tc.dir
			}
			_, err := NewFiles("files", tc.dir, Options{Names: tc.names})
			var field *cni.FieldError
			require.ErrorAs(t, err, &field)
			require.ErrorContains(t, err, tc.want)
		})
	}
}

func TestWriteFileIsAtomic(t *testing.T) {
	path := filepath.Join(t.TempDir(), name)
	versions := [][]byte{bytes.Repeat([]byte("a"), 100_000), bytes.Repeat([]byte("b"), 50_000)}
	require.NoError(t, WriteFile(path, File{Content: versions[0]}))
	done := make(chan error)
	go func() {
		defer close(done)
		for i := range 100 {
			if err := WriteFile(path, File{Content: versions[i%2]}); err != nil {
				done <- err
				return
			}
		}
	}()
	for {
		content, err := os.ReadFile(path)
		require.NoError(t, err)
		require.True(t, bytes.Equal(content, versions[0]) || bytes.Equal(content, versions[1]), "a reader saw a part")
		select {
		case err := <-done:
			require.NoError(t, err)
			return
		default:
		}
	}
}

func TestWriteFileThatFailsLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o755))
	require.ErrorContains(t, WriteFile(filepath.Join(dir, name), File{}), "write "+filepath.Join(dir, name))
	require.Equal(t, []string{name}, list(t, dir))
}

func TestTemporaryNames(t *testing.T) {
	for _, n := range []string{name, "a", "weird*.conflist"} {
		dir := t.TempDir()
		tmp, err := os.CreateTemp(dir, "."+n+tempMark+"*")
		require.NoError(t, err)
		require.NoError(t, tmp.Close())
		final, ok := tempOf(filepath.Base(tmp.Name()))
		require.True(t, ok)
		require.Equal(t, n, final)
		require.NotContains(t, []string{".conf", ".conflist", ".json"}, filepath.Ext(tmp.Name()), "a runtime would load it")
	}
	_, ok := tempOf(name)
	require.False(t, ok)
}
