package disk

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestReplace(t *testing.T) {
	t.Run("creates and replaces, whole", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "file")
		for _, content := range []string{"the first one, which is longer", "second", ""} {
			require.NoError(t, Replace(path, ".new-*", []byte(content), 0o640))
			got, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.Equal(t, content, string(got))
		}
		requireNames(t, filepath.Dir(path), "file")
	})
	t.Run("a reader that has the old file keeps it", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "file")
		require.NoError(t, Replace(path, ".new-*", []byte("old"), 0o600))
		old, err := os.Open(path)
		require.NoError(t, err)
		defer func() { _ = old.Close() }()
		require.NoError(t, Replace(path, ".new-*", []byte("new"), 0o600))
		got := make([]byte, 3)
		_, err = old.ReadAt(got, 0)
		require.NoError(t, err)
		assert.Equal(t, "old", string(got))
	})
	t.Run("an error leaves the old file, and nothing beside it", func(t *testing.T) {
		dir := t.TempDir()
		path := filepath.Join(dir, "taken")
		require.NoError(t, os.MkdirAll(filepath.Join(path, "in the way"), 0o700)) // no rename replaces a directory
		require.Error(t, Replace(path, ".new-*", []byte("new"), 0o600))
		requireNames(t, dir, "taken")
		require.ErrorIs(t, Replace(filepath.Join(dir, "absent", "file"), ".new-*", nil, 0o600), fs.ErrNotExist)
	})
	t.Run("the mode is as asked, whatever the umask; a link is replaced", func(t *testing.T) {
		if runtime.GOOS == "windows" {
			return // it has neither
		}
		dir := t.TempDir()
		target, path := filepath.Join(dir, "target"), filepath.Join(dir, "link")
		require.NoError(t, os.WriteFile(target, []byte("untouched"), 0o600))
		require.NoError(t, os.Symlink(target, path))
		require.NoError(t, Replace(path, ".new-*", []byte("new"), 0o666))
		info, err := os.Lstat(path)
		require.NoError(t, err)
		assert.Equal(t, fs.FileMode(0o666), info.Mode())
		got, err := os.ReadFile(target)
		require.NoError(t, err)
		assert.Equal(t, "untouched", string(got))
	})
}

func TestStage(t *testing.T) {
	t.Run("nothing has the final name before the commit", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "file")
		staged, err := Stage(filepath.Dir(path), ".new-*", strings.NewReader("content"), 0o755)
		require.NoError(t, err)
		require.NoFileExists(t, path)
		require.NoError(t, Commit(staged, path))
		requireNames(t, filepath.Dir(path), "file")
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, "content", string(got))
	})
	t.Run("a reader that fails leaves nothing", func(t *testing.T) {
		dir := t.TempDir()
		cut := io.MultiReader(strings.NewReader("half"), iotest.ErrReader(io.ErrUnexpectedEOF))
		_, err := Stage(dir, ".new-*", cut, 0o755)
		require.ErrorIs(t, err, io.ErrUnexpectedEOF)
		requireNames(t, dir)
	})
	t.Run("a commit that fails leaves the old file alone", func(t *testing.T) {
		dir := t.TempDir()
		path := filepath.Join(dir, "taken")
		require.NoError(t, os.MkdirAll(filepath.Join(path, "in the way"), 0o700))
		staged, err := Stage(dir, ".new-*", strings.NewReader("content"), 0o755)
		require.NoError(t, err)
		require.Error(t, Commit(staged, path))
		requireNames(t, dir, "taken")
	})
}

func TestMakeDir(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "a", "b", "c")
	require.NoError(t, MakeDir(dir, 0o700))
	require.NoError(t, MakeDir(dir, 0o755), "again")
	for _, made := range []string{dir, filepath.Dir(dir)} {
		info, err := os.Stat(made)
		require.NoError(t, err)
		assert.True(t, info.IsDir())
		if runtime.GOOS != "windows" {
			assert.Equal(t, fs.FileMode(0o700), info.Mode().Perm(), "the mode of an existing directory stays")
		}
	}
	file := filepath.Join(top, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.ErrorIs(t, MakeDir(file, 0o700), fs.ErrExist)
	require.Error(t, MakeDir(filepath.Join(file, "below"), 0o700))
}

func TestSyncDirOfNothing(t *testing.T) {
	if runtime.GOOS != "windows" {
		require.ErrorIs(t, SyncDir(filepath.Join(t.TempDir(), "absent")), fs.ErrNotExist)
	}
}

func requireNames(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	require.Equal(t, want, names)
}
