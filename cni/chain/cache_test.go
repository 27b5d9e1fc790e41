package chain

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni"
)

func TestKeyFileNames(t *testing.T) {
	long := strings.Repeat("x", 300)
	keys := []key{
		{"a-b", "c", "eth0"}, {"a", "b-c", "eth0"}, {"a", "b", "c-eth0"}, {"a", "b", "@"}, {"a", "b", "%40"}, {"a", "b", "é"}, {"a", "b", "+"}, {"a", "b", "x@y@z"},
		{"a", "b", ".json"}, {long, "c", "eth0"}, {long + "-c", "d", "eth0"}, {long, "c-d", "eth0"}, {long, "c", "eth1"}, {"a", long, "eth0"},
	}
	found := map[string]key{}
	for _, k := range keys {
		name := k.fileName()
		assert.Less(t, len(name), 220, "file systems allow 255 bytes, temporary files need some")
		assert.False(t, strings.HasPrefix(name, "."))
		assert.Equal(t, name, filepath.Base(name))
		assert.Empty(t, found[name], "%v and %v", k, found[name])
		found[name] = k
		back, ours := parseFileName(name)
		assert.True(t, ours, name)
		if len(k.network)+len(k.containerID) < 100 {
			assert.Equal(t, k, back)
		} else {
			assert.Zero(t, back)
		}
	}
	for _, name := range []string{"", ".json", "a.json", "a@b.json", "a@b@c", "a@b@c@d.json", "@b@c.json", "a@..@c.json", "a@b@%zz.json", "a@b@%65th0.json", "net-c1-eth0", ".a@b@c.json"} {
		_, ours := parseFileName(name)
		assert.False(t, ours, name)
	}
}

func TestCacheFile(t *testing.T) {
	l := abc(t, "1.1.0")
	k := added(t, false, l, map[string]script{"a": nil, "b": nil, "c": nil})
	for _, dir := range []string{k.CacheDir, k.cache().dir} {
		info, err := os.Stat(dir)
		require.NoError(t, err)
		assert.Equal(t, os.FileMode(0o700), info.Mode().Perm())
	}
	path := filepath.Join(k.CacheDir, "attachments", "net@c1@eth0.json")
	file, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), file.Mode())
	others, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	assert.Len(t, others, 1, "no temporary file stays")
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	golden(t, "cache.json", data)
}

func TestCached(t *testing.T) {
	l := abc(t, "1.1.0")
	k := added(t, false, l, map[string]script{"a": nil, "b": nil, "c": nil})
	other := parsed(t, `{"cniVersion":"1.1.0","name":"other","plugins":[{"type":"scripted-a"}]}`)
	_, err := k.Add(t.Context(), other, Attachment{ContainerID: strings.Repeat("d", 250), NetNS: "/n", IfName: "eth0"})
	require.NoError(t, err)

	all, err := k.Cached(nil)
	require.NoError(t, err)
	require.Len(t, all, 2)
	mine, err := k.Cached(l)
	require.NoError(t, err)
	require.Len(t, mine, 1)
	got := mine[0]
	require.NoError(t, got.Err)
	assert.Equal(t, "net", got.Network)
	assert.Equal(t, "c1", got.ContainerID)
	assert.Equal(t, "/run/netns/c1", got.NetNS)
	assert.Equal(t, cni.Args{{Key: "K", Value: "v"}}, got.Args)
	assert.Equal(t, map[string]any{"mac": json.RawMessage(`"02:00:00:00:00:01"`)}, got.Capabilities)
	assert.Equal(t, "10.0.0.2/24", got.Result.IPs[0].Address.String())
	assert.Equal(t, "12345678901234567890.0", string(got.Result.Extra["x-c"]))
	assert.Equal(t, l, parsed(t, string(got.Config)))
	require.NoError(t, k.Check(t.Context(), l, got.Attachment), "what is listed can be used")

	hashed, err := k.Cached(other)
	require.NoError(t, err)
	require.Len(t, hashed, 1)
	assert.Equal(t, strings.Repeat("d", 250), hashed[0].ContainerID)

	none, err := Runner{CacheDir: t.TempDir()}.Cached(nil)
	require.NoError(t, err)
	assert.Empty(t, none)
}

// TestCacheSurvivesKill kills writers at arbitrary moments: the file is always the old or the new one, whole.
func TestCacheSurvivesKill(t *testing.T) {
	if dir := os.Getenv("CHAIN_TEST_WRITE"); dir != "" {
		c, k := cache{dir}, key{"net", "c1", "eth0"}
		for i := 0; ; i++ {
			result := fmt.Sprintf(`{"cniVersion":"1.1.0","n":%d,"pad":%q}`, i, strings.Repeat("x", i%20000))
			if err := c.save(k, record{CNIVersion: "1.1.0", Config: json.RawMessage("{}"), Result: json.RawMessage(result)}); err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				fmt.Println("written")
			}
		}
	}
	c := cache{t.TempDir()}
	for range 10 {
		writer := exec.Command(os.Args[0], "-test.run=^TestCacheSurvivesKill$")
		writer.Env = append(os.Environ(), "CHAIN_TEST_WRITE="+c.dir)
		out, err := writer.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, writer.Start())
		_, err = out.Read(make([]byte, 1))
		require.NoError(t, err)
		for range 50 {
			_, err := c.load(key{"net", "c1", "eth0"})
			require.NoError(t, err, "while it is written")
		}
		require.NoError(t, writer.Process.Kill())
		_ = writer.Wait()
		r, err := c.load(key{"net", "c1", "eth0"})
		require.NoError(t, err)
		_, err = r.result("1.1.0")
		require.NoError(t, err)
	}
}
