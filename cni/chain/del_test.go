package chain

import (
	"bytes"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni"
)

// added is a kit with one attachment, made with arguments and capabilities.
func added(t *testing.T, executed bool, l *List, plugins map[string]script) *kit {
	t.Helper()
	k := newKit(t, executed, plugins)
	a := pod()
	a.Args = cni.Args{{Key: "K", Value: "v"}}
	a.Capabilities = map[string]any{"mac": "02:00:00:00:00:01"}
	_, err := k.Add(t.Context(), l, a)
	require.NoError(t, err)
	k.forget()
	return k
}

func abc(t *testing.T, version string) *List {
	return parsed(t, `{"cniVersion":"`+version+`","name":"net","plugins":[
		{"type":"scripted-a","capabilities":{"mac":true}},{"type":"scripted-b"},{"type":"scripted-c"}]}`)
}

func TestDel(t *testing.T) { both(t, testDel) }

func testDel(t *testing.T, executed bool) {
	fine := map[string]script{"a": nil, "b": nil, "c": nil}
	failing := map[string]script{"a": {cni.CommandDel: {Code: 5, Msg: "a is stuck"}}, "b": {cni.CommandDel: {Code: 5, Msg: "b is stuck"}}, "c": nil}

	t.Run("order/backward with the final result", func(t *testing.T) {
		l := abc(t, "1.1.0")
		k := added(t, executed, l, fine)
		require.NoError(t, k.Del(t.Context(), l, pod()))
		calls := k.seen()
		require.Equal(t, []string{"DEL c", "DEL b", "DEL a"}, k.order())
		for _, c := range calls {
			assert.Contains(t, c.key(t, "prevResult"), `"x-c":12345678901234567890.0`)
			assert.Equal(t, "/run/netns/c1", c.Inv.NetNS)
		}
		cached, err := k.Cached(l)
		require.NoError(t, err)
		assert.Empty(t, cached, "forgotten after success")
	})
	t.Run("parameters/from the cache when left out", func(t *testing.T) {
		l := abc(t, "1.1.0")
		k := added(t, executed, l, fine)
		require.NoError(t, k.Del(t.Context(), l, Attachment{ContainerID: "c1", IfName: "eth0"}))
		last := k.seen()[2]
		assert.Equal(t, "/run/netns/c1", last.Inv.NetNS)
		assert.Equal(t, "K=v", last.Inv.Args)
		assert.Equal(t, `{"mac":"02:00:00:00:00:01"}`, last.key(t, "runtimeConfig"))
	})
	t.Run("parameters/the caller's when given", func(t *testing.T) {
		l := abc(t, "1.1.0")
		k := added(t, executed, l, fine)
		a := Attachment{ContainerID: "c1", IfName: "eth0", NetNS: "/other", Args: cni.Args{}, Capabilities: map[string]any{}}
		require.NoError(t, k.Del(t.Context(), l, a))
		last := k.seen()[2]
		assert.Equal(t, "/other", last.Inv.NetNS)
		assert.Empty(t, last.Inv.Args)
		assert.Equal(t, `{}`, last.key(t, "runtimeConfig"))
	})
	t.Run("error/halts and keeps the cache", func(t *testing.T) {
		l := abc(t, "1.1.0")
		k := added(t, executed, l, failing)
		err := k.Del(t.Context(), l, pod())
		require.EqualError(t, err, "DEL network net: plugin scripted-b (plugins[1]): b is stuck")
		require.Equal(t, []string{"DEL c", "DEL b"}, k.order())
		cached, err := k.Cached(l)
		require.NoError(t, err)
		assert.Len(t, cached, 1, "kept for the next attempt")
	})
	t.Run("error/best effort goes on and keeps the cache", func(t *testing.T) {
		l := abc(t, "1.1.0")
		k := added(t, executed, l, failing)
		k.BestEffortDel = true
		err := k.Del(t.Context(), l, pod())
		require.ErrorContains(t, err, "b is stuck")
		require.ErrorContains(t, err, "a is stuck")
		var theirs *cni.Error
		require.ErrorAs(t, err, &theirs)
		require.Equal(t, []string{"DEL c", "DEL b", "DEL a"}, k.order())
		cached, err := k.Cached(l)
		require.NoError(t, err)
		assert.Len(t, cached, 1)
	})
	t.Run("absent/runs without a result, twice", func(t *testing.T) {
		l := abc(t, "1.1.0")
		k := newKit(t, executed, fine)
		require.NoError(t, k.Del(t.Context(), l, Attachment{ContainerID: "c1", IfName: "eth0"}))
		require.NoError(t, k.Del(t.Context(), l, Attachment{ContainerID: "c1", IfName: "eth0"}))
		calls := k.seen()
		require.Len(t, calls, 6)
		for _, c := range calls {
			assert.Empty(t, c.key(t, "prevResult"))
			assert.Empty(t, c.Inv.NetNS)
		}
	})
	t.Run("version/no result before 0.4.0", func(t *testing.T) {
		l := abc(t, "0.3.1")
		k := added(t, executed, l, fine)
		require.NoError(t, k.Del(t.Context(), l, pod()))
		for _, c := range k.seen() {
			assert.Empty(t, c.key(t, "prevResult"))
		}
	})
	t.Run("version/result converted when the list changed", func(t *testing.T) {
		k := added(t, executed, abc(t, "0.4.0"), fine)
		require.NoError(t, k.Del(t.Context(), abc(t, "1.1.0"), pod()))
		assert.JSONEq(t, `{"cniVersion":"1.1.0","ips":[{"address":"10.0.0.2/24"}],"x-a":12345678901234567890.0,"x-b":12345678901234567890.0,"x-c":12345678901234567890.0}`,
			k.seen()[0].key(t, "prevResult"))
	})
}

func TestDelNamespaceBelowProc(t *testing.T) {
	l := abc(t, "1.1.0")
	k := newKit(t, false, map[string]script{"a": nil, "b": nil, "c": nil})
	a := pod()
	a.NetNS = "/proc/4711/ns/net"
	_, err := k.Add(t.Context(), l, a)
	require.NoError(t, err)
	k.forget()
	require.NoError(t, k.Del(t.Context(), l, Attachment{ContainerID: "c1", IfName: "eth0"}))
	assert.Empty(t, k.seen()[0].Inv.NetNS, "the number may be another process's by now")

	_, err = k.Add(t.Context(), l, a)
	require.NoError(t, err)
	k.forget()
	require.NoError(t, k.Check(t.Context(), l, Attachment{ContainerID: "c1", IfName: "eth0"}))
	assert.Equal(t, a.NetNS, k.seen()[0].Inv.NetNS)
	k.forget()
	require.NoError(t, k.Del(t.Context(), l, a))
	assert.Equal(t, a.NetNS, k.seen()[0].Inv.NetNS, "the caller knows")
}

func TestDelNamespaceOfAnother(t *testing.T) {
	l := abc(t, "1.1.0")
	k := newKit(t, false, map[string]script{"a": nil, "b": nil, "c": nil})
	old := pod()
	_, err := k.Add(t.Context(), l, old)
	require.NoError(t, err)
	again := old
	again.IfName = "eth1"
	_, err = k.Add(t.Context(), l, again)
	require.NoError(t, err)
	k.forget()
	require.NoError(t, k.Del(t.Context(), l, Attachment{ContainerID: "c1", IfName: "eth1"}))
	assert.Equal(t, old.NetNS, k.seen()[0].Inv.NetNS, "the same container's other interface is no reason")

	next := Attachment{ContainerID: "c2", NetNS: old.NetNS, IfName: "eth0"}
	_, err = k.Add(t.Context(), l, next)
	require.NoError(t, err)
	k.forget()
	require.NoError(t, k.Del(t.Context(), l, Attachment{ContainerID: "c1", IfName: "eth0"}))
	assert.Empty(t, k.seen()[0].Inv.NetNS, "it is the namespace of the other container by now")

	_, err = k.Add(t.Context(), l, old)
	require.NoError(t, err)
	k.forget()
	require.NoError(t, k.Del(t.Context(), l, next))
	assert.Equal(t, next.NetNS, k.seen()[0].Inv.NetNS, "the caller knows")
}

// TestDamagedCache tears the cache file at every length and replaces it by other things a crash or a person may leave.
func TestDamagedCache(t *testing.T) {
	l := abc(t, "1.1.0")
	plugins := map[string]script{"a": nil, "b": nil, "c": nil}
	k := added(t, false, l, plugins)
	path := k.cache().path(key{"net", "c1", "eth0"})
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	broken := map[string][]byte{
		"zeroes": make([]byte, 4096), "null": []byte("null"), "array": []byte("[]"), "empty object": []byte("{}"), "whole and more": slices.Concat(whole, whole),
		"another's":      []byte(`{"version":1,"network":"net","containerID":"c2","ifName":"eth0","cniVersion":"1.1.0","config":{},"result":{}}`),
		"no result":      []byte(`{"version":1,"network":"net","containerID":"c1","ifName":"eth0","cniVersion":"1.1.0","config":{}}`),
		"a bad result":   []byte(`{"version":1,"network":"net","containerID":"c1","ifName":"eth0","cniVersion":"1.1.0","config":{},"result":{"ips":[null]}}`),
		"a newer format": bytes.Replace(whole, []byte(`{"version":1,`), []byte(`{"version":2,`), 1),
	}
	for n := 0; n < len(whole); n += 37 {
		broken["torn/"+string(whole[:n])] = whole[:n]
	}
	for name, content := range broken {
		require.NoError(t, os.WriteFile(path, content, 0o600))
		k.forget()
		require.ErrorIs(t, k.Check(t.Context(), l, pod()), ErrDamaged, name)
		require.Empty(t, k.order(), name)
		cached, err := k.Cached(l)
		require.NoError(t, err)
		require.Len(t, cached, 1, name)
		require.ErrorIs(t, cached[0].Err, ErrDamaged, name)
		require.Equal(t, "c1", cached[0].ContainerID, name)
		require.NoError(t, k.Del(t.Context(), l, pod()), name)
		require.Empty(t, k.seen()[0].key(t, "prevResult"), name)
		require.Equal(t, []string{"DEL c", "DEL b", "DEL a"}, k.order(), name)
		require.NoFileExists(t, path, name)
	}
}

func TestCacheUnreadable(t *testing.T) {
	l := abc(t, "1.1.0")
	k := newKit(t, false, map[string]script{"a": nil, "b": nil, "c": nil})
	// A directory in place of the file cannot be read, nor removed as long as it is not empty.
	require.NoError(t, os.MkdirAll(k.cache().path(key{"net", "c1", "eth0"})+"/x", 0o700))
	require.ErrorContains(t, k.Check(t.Context(), l, pod()), "read cache of net/c1/eth0")
	_, err := k.Add(t.Context(), l, pod())
	require.ErrorContains(t, err, "read cache of net/c1/eth0")
	require.Empty(t, k.order())
	require.ErrorContains(t, k.Del(t.Context(), l, pod()), "remove cache file of net/c1/eth0")
	require.Equal(t, []string{"DEL c", "DEL b", "DEL a"}, k.order(), "the plugins are run all the same")
}
