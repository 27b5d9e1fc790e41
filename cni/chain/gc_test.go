package chain

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni"
)

func TestGC(t *testing.T) { both(t, testGC) }

func testGC(t *testing.T, executed bool) {
	attach := func(t *testing.T, k *kit, l *List, ids ...string) {
		t.Helper()
		for _, id := range ids {
			_, err := k.Add(t.Context(), l, Attachment{ContainerID: id, NetNS: "/run/netns/" + id, IfName: "eth0"})
			require.NoError(t, err)
		}
		k.forget()
	}
	cached := func(t *testing.T, k *kit) (ids []string) {
		t.Helper()
		all, err := k.Cached(nil)
		require.NoError(t, err)
		for _, c := range all {
			ids = append(ids, c.Network+"/"+c.ContainerID)
		}
		return ids
	}
	ids := func(calls []seen) (ids []string) {
		for _, c := range calls {
			ids = append(ids, strings.TrimSpace(c.String()+" "+c.Inv.ContainerID))
		}
		return ids
	}
	other := func(t *testing.T) *List {
		return parsed(t, `{"cniVersion":"1.1.0","name":"other","plugins":[{"type":"scripted-a"}]}`)
	}

	t.Run("stale attachments are deleted, then GC is sent", func(t *testing.T) {
		k := newKit(t, executed, map[string]script{"a": nil, "b": nil})
		l := conflist(t, "1.1.0", "a", "b")
		attach(t, k, l, "c1", "c2")
		attach(t, k, other(t), "c3")
		require.NoError(t, k.GC(t.Context(), l, []cni.Attachment{{ContainerID: "c2", IfName: "eth0"}}))
		calls := k.seen()
		require.Equal(t, []string{"DEL b c1", "DEL a c1", "GC a", "GC b"}, ids(calls))
		assert.Contains(t, calls[0].key(t, "prevResult"), `"x-b"`)
		assert.Equal(t, "/run/netns/c1", calls[0].Inv.NetNS)
		for _, c := range calls[2:] {
			assert.Empty(t, c.Inv.ContainerID+c.Inv.NetNS+c.Inv.IfName)
			assert.Equal(t, `[{"containerID":"c2","ifname":"eth0"}]`, c.key(t, "cni.dev/valid-attachments"))
			assert.Equal(t, `[{"containerID":"c2","ifname":"eth0"}]`, c.key(t, "cni.dev/attachments"))
			assert.Equal(t, k.Path, c.Inv.Path)
		}
		assert.Equal(t, []string{"net/c2", "other/c3"}, cached(t, k))
	})
	t.Run("nothing valid", func(t *testing.T) {
		k := newKit(t, executed, map[string]script{"a": nil})
		require.NoError(t, k.GC(t.Context(), conflist(t, "1.1.0", "a"), nil))
		require.Equal(t, `[]`, k.seen()[0].key(t, "cni.dev/valid-attachments"), "never null")
	})
	t.Run("errors are joined and stop nothing", func(t *testing.T) {
		k := newKit(t, executed, map[string]script{
			"a": {cni.CommandGC: {Code: 5, Msg: "gc a"}}, "b": {cni.CommandDel: {Code: 5, Msg: "del b"}, cni.CommandGC: {Code: 5, Msg: "gc b"}},
		})
		l := conflist(t, "1.1.0", "a", "b")
		attach(t, k, l, "c1", "c2")
		err := k.GC(t.Context(), l, nil)
		for _, want := range []string{"delete stale net/c1/eth0: DEL network net: plugin scripted-b (plugins[1]): del b", "delete stale net/c2/eth0", "gc a", "gc b"} {
			require.ErrorContains(t, err, want)
		}
		require.Equal(t, []string{"DEL b c1", "DEL a c1", "DEL b c2", "DEL a c2", "GC a", "GC b"}, ids(k.seen()))
		assert.Equal(t, []string{"net/c1", "net/c2"}, cached(t, k), "kept for the next time")
	})
	t.Run("before 1.1.0 only the deletions", func(t *testing.T) {
		k := newKit(t, executed, map[string]script{"a": nil})
		l := conflist(t, "1.0.0", "a")
		attach(t, k, l, "c1")
		require.NoError(t, k.GC(t.Context(), l, nil))
		require.Equal(t, []string{"DEL a c1"}, ids(k.seen()))
	})
	t.Run("disabled", func(t *testing.T) {
		k := newKit(t, executed, map[string]script{"a": nil})
		l := parsed(t, `{"cniVersion":"1.1.0","name":"net","disableGC":true,"plugins":[{"type":"scripted-a"}]}`)
		attach(t, k, l, "c1")
		require.NoError(t, k.GC(t.Context(), l, nil))
		require.Empty(t, k.seen())
		assert.Len(t, cached(t, k), 1)
	})
	t.Run("deleted as added, after the configuration changed", func(t *testing.T) {
		k := newKit(t, executed, map[string]script{"a": nil, "b": nil})
		attach(t, k, conflist(t, "1.0.0", "a"), "c1")
		require.NoError(t, k.GC(t.Context(), conflist(t, "1.1.0", "b"), nil))
		calls := k.seen()
		require.Equal(t, []string{"DEL a c1", "GC b"}, ids(calls))
		assert.Equal(t, `"1.0.0"`, calls[0].key(t, "cniVersion"))
	})
	t.Run("a namespace that may be another's is left out", func(t *testing.T) {
		k := newKit(t, executed, map[string]script{"a": nil})
		l := conflist(t, "1.1.0", "a")
		for id, netns := range map[string]string{"c1": "/run/netns/x", "c2": "/run/netns/y", "c3": "/proc/4711/ns/net"} {
			_, err := k.Add(t.Context(), l, Attachment{ContainerID: id, NetNS: netns, IfName: "eth0"})
			require.NoError(t, err)
		}
		_, err := k.Add(t.Context(), other(t), Attachment{ContainerID: "new", NetNS: "/run/netns/x", IfName: "eth0"})
		require.NoError(t, err)
		k.forget()
		require.NoError(t, k.GC(t.Context(), l, nil))
		calls := k.seen()
		require.Equal(t, []string{"DEL a c1", "DEL a c2", "DEL a c3", "GC a"}, ids(calls))
		assert.Empty(t, calls[0].Inv.NetNS)
		assert.Equal(t, "/run/netns/y", calls[1].Inv.NetNS)
		assert.Empty(t, calls[2].Inv.NetNS)
	})
	t.Run("damaged files are deleted by name", func(t *testing.T) {
		k := newKit(t, executed, map[string]script{"a": nil})
		l := conflist(t, "1.1.0", "a")
		attach(t, k, l, "c1", "c2")
		for _, id := range []string{"c1", "c2"} {
			require.NoError(t, os.Truncate(k.cache().path(key{"net", id, "eth0"}), 10))
		}
		require.NoError(t, k.GC(t.Context(), l, []cni.Attachment{{ContainerID: "c2", IfName: "eth0"}}))
		require.Equal(t, []string{"DEL a c1", "GC a"}, ids(k.seen()))
		assert.Equal(t, []string{"net/c2"}, cached(t, k))
	})
}

func TestGCOfTheCacheItself(t *testing.T) {
	k := newKit(t, false, map[string]script{"a": nil})
	l := conflist(t, "1.1.0", "a")
	var log strings.Builder
	k.Log = slog.New(slog.NewTextHandler(&log, nil))
	dir := k.cache().dir
	require.NoError(t, os.MkdirAll(dir, 0o700))
	hashed := strings.Repeat("ab", 32) + ".json"
	for name, age := range map[string]time.Duration{".old.tmp": 2 * time.Hour, ".young.tmp": time.Minute, "foreign": 2 * time.Hour, "foreign.json": 2 * time.Hour, hashed: time.Hour} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
		then := time.Now().Add(-age)
		require.NoError(t, os.Chtimes(filepath.Join(dir, name), then, then))
	}
	require.NoError(t, k.GC(t.Context(), l, nil))
	assert.NoFileExists(t, filepath.Join(dir, ".old.tmp"), "of a writer that was killed")
	assert.FileExists(t, filepath.Join(dir, ".young.tmp"), "of a writer at work")
	assert.FileExists(t, filepath.Join(dir, "foreign"))
	assert.FileExists(t, filepath.Join(dir, "foreign.json"))
	assert.Contains(t, log.String(), hashed, "a damaged file that tells no attachment is reported")

	require.NoError(t, os.RemoveAll(k.CacheDir))
	require.NoError(t, os.MkdirAll(k.CacheDir, 0o700))
	require.NoError(t, os.WriteFile(dir, nil, 0o600))
	k.forget()
	require.ErrorContains(t, k.GC(t.Context(), l, nil), "list cache", "an unreadable cache is no success")
	assert.Equal(t, []string{"GC a"}, k.order(), "nor does it keep the plugins from theirs")
}
