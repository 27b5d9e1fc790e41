package install

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/internal/testenv"
)

func TestDigester(t *testing.T) {
	const hello = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
	path := filepath.Join(t.TempDir(), "file")
	read := func(t *testing.T, d *digester) program {
		t.Helper()
		info, err := os.Lstat(path)
		require.NoError(t, err)
		p, err := d.read(t.Context(), path, info)
		require.NoError(t, err)
		return p
	}
	later := func() *digester { // at which the files of the test are old
		d := newDigester()
		d.now = func() time.Time { return time.Now().Add(time.Minute) }
		return d
	}
	t.Run("by content", func(t *testing.T) {
		put(t, path, "hello", 0o640)
		p := read(t, newDigester())
		require.Equal(t, program{digest: hello, size: 5, mode: 0o640}, p)
	})
	t.Run("a file that did not change is not read again", func(t *testing.T) {
		if runtime.GOOS != "linux" {
			return // every file is
		}
		put(t, path, "hello", 0o640)
		d := later()
		read(t, d)
		known := d.known[path]
		known.digest = "remembered"
		d.known[path] = known
		require.Equal(t, "remembered", read(t, d).digest)
	})
	t.Run("one that did is, whatever its times and size claim", func(t *testing.T) {
		put(t, path, "jello", 0o640)
		info, err := os.Stat(path)
		require.NoError(t, err)
		d := later()
		require.NotEqual(t, hello, read(t, d).digest)
		before, _ := identOf(info)
		for after := before; after == before && runtime.GOOS == "linux"; after, _ = identOf(info) { // until the kernel's clock ticks
			put(t, path, "hello", 0o640)
			require.NoError(t, os.Chtimes(path, info.ModTime(), info.ModTime()))
			info, err = os.Stat(path)
			require.NoError(t, err)
		}
		require.Equal(t, hello, read(t, d).digest)
	})
	t.Run("what changed just now is not remembered: it might change again within the same tick", func(t *testing.T) {
		put(t, path, "hello", 0o640)
		info, err := os.Stat(path)
		require.NoError(t, err)
		d := newDigester()
		id, _ := identOf(info)
		d.now = func() time.Time { return id.changed().Add(settling) }
		read(t, d)
		require.Empty(t, d.known)
	})
	t.Run("ends with its context", func(t *testing.T) {
		info, err := os.Lstat(path)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = newDigester().read(ctx, path, info)
		require.ErrorIs(t, err, context.Canceled)
	})
}

func TestVersion(t *testing.T) {
	const revision = "0123456789abcdef0123456789abcdef01234567"
	for want, tc := range map[string]struct{ version, revision, modified string }{
		"v1.2.3":                   {"v1.2.3", "", ""},
		"devel":                    {"(devel)", "", ""},
		"devel 0123456789ab":       {"(devel)", revision, "false"},
		"devel 0123456789ab+dirty": {"(devel)", revision, "true"},
		"v0.0.0-20260101000000-0123456789ab+dirty": {"v0.0.0-20260101000000-0123456789ab+dirty", revision, "true"},
		"v1.2.3 0123456789ab+dirty":                {"v1.2.3+dirty", revision, "true"},
		"0123456789ab":                             {"", revision, "false"},
		"":                                         {"", "", ""},
	} {
		info := &debug.BuildInfo{Main: debug.Module{Version: tc.version}}
		if tc.revision != "" {
			info.Settings = []debug.BuildSetting{{Key: "vcs.revision", Value: tc.revision}, {Key: "vcs.modified", Value: tc.modified}}
		}
		require.Equal(t, want, describe(info))
	}
}

func TestVersionOfAProgramIsRecordedAndPlanned(t *testing.T) {
	s := newSite(t)
	content, err := os.ReadFile(testenv.Build(t, "github.com/cnikit/cnikit/examples/bridge-vxlan/ipam"))
	require.NoError(t, err)
	put(t, filepath.Join(s.from, plugin), string(content), 0o755)
	wanted := s.open(t).store.sources(t.Context())[plugin]
	require.NotEmpty(t, wanted.version)
	require.Contains(t, wanted.String(), ", "+wanted.version)
	s.install(t)
	r, err := s.open(t).store.readRecord()
	require.NoError(t, err)
	require.Equal(t, wanted.version, r.Files[plugin].Installed.Version)
	require.Empty(t, r.Files[other].Installed.Version, "a script has none")
}
