package chain

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni"
)

func TestAdd(t *testing.T) { both(t, testAdd) }

func testAdd(t *testing.T, executed bool) {
	k := newKit(t, executed, map[string]script{"a": nil, "b": nil, "c": nil})
	l := parsed(t, `{"cniVersion":"1.1.0","name":"net","plugins":[
		{"type":"scripted-a","capabilities":{"mac":true}},{"type":"scripted-b"},{"type":"scripted-c","capabilities":{"mac":true,"ips":true}}]}`)
	a := pod()
	a.Args = cni.Args{{Key: "K8S_POD_NAME", Value: "x=y"}, {Key: "B", Value: ""}}
	a.Capabilities = map[string]any{"mac": "02:00:00:00:00:01", "unwanted": 1}
	result, err := k.Add(t.Context(), l, a)
	require.NoError(t, err)
	assert.Equal(t, "1.1.0", result.CNIVersion)
	assert.Equal(t, "10.0.0.2/24", result.IPs[0].Address.String())

	calls := k.seen()
	require.Equal(t, []string{"ADD a", "ADD b", "ADD c"}, k.order())
	for _, c := range calls {
		assert.Equal(t, "c1", c.Inv.ContainerID)
		assert.Equal(t, "/run/netns/c1", c.Inv.NetNS)
		assert.Equal(t, "eth0", c.Inv.IfName)
		assert.Equal(t, "K8S_POD_NAME=x=y;B=", c.Inv.Args)
		assert.Equal(t, k.Path, c.Inv.Path)
		assert.Equal(t, `"net"`, c.key(t, "name"))
		assert.Equal(t, `"1.1.0"`, c.key(t, "cniVersion"))
	}
	assert.Equal(t, `{"mac":"02:00:00:00:00:01"}`, calls[0].key(t, "runtimeConfig"))
	assert.Equal(t, `{}`, calls[1].key(t, "runtimeConfig"))
	assert.Equal(t, `{"mac":"02:00:00:00:00:01"}`, calls[2].key(t, "runtimeConfig"))
	assert.Empty(t, calls[0].key(t, "prevResult"))
	const first = `"cniVersion":"1.1.0","ips":[{"address":"10.0.0.2/24"}],"x-a":12345678901234567890.0`
	assert.Equal(t, `{`+first+`}`, calls[1].key(t, "prevResult"), "the text of the plugin before, keys that nobody knows included")
	assert.Equal(t, `{`+first+`,"x-b":12345678901234567890.0}`, calls[2].key(t, "prevResult"))
	assert.Equal(t, "12345678901234567890.0", string(result.Extra["x-c"]))
}

func TestAddResultVersions(t *testing.T) {
	for name, test := range map[string]struct{ printed, want string }{
		"older is converted":    {`{"cniVersion":"0.3.1","ips":[{"version":"4","address":"10.0.0.2/24"}],"x":1.50}`, `{"cniVersion":"1.1.0","ips":[{"address":"10.0.0.2/24"}],"x":1.50}`},
		"none is filled in":     {`{ "ips": [] , "x": 1.50 }`, `{"ips":[],"x":1.50,"cniVersion":"1.1.0"}`},
		"the same is untouched": {`{"x":1.50,"cniVersion":"1.1.0","dns":{},"ips":[{"address":"10.0.0.2/24","x":1}]}`, `{"x":1.50,"cniVersion":"1.1.0","dns":{},"ips":[{"address":"10.0.0.2/24","x":1}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKit(t, false, map[string]script{"a": {cni.CommandAdd: {Print: test.printed}}, "b": nil})
			_, err := k.Add(t.Context(), conflist(t, "1.1.0", "a", "b"), pod())
			require.NoError(t, err)
			assert.JSONEq(t, test.want, k.seen()[1].key(t, "prevResult"))
			assert.Contains(t, k.seen()[1].key(t, "prevResult"), "1.50", "numbers keep their spelling")
		})
	}
}

func TestAddFails(t *testing.T) { both(t, testAddFails) }

func testAddFails(t *testing.T, executed bool) {
	l := conflist(t, "1.1.0", "a", "b", "c")
	failing := reply{Code: cni.CodeTryAgain, Msg: "no addresses"}
	check := func(t *testing.T, k *kit, err error) {
		t.Helper()
		var plugin *PluginError
		require.ErrorAs(t, err, &plugin)
		assert.Equal(t, cni.CommandAdd, plugin.Command)
		assert.Equal(t, "scripted-b", plugin.Plugin)
		assert.Equal(t, 1, plugin.Index)
		assert.Equal(t, "net", plugin.Network)
		cached, listErr := k.Cached(nil)
		require.NoError(t, listErr)
		assert.Empty(t, cached)
	}

	t.Run("rollback/from the failed plugin back", func(t *testing.T) {
		k := newKit(t, executed, map[string]script{"a": nil, "b": {cni.CommandAdd: failing}, "c": nil})
		_, err := k.Add(t.Context(), l, pod())
		check(t, k, err)
		require.ErrorContains(t, err, "ADD network net: plugin scripted-b (plugins[1]): no addresses")
		var theirs *cni.Error
		require.ErrorAs(t, err, &theirs)
		assert.Equal(t, cni.CodeTryAgain, theirs.Code)
		var rollback *RollbackError
		require.NotErrorAs(t, err, &rollback)
		calls := k.seen()
		require.Equal(t, []string{"ADD a", "ADD b", "DEL b", "DEL a"}, k.order())
		for _, c := range calls[2:] {
			assert.Contains(t, c.key(t, "prevResult"), `"x-a"`, "the last good result")
			assert.Equal(t, "/run/netns/c1", c.Inv.NetNS)
		}
	})
	t.Run("rollback/goes on and says what remains", func(t *testing.T) {
		k := newKit(t, executed, map[string]script{"a": nil, "b": {cni.CommandAdd: failing, cni.CommandDel: {Code: 5, Msg: "stuck"}}, "c": nil})
		_, err := k.Add(t.Context(), l, pod())
		check(t, k, err)
		require.Equal(t, []string{"ADD a", "ADD b", "DEL b", "DEL a"}, k.order())
		var rollback *RollbackError
		require.ErrorAs(t, err, &rollback)
		require.Len(t, rollback.Remain, 1)
		assert.Equal(t, "scripted-b", rollback.Remain[0].Plugin)
		require.ErrorContains(t, err, "no addresses; the rollback could not undo scripted-b (plugins[1]: stuck); what they made may remain until a DEL")
		var theirs *cni.Error
		require.ErrorAs(t, err, &theirs)
		assert.Equal(t, "no addresses", theirs.Msg, "the first error is the cause")
	})
	t.Run("result/unusable", func(t *testing.T) {
		for _, printed := range []string{"garbage", `{"ips":[null]}`, `null`, `{"cniVersion":"1.1.0"} {}`, ` `, `{"ips":[{"address":"10.0.0.1/24","interface":3}]}`} {
			k := newKit(t, executed, map[string]script{"a": nil, "b": {cni.CommandAdd: {Print: printed}}, "c": nil})
			_, err := k.Add(t.Context(), l, pod())
			check(t, k, err)
			require.Equal(t, []string{"ADD a", "ADD b", "DEL b", "DEL a"}, k.order(), printed)
		}
	})
	t.Run("plugin/not installed", func(t *testing.T) {
		k := newKit(t, executed, map[string]script{"a": nil, "c": nil})
		_, err := k.Add(t.Context(), l, pod())
		check(t, k, err)
		require.ErrorIs(t, err, cni.ErrPluginNotFound)
		var rollback *RollbackError
		require.NotErrorAs(t, err, &rollback, "what is not there made nothing")
		require.Equal(t, []string{"ADD a", "DEL a"}, k.order())
	})
	t.Run("plugin/misses its delegate", func(t *testing.T) {
		missing := reply{Code: cni.CodeInvalidConfig, Msg: cni.ErrPluginNotFound.Error(), Err: cni.ErrPluginNotFound}
		k := newKit(t, executed, map[string]script{"a": nil, "b": {cni.CommandAdd: missing, cni.CommandDel: missing}, "c": nil})
		_, err := k.Add(t.Context(), l, pod())
		check(t, k, err)
		var rollback *RollbackError
		require.ErrorAs(t, err, &rollback, "it ran and may have made something")
		require.Len(t, rollback.Remain, 1)
		assert.Equal(t, "scripted-b", rollback.Remain[0].Plugin)
	})
	t.Run("del/works afterwards", func(t *testing.T) {
		k := newKit(t, executed, map[string]script{"a": nil, "b": {cni.CommandAdd: failing}, "c": nil})
		_, err := k.Add(t.Context(), l, pod())
		require.Error(t, err)
		k.forget()
		require.NoError(t, k.Del(t.Context(), l, pod()))
		require.Equal(t, []string{"DEL c", "DEL b", "DEL a"}, k.order())
	})
}

func TestAddCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	k := newKit(t, false, map[string]script{"a": nil, "b": nil})
	k.Executor = hook{k.Executor, func(ctx context.Context, inv cni.Invocation) {
		if inv.Command == cni.CommandAdd {
			cancel()
			return
		}
		assert.NoError(t, ctx.Err(), "rollback has a context of its own")
	}}
	_, err := k.Add(ctx, conflist(t, "1.1.0", "a", "b"), pod())
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "plugin scripted-b (plugins[1]): not started")
	require.Equal(t, []string{"ADD a", "DEL b", "DEL a"}, k.order())
}

// hook runs a function before each plugin.
type hook struct {
	cni.Executor
	before func(ctx context.Context, inv cni.Invocation)
}

func (h hook) Execute(ctx context.Context, plugin string, inv cni.Invocation) ([]byte, error) {
	h.before(ctx, inv)
	return h.Executor.Execute(ctx, plugin, inv)
}

func TestAddTwice(t *testing.T) {
	k := newKit(t, false, map[string]script{"a": nil})
	l := conflist(t, "1.1.0", "a")
	_, err := k.Add(t.Context(), l, pod())
	require.NoError(t, err)
	k.forget()
	_, err = k.Add(t.Context(), l, pod())
	require.ErrorIs(t, err, ErrAttached)
	require.ErrorContains(t, err, "net/c1/eth0: already attached; DEL it first")
	assert.Empty(t, k.order(), "a rollback would tear down the first")

	second := pod()
	second.IfName = "net1"
	_, err = k.Add(t.Context(), l, second)
	require.NoError(t, err, "another interface of the container")

	require.NoError(t, os.WriteFile(k.cache().path(key{"net", "c1", "eth0"}), nil, 0o600))
	_, err = k.Add(t.Context(), l, pod())
	require.ErrorIs(t, err, ErrAttached)
	require.ErrorIs(t, err, ErrDamaged)
	require.NoError(t, k.Del(t.Context(), l, pod()))
	_, err = k.Add(t.Context(), l, pod())
	require.NoError(t, err)
}

func TestAddCannotKeepResult(t *testing.T) {
	l := conflist(t, "1.1.0", "a", "b")
	t.Run("known before anything runs", func(t *testing.T) {
		k := newKit(t, false, map[string]script{"a": nil, "b": nil})
		require.NoError(t, os.WriteFile(k.CacheDir, nil, 0o600))
		_, err := k.Add(t.Context(), l, pod())
		require.ErrorContains(t, err, "make cache directory")
		assert.Empty(t, k.order())
	})
	t.Run("found out at the end", func(t *testing.T) {
		k := newKit(t, false, map[string]script{"a": nil, "b": nil})
		k.Executor = hook{k.Executor, func(_ context.Context, inv cni.Invocation) {
			if inv.Command == cni.CommandAdd {
				require.NoError(t, os.RemoveAll(k.CacheDir))
			}
		}}
		_, err := k.Add(t.Context(), l, pod())
		require.ErrorIs(t, err, os.ErrNotExist)
		require.ErrorContains(t, err, "write cache file of net/c1/eth0")
		calls := k.seen()
		require.Equal(t, []string{"ADD a", "ADD b", "DEL b", "DEL a"}, k.order(), "everything is undone")
		assert.Contains(t, calls[2].key(t, "prevResult"), `"x-b"`)
	})
	t.Run("written but not known to be on disk", func(t *testing.T) {
		k := newKit(t, false, map[string]script{"a": nil, "b": nil})
		_, err := k.Add(t.Context(), l, pod())
		require.NoError(t, err)
		c, err := newCall(l, pod())
		require.NoError(t, err)
		cause := errors.New("cannot sync")
		require.Equal(t, cause, k.run(l, c).rollback(t.Context(), 2, nil, cause))
		cached, err := k.Cached(l)
		require.NoError(t, err)
		assert.Empty(t, cached)
	})
	t.Run("cannot be renamed", func(t *testing.T) {
		k := newKit(t, false, map[string]script{"a": nil, "b": nil})
		k.Executor = hook{k.Executor, func(_ context.Context, inv cni.Invocation) {
			if inv.Command == cni.CommandAdd {
				require.NoError(t, os.MkdirAll(k.cache().path(key{"net", "c1", "eth0"}), 0o700))
			}
		}}
		_, err := k.Add(t.Context(), l, pod())
		require.Error(t, err)
		require.Equal(t, []string{"ADD a", "ADD b", "DEL b", "DEL a"}, k.order())
		files, err := filepath.Glob(filepath.Join(k.cache().dir, temporaryPattern))
		require.NoError(t, err)
		assert.Empty(t, files, "no temporary file stays")
	})
}
