package install

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni"
	"github.com/cnikit/cnikit/reconcile"
	"github.com/cnikit/cnikit/reconcile/reconciletest"
)

const (
	plugin, other = "a-plugin", "b-plugin"
	recordFile    = ".test" + recordMark
)

// A site is a directory to install into, and one with the programs.
type site struct{ dir, from string }

func newSite(t *testing.T) site {
	t.Helper()
	s := site{dir: t.TempDir(), from: t.TempDir()}
	s.source(t, "one")
	return s
}

// source makes the sources another version.
func (s site) source(t *testing.T, version string) {
	t.Helper()
	for _, n := range []string{plugin, other} {
		put(t, filepath.Join(s.from, n), script(version), 0o755)
	}
}

func script(version string) string { return "#!/bin/sh\necho " + version + "\n" }

func put(t *testing.T, path, content string, mode fs.FileMode) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(content), mode))
	require.NoError(t, os.Chmod(path, mode))
}

// open returns executables with nothing remembered, as a new process has them.
func (s site) open(t testing.TB, change ...func(*ExecutablesOptions)) *Executables {
	t.Helper()
	o := ExecutablesOptions{From: s.from, Names: []string{plugin, other}, Owner: "test"}
	for _, c := range change {
		c(&o)
	}
	e, err := NewExecutables("executables", s.dir, o)
	require.NoError(t, err)
	return e
}

func takeOver(o *ExecutablesOptions) { o.Replace = true }

func (s site) install(t *testing.T) {
	t.Helper()
	require.NoError(t, s.open(t).Install(t.Context()))
}

func (s site) has(t *testing.T, name, content string) {
	t.Helper()
	info, err := os.Lstat(filepath.Join(s.dir, name))
	require.NoError(t, err)
	require.Equal(t, executable, info.Mode(), name)
	got, err := os.ReadFile(filepath.Join(s.dir, name))
	require.NoError(t, err)
	require.Equal(t, content, string(got), name)
}

// state is all that can be told of the directory from outside: names, inodes, times and content.
func (s site) state(t *testing.T) map[string]string {
	t.Helper()
	state := map[string]string{}
	for _, n := range list(t, s.dir) {
		info, err := os.Lstat(filepath.Join(s.dir, n))
		require.NoError(t, err)
		content, _ := os.ReadFile(filepath.Join(s.dir, n))
		state[n] = info.Mode().String() + info.ModTime().String() + string(content)
	}
	return state
}

func TestInstall(t *testing.T) {
	t.Run("all, with a record, and nothing beside them", func(t *testing.T) {
		s := newSite(t)
		s.install(t)
		s.has(t, plugin, script("one"))
		s.has(t, other, script("one"))
		require.Equal(t, []string{recordFile, plugin, other}, list(t, s.dir))
		info, err := os.Stat(filepath.Join(s.dir, recordFile))
		require.NoError(t, err)
		require.Zero(t, info.Mode()&0o111, "no runtime executes it")
	})
	t.Run("what is the same is not written", func(t *testing.T) {
		s := newSite(t)
		s.install(t)
		before := s.state(t)
		e := s.open(t)
		e.store.step = func(step string) error { t.Error(step); return nil }
		require.NoError(t, e.Install(t.Context()))
		require.Equal(t, before, s.state(t))
	})
	t.Run("upgrade, rollback, and the directory with its parents", func(t *testing.T) {
		s := newSite(t)
		s.dir = filepath.Join(s.dir, "opt", "cni", "bin")
		for _, v := range []string{"one", "two", "one", "three", "one"} {
			s.source(t, v)
			s.install(t)
			s.has(t, plugin, script(v))
			s.has(t, other, script(v))
		}
	})
	t.Run("a source behind a link", func(t *testing.T) {
		s := newSite(t)
		require.NoError(t, os.Rename(filepath.Join(s.from, plugin), filepath.Join(s.from, "all")))
		require.NoError(t, os.Symlink("all", filepath.Join(s.from, plugin)))
		s.install(t)
		s.has(t, plugin, script("one"))
	})
	t.Run("a mode other than 0755, or content that changed, is repaired", func(t *testing.T) {
		s := newSite(t)
		path := filepath.Join(s.dir, plugin)
		for rule, drift := range map[string]func() error{
			"mode":      func() error { return os.Chmod(path, 0o700) },
			"no mode":   func() error { return os.Chmod(path, 0) },
			"truncated": func() error { return os.Truncate(path, 3) },
			"other":     func() error { return os.WriteFile(path, []byte("other"), 0o755) },
			"deleted":   func() error { return os.Remove(path) },
		} {
			s.install(t)
			require.NoError(t, drift(), rule)
			s.install(t)
			s.has(t, plugin, script("one"))
		}
	})
	t.Run("what a crash left over is removed, and nothing else", func(t *testing.T) {
		s := newSite(t)
		s.install(t)
		for _, n := range []string{"." + plugin + tempMark + "1", "." + recordFile + tempMark + "2", "." + "foreign" + tempMark + "3", ".hidden"} {
			put(t, filepath.Join(s.dir, n), "", 0o600)
		}
		s.install(t)
		require.Equal(t, []string{".foreign" + tempMark + "3", ".hidden", recordFile, plugin, other}, list(t, s.dir))
	})
}

func TestInstallRefusesSources(t *testing.T) {
	for rule, tc := range map[string]struct {
		spoil func(path string) error
		want  string
	}{
		"missing":        {func(string) error { return nil }, "source of b-plugin: stat "},
		"dangling link":  {func(path string) error { return os.Symlink("nothing", path) }, "source of b-plugin: stat "},
		"a directory":    {func(path string) error { return os.Mkdir(path, 0o755) }, "is no regular file; give the directory of the executables"},
		"not executable": {func(path string) error { return errors.Join(os.WriteFile(path, nil, 0o644), os.Chmod(path, 0o644)) }, "has mode -rw-r--r-- and is not executable; give it mode"},
	} {
		t.Run(rule, func(t *testing.T) {
			s := newSite(t)
			require.NoError(t, os.Remove(filepath.Join(s.from, other)))
			require.NoError(t, tc.spoil(filepath.Join(s.from, other)))
			require.ErrorContains(t, s.open(t).Install(t.Context()), tc.want)
			require.Empty(t, list(t, s.dir), "not even the one that is fine")

			got := round(t, s.open(t))
			require.Equal(t, 1, got.Applied, "an engine goes on with the rest")
			require.Len(t, got.Failed, 1)
			require.Equal(t, other, got.Failed[0].Key)
			require.ErrorContains(t, got.Failed[0], tc.want)
			s.has(t, plugin, script("one"))
		})
	}
}

func TestSourceThatChangesWhileItIsCopied(t *testing.T) {
	s := newSite(t)
	e := s.open(t)
	wanted := e.store.sources(t.Context())[plugin]
	s.source(t, "two")
	require.ErrorContains(t, e.store.Apply(t.Context(), plugin, wanted, nil), "changed while it was copied")
	require.Empty(t, list(t, s.dir))
}

func TestInstallForeign(t *testing.T) {
	t.Run("differs/an error, and nothing is changed", func(t *testing.T) {
		s := newSite(t)
		put(t, filepath.Join(s.dir, other), "theirs", 0o755)
		before := s.state(t)
		err := s.open(t).Install(t.Context())
		require.ErrorIs(t, err, ErrForeign)
		require.ErrorContains(t, err, "install "+filepath.Join(s.dir, other)+" (-rwxr-xr-x, 6 bytes, sha256 ")
		require.ErrorContains(t, err, "remove it, or let it be replaced")
		require.Equal(t, before, s.state(t))
	})
	t.Run("differs/an engine goes on with the rest", func(t *testing.T) {
		s := newSite(t)
		put(t, filepath.Join(s.dir, other), "theirs", 0o755)
		got := round(t, s.open(t))
		require.Equal(t, 1, got.Applied)
		require.ErrorIs(t, got.Failed[0], ErrForeign)
		s.has(t, plugin, script("one"))
		s.has(t, other, "theirs")
	})
	t.Run("the same/left alone, also by cleanup", func(t *testing.T) {
		s := newSite(t)
		put(t, filepath.Join(s.dir, other), script("one"), 0o555)
		s.install(t)
		require.NoError(t, s.open(t).Cleanup(t.Context()))
		require.Equal(t, []string{other}, list(t, s.dir))
	})
	t.Run("the same but not executable/an error", func(t *testing.T) {
		s := newSite(t)
		put(t, filepath.Join(s.dir, other), script("one"), 0o644)
		require.ErrorIs(t, s.open(t).Install(t.Context()), ErrForeign)
	})
	t.Run("the same, then an upgrade/an error", func(t *testing.T) {
		s := newSite(t)
		put(t, filepath.Join(s.dir, other), script("one"), 0o755)
		s.install(t)
		s.source(t, "two")
		require.ErrorIs(t, s.open(t).Install(t.Context()), ErrForeign)
		s.has(t, plugin, script("one"))
	})
	t.Run("a link/foreign, even where ours was; its target stays", func(t *testing.T) {
		s := newSite(t)
		s.install(t)
		target, path := filepath.Join(s.from, "target"), filepath.Join(s.dir, plugin)
		put(t, target, script("one"), 0o755)
		require.NoError(t, os.Remove(path))
		require.NoError(t, os.Symlink(target, path))
		require.ErrorIs(t, s.open(t).Install(t.Context()), ErrForeign)
		require.ErrorIs(t, s.open(t).Cleanup(t.Context()), ErrChanged)
		s.source(t, "two")
		require.NoError(t, s.open(t, takeOver).Install(t.Context()))
		s.has(t, plugin, script("two"))
		content, err := os.ReadFile(target)
		require.NoError(t, err)
		require.Equal(t, script("one"), string(content))
	})
	t.Run("a directory/an error, also to who replaces", func(t *testing.T) {
		s := newSite(t)
		require.NoError(t, os.Mkdir(filepath.Join(s.dir, plugin), 0o755))
		require.ErrorIs(t, s.open(t).Install(t.Context()), ErrForeign)
		require.Error(t, s.open(t, takeOver).Install(t.Context()))
		require.DirExists(t, filepath.Join(s.dir, plugin))
	})
	t.Run("replaced/ours from then on", func(t *testing.T) {
		s := newSite(t)
		put(t, filepath.Join(s.dir, other), "theirs", 0o755)
		require.NoError(t, s.open(t, takeOver).Install(t.Context()))
		s.has(t, other, script("one"))
		s.source(t, "two")
		s.install(t)
		require.NoError(t, s.open(t).Cleanup(t.Context()))
		require.Empty(t, list(t, s.dir))
	})
}

func TestInstallWithALostRecord(t *testing.T) {
	for rule, content := range map[string]string{
		"empty":        "",
		"torn":         `{"owner": "test", "files": {"a-pl`,
		"another's":    `{"owner": "else", "files": {}}`,
		"no record":    `{"owner": "test"}`,
		"leads out":    `{"owner": "test", "files": {"../a": {}}}`,
		"bad digest":   `{"owner": "test", "files": {"a-plugin": {"installed": {"sha256": "00"}}}}`,
		"another type": `[]`,
	} {
		t.Run(rule, func(t *testing.T) {
			s := newSite(t)
			s.install(t)
			put(t, filepath.Join(s.dir, recordFile), content, 0o644)
			s.install(t) // all is as it should be

			err := s.open(t).Cleanup(t.Context())
			require.ErrorContains(t, err, "uninstall a-plugin, b-plugin from "+s.dir+": it is lost what was installed, with the record ")
			s.has(t, plugin, script("one"))

			s.source(t, "two")
			err = s.open(t).Install(t.Context())
			require.ErrorIs(t, err, ErrForeign)
			require.ErrorContains(t, err, "record "+filepath.Join(s.dir, recordFile)+": ")
			s.has(t, plugin, script("one"))

			require.NoError(t, s.open(t, takeOver).Install(t.Context()))
			require.NoError(t, s.open(t).Cleanup(t.Context()))
			require.Empty(t, list(t, s.dir))
			put(t, filepath.Join(s.dir, recordFile), content, 0o644)
			require.NoError(t, s.open(t).Cleanup(t.Context()), "nothing is there that it could have told of")
			require.Empty(t, list(t, s.dir))
		})
	}
	t.Run("cannot be read/an error, nothing is changed", func(t *testing.T) {
		s := newSite(t)
		require.NoError(t, os.Mkdir(filepath.Join(s.dir, recordFile), 0o755))
		require.ErrorContains(t, s.open(t).Install(t.Context()), "read record: ")
		require.Equal(t, []string{recordFile}, list(t, s.dir))
	})
}

func TestExecutablesCleanup(t *testing.T) {
	t.Run("what is unchanged, former names too, twice", func(t *testing.T) {
		s := newSite(t)
		put(t, filepath.Join(s.dir, "foreign"), "", 0o755)
		put(t, filepath.Join(s.dir, "."+recordFile+tempMark+"2"), "", 0o600)
		s.install(t)
		e := s.open(t, func(o *ExecutablesOptions) { o.Names = []string{plugin} })
		require.NoError(t, e.Install(t.Context()))
		s.has(t, other, script("one"))
		require.NoError(t, e.Cleanup(t.Context()))
		require.NoError(t, e.Cleanup(t.Context()))
		require.Equal(t, []string{"foreign"}, list(t, s.dir))
	})
	t.Run("a changed one is reported and left until somebody removes it", func(t *testing.T) {
		s := newSite(t)
		s.install(t)
		put(t, filepath.Join(s.dir, plugin), "changed", 0o755)
		for range 2 {
			err := s.open(t).Cleanup(t.Context())
			require.ErrorIs(t, err, ErrChanged)
			require.ErrorContains(t, err, "uninstall "+filepath.Join(s.dir, plugin))
			require.Equal(t, []string{recordFile, plugin}, list(t, s.dir))
		}
		require.NoError(t, os.Remove(filepath.Join(s.dir, plugin)))
		require.NoError(t, s.open(t).Cleanup(t.Context()))
		require.Empty(t, list(t, s.dir))
	})
	t.Run("no directory, nothing installed, no sources", func(t *testing.T) {
		s := newSite(t)
		require.NoError(t, os.RemoveAll(s.from))
		require.NoError(t, s.open(t).Cleanup(t.Context()))
		require.NoError(t, os.RemoveAll(s.dir))
		require.NoError(t, s.open(t).Cleanup(t.Context()))
		require.NoDirExists(t, s.dir)
	})
	t.Run("two owners in one directory", func(t *testing.T) {
		s := newSite(t)
		mine := s.open(t, func(o *ExecutablesOptions) { o.Names = []string{plugin} })
		theirs := s.open(t, func(o *ExecutablesOptions) { o.Names, o.Owner = []string{other}, "else" })
		both := s.open(t, func(o *ExecutablesOptions) { o.Owner = "both" })
		require.NoError(t, mine.Install(t.Context()))
		require.NoError(t, theirs.Install(t.Context()))
		require.NoError(t, both.Install(t.Context()), "nothing to do")
		require.NoError(t, both.Cleanup(t.Context()))
		require.NoError(t, mine.Cleanup(t.Context()))
		require.Equal(t, []string{".else" + recordMark, other}, list(t, s.dir))
		s.source(t, "two")
		require.ErrorIs(t, both.Install(t.Context()), ErrForeign)
		require.NoError(t, theirs.Install(t.Context()))
		require.NoError(t, theirs.Cleanup(t.Context()))
		require.Empty(t, list(t, s.dir))
	})
}

func TestExecutablesAsATarget(t *testing.T) {
	t.Run("installs, once", func(t *testing.T) {
		s := newSite(t)
		require.Equal(t, 2, round(t, s.open(t)).Applied)
		before := s.state(t)
		require.Zero(t, round(t, s.open(t)).Applied)
		require.Equal(t, before, s.state(t))
	})
	t.Run("follows its sources at every look", func(t *testing.T) {
		s := newSite(t)
		e := s.open(t)
		engine, err := reconcile.New(reconcile.Options{Targets: []reconcile.Target{e}})
		require.NoError(t, err)
		plan := func() string {
			p, err := engine.Plan(t.Context())
			require.NoError(t, err)
			return p.String()
		}
		require.Regexp(t, `^executables \(phase 0\):
  \+ a-plugin: -rwxr-xr-x, 19 bytes, sha256 [0-9a-f]{12}
  \+ b-plugin: -rwxr-xr-x, 19 bytes, sha256 [0-9a-f]{12}
$`, plan())
		require.NoError(t, e.Install(t.Context()))
		require.Contains(t, plan(), "nothing to do")
		s.source(t, "three")
		require.Regexp(t, `~ a-plugin: -rwxr-xr-x, 19 bytes, sha256 [0-9a-f]{12} => a-plugin: -rwxr-xr-x, 21 bytes`, plan())
	})
	t.Run("removes what is left over", func(t *testing.T) {
		s := newSite(t)
		put(t, filepath.Join(s.dir, "."+plugin+tempMark+"1"), "", 0o600)
		put(t, filepath.Join(s.dir, "."+recordFile+tempMark+"2"), "", 0o600)
		require.Equal(t, 2, round(t, s.open(t)).Deleted)
		require.Equal(t, []string{recordFile, plugin, other}, list(t, s.dir))
	})
	t.Run("notes what a crash left unnoted", func(t *testing.T) {
		s := newSite(t)
		s.install(t)
		e := s.open(t)
		r, err := e.store.readRecord()
		require.NoError(t, err)
		r.retire(plugin, program{digest: r.Files[plugin].Installed.SHA256})
		require.NoError(t, e.store.writeRecord(r))
		require.Equal(t, 1, round(t, s.open(t)).Applied)
		r, err = e.store.readRecord()
		require.NoError(t, err)
		require.Nil(t, r.Files[plugin].Installing)
		require.NotNil(t, r.Files[plugin].Installed)
	})
}

// sourced is the store with sources that are as what is applied.
type sourced struct{ *programs }

func (s sourced) Apply(ctx context.Context, name string, want program, seen *program) error {
	if err := os.WriteFile(filepath.Join(s.from, name), []byte(want.version), 0o755); err != nil {
		return err
	}
	return s.programs.Apply(ctx, name, s.sources(ctx)[name], seen)
}

func TestProgramsKeepTheContract(t *testing.T) {
	s := newSite(t)
	require.NoError(t, reconciletest.CheckStore(t.Context(), sourced{s.open(t).store}, reconciletest.Sample[string, program]{
		Key: plugin, First: program{version: "1", size: 1}, Second: program{version: "two", size: 3},
		Equal: func(want, seen program) bool { return want.size == seen.size && seen.standing == ours },
	}))
}

func TestNewExecutablesRefuses(t *testing.T) {
	root := ""
	if runtime.GOOS == "windows" {
		root = "C:"
	}
	for rule, tc := range map[string]struct {
		dir    string
		change func(o *ExecutablesOptions)
		want   string
	}{
		"relative directory": {"bin", func(*ExecutablesOptions) {}, `dir="bin": is not an absolute path`},
		"no names":           {root + "/bin", func(o *ExecutablesOptions) { o.Names = nil }, `names=null: is empty`},
		"path as a name":     {root + "/bin", func(o *ExecutablesOptions) { o.Names = []string{"../x"} }, `names="../x": is no plain file name`},
		"relative source":    {root + "/bin", func(o *ExecutablesOptions) { o.From = "from" }, `from="from": is not the absolute path of another directory`},
		"source as target":   {root + "/bin", func(o *ExecutablesOptions) { o.From = root + "/bin/" }, `/bin/": is not the absolute path of another`},
		"owner with a slash": {root + "/bin", func(o *ExecutablesOptions) { o.Owner = "a/b" }, `owner="a/b": cannot be part of a file name`},
	} {
		t.Run(rule, func(t *testing.T) {
			o := ExecutablesOptions{From: root + "/from", Names: []string{plugin}}
			tc.change(&o)
			_, err := NewExecutables("test", tc.dir, o)
			var field *cni.FieldError
			require.ErrorAs(t, err, &field)
			require.ErrorContains(t, err, tc.want)
		})
	}
	e, err := NewExecutables("named", root+"/bin", ExecutablesOptions{From: root + "/from", Names: []string{plugin}})
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(e.store.recordName(), ".named."))
}
