package chain

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cnikit/cnikit/cni"
)

func TestCheck(t *testing.T) { both(t, testCheck) }

func testCheck(t *testing.T, executed bool) {
	fine := map[string]script{"a": nil, "b": nil, "c": nil}
	t.Run("order/forward with the final result and the ADD's parameters", func(t *testing.T) {
		l := abc(t, "1.1.0")
		k := added(t, executed, l, fine)
		require.NoError(t, k.Check(t.Context(), l, Attachment{ContainerID: "c1", IfName: "eth0"}))
		calls := k.seen()
		require.Equal(t, []string{"CHECK a", "CHECK b", "CHECK c"}, k.order())
		for _, c := range calls {
			assert.Contains(t, c.key(t, "prevResult"), `"x-c":12345678901234567890.0`)
			assert.Equal(t, "/run/netns/c1", c.Inv.NetNS)
			assert.Equal(t, "K=v", c.Inv.Args)
		}
		assert.Equal(t, `{"mac":"02:00:00:00:00:01"}`, calls[0].key(t, "runtimeConfig"))
	})
	t.Run("error/stops", func(t *testing.T) {
		l := abc(t, "1.1.0")
		k := added(t, executed, l, map[string]script{"a": nil, "b": {cni.CommandCheck: {Code: 100, Msg: "gone"}}, "c": nil})
		require.EqualError(t, k.Check(t.Context(), l, pod()), "CHECK network net: plugin scripted-b (plugins[1]): gone")
		require.Equal(t, []string{"CHECK a", "CHECK b"}, k.order())
	})
	t.Run("absent/never added or deleted since", func(t *testing.T) {
		l := abc(t, "1.1.0")
		k := newKit(t, executed, fine)
		require.ErrorIs(t, k.Check(t.Context(), l, pod()), ErrNotAttached)
		_, err := k.Add(t.Context(), l, pod())
		require.NoError(t, err)
		require.NoError(t, k.Del(t.Context(), l, pod()))
		k.forget()
		require.ErrorIs(t, k.Check(t.Context(), l, pod()), ErrNotAttached)
		assert.Empty(t, k.order())
	})
	t.Run("disabled/nothing runs, whatever the version", func(t *testing.T) {
		for _, version := range []string{"0.3.1", "1.1.0"} {
			l := parsed(t, `{"cniVersion":"`+version+`","name":"net","disableCheck":true,"plugins":[{"type":"scripted-a"}]}`)
			k := newKit(t, executed, fine)
			require.NoError(t, k.Check(t.Context(), l, pod()))
			assert.Empty(t, k.order())
		}
	})
	t.Run("version/none before 0.4.0", func(t *testing.T) {
		l := abc(t, "0.3.1")
		k := added(t, executed, l, fine)
		err := k.Check(t.Context(), l, pod())
		require.ErrorIs(t, err, errors.ErrUnsupported)
		require.ErrorContains(t, err, "version 0.3.1 has no CHECK")
		assert.Empty(t, k.order())
	})
}

func TestStatus(t *testing.T) { both(t, testStatus) }

func testStatus(t *testing.T, executed bool) {
	t.Run("order/forward without an attachment", func(t *testing.T) {
		k := newKit(t, executed, map[string]script{"a": nil, "b": nil, "c": nil})
		require.NoError(t, k.Status(t.Context(), abc(t, "1.1.0")))
		calls := k.seen()
		require.Equal(t, []string{"STATUS a", "STATUS b", "STATUS c"}, k.order())
		for _, c := range calls {
			assert.Empty(t, c.Inv.ContainerID+c.Inv.NetNS+c.Inv.IfName+c.Inv.Args)
			assert.Empty(t, c.key(t, "prevResult")+c.key(t, "runtimeConfig"))
			assert.Equal(t, `"net"`, c.key(t, "name"))
		}
		assert.NoDirExists(t, k.CacheDir)
	})
	t.Run("error/stops and keeps the code", func(t *testing.T) {
		k := newKit(t, executed, map[string]script{"a": {cni.CommandStatus: {Code: cni.CodeLimitedConnectivity, Msg: "agent is away"}}, "b": nil, "c": nil})
		err := k.Status(t.Context(), abc(t, "1.1.0"))
		var theirs *cni.Error
		require.ErrorAs(t, err, &theirs)
		assert.Equal(t, cni.CodeLimitedConnectivity, theirs.Code)
		require.Equal(t, []string{"STATUS a"}, k.order())
	})
	t.Run("version/nothing runs before 1.1.0", func(t *testing.T) {
		k := newKit(t, executed, nil)
		require.NoError(t, k.Status(t.Context(), abc(t, "1.0.0")))
	})
}
